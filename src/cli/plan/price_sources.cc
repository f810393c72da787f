// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/price_sources.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "base/result.h"
#include "base/text/date.h"
#include "base/text/text.h"
#include "base/text/text_file.h"
#include "host/system/calendar.h"
#include "market/catalog.h"
#include "market/spot_advisor.h"

namespace tw::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSkyPilotVersions[] = {"v8", "v7", "v6", "v5"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct FoundFile {
  std::string path;
  std::int64_t as_of_unix_s = 0;
};

std::int64_t written_unix_s(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

/// The date that `tw catalog update` wrote beside the table. No price is newer than the file that holds it,
/// so a table of SkyPilot's, which has no date, is at least as old as its file.
Result<std::int64_t> prices_unix_s(const fs::path& table) {
  const std::int64_t written = written_unix_s(table);
  const std::string file = (table.parent_path() / kAsOfFile).string();
  std::error_code error;
  if (!fs::exists(file, error)) return written;
  TW_TRY(const auto text, read_text("--catalog", file));
  const std::string date = text.substr(0, text.find('\n'));
  const auto as_of = parse_date(date);
  if (!as_of)
    return Error{fmt::format(
        "{}: {}: expected a date such as 2026-05-20T10:00:00Z; tw catalog update writes it", file, date)};
  return std::min(*as_of, written);
}

/// CLOUD/vms.csv of a folder, where newer than what was found before.
Status look_into(const fs::path& folder, std::map<std::string, FoundFile>& found) {
  std::error_code error;
  for (const auto& cloud : fs::directory_iterator(folder, error)) {
    const fs::path file = cloud.path() / "vms.csv";
    if (!fs::is_regular_file(file, error)) continue;
    TW_TRY(const auto as_of, prices_unix_s(file));
    const FoundFile here{file.string(), as_of};
    FoundFile& best = found[cloud.path().filename().string()];
    if (best.path.empty() || here.as_of_unix_s > best.as_of_unix_s) best = here;
  }
  return Unit{};
}

Result<std::map<std::string, FoundFile>> find_catalogs(const std::string& catalog) {
  std::map<std::string, FoundFile> found;
  if (catalog == "built-in") return found;
  if (!catalog.empty()) {
    TW_TRY(look_into(catalog, found));
    if (found.empty())
      return Error{
          fmt::format("--catalog {}: no CLOUD/vms.csv in it; give a folder such as ~/.sky/catalogs/v8, "
                      "or built-in",
                      catalog)};
    return found;
  }
  TW_TRY(look_into(catalog_folder(), found));
  for (const char* version : kSkyPilotVersions)
    TW_TRY(look_into(fs::path(environment("HOME")) / ".sky" / "catalogs" / version, found));
  return found;
}

/// AWS's interruption rates of spot machines, if they were fetched with the prices.
Status add_interruptions(const fs::path& folder, std::vector<market::Offer>& offers) {
  const fs::path file = folder / market::kSpotAdvisorFile;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return Unit{};
  TW_TRY(const auto text, read_text("--catalog", file.string()));
  TW_TRY(const auto advisor, market::SpotAdvisor::read(file.string(), text));
  advisor.fill_in(offers);
  return Unit{};
}

Status add_catalog(const std::string& cloud, const FoundFile& file, PriceSources& market) {
  TW_TRY(const auto text, read_text("--catalog", file.path));
  auto read = market::read_skypilot(cloud, {{file.path, text, file.as_of_unix_s}});
  if (!read)
    return Error{
        fmt::format("{}; fetch it anew with tw catalog update {}, or leave it out with --catalog built-in",
                    read.error().message, cloud)};
  market::CatalogOffers& got = read.value();
  TW_TRY(add_interruptions(fs::path(file.path).parent_path(), got.offers));
  const std::int64_t now = host::now_unix_s();
  const std::string dated = market::is_ahead(file.as_of_unix_s, now)
                                ? ", " + market::dated_text(file.as_of_unix_s, now)
                                : fmt::format(" of {} ago", market::age_text(now - file.as_of_unix_s));
  market.sources.push_back(fmt::format("{}: {}{}", file.path, counted(got.offers.size(), "offer"), dated));
  std::move(got.offers.begin(), got.offers.end(), std::back_inserter(market.offers));
  std::move(got.left_out.begin(), got.left_out.end(), std::back_inserter(market.left_out));
  return Unit{};
}

Status add_own(const std::string& file, PriceSources& market) {
  TW_TRY(const auto text, read_text("--offers", file));
  const auto offers = market::read_offers({file, text, 0});
  if (!offers) return offers.error();
  market.sources.push_back(fmt::format("{}: {}", file, counted(offers.value().size(), "offer")));
  market.offers.insert(market.offers.end(), offers.value().begin(), offers.value().end());
  return Unit{};
}

void add_built_in(PriceSources& market, const std::set<std::string>& clouds) {
  std::uint64_t added = 0;
  for (const market::Offer& offer : market::built_in_offers()) {
    if (clouds.contains(offer.provider)) continue;
    market.offers.push_back(offer);
    ++added;
  }
  if (added > 0)
    market.sources.push_back(fmt::format("built in: {} of publications", counted(added, "offer")));
}

}  // namespace

void describe_market(CLI::App& command, MarketArguments& arguments) {
  command
      .add_option("--offers", arguments.offers, "FILE.csv with your own offers and hosts; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--catalog", arguments.catalog,
                     "folder with CLOUD/vms.csv, or built-in; default: the newest catalogs");
}

std::string catalog_folder() {
  const std::string cache = environment("XDG_CACHE_HOME");
  const fs::path root = cache.empty() ? fs::path(environment("HOME")) / ".cache" : fs::path(cache);
  return (root / "tradewind" / "catalogs").string();
}

Result<std::string> read_text(const std::string& option, const std::string& file) {
  auto text = read_text_file(file);
  if (!text) return Error{option + " " + text.error().message};
  return text;
}

Result<PriceSources> price_sources(const MarketArguments& arguments) {
  PriceSources market;
  for (const std::string& file : arguments.offers) TW_TRY(add_own(file, market));
  TW_TRY(const auto found, find_catalogs(arguments.catalog));
  std::set<std::string> clouds;
  for (const auto& [cloud, file] : found) {
    clouds.insert(market::site_at(cloud, "").provider);
    TW_TRY(add_catalog(cloud, file, market));
  }
  add_built_in(market, clouds);
  return market;
}

Result<market::NetworkProfile> network_at_hand(const std::string& file) {
  market::NetworkProfile network = market::NetworkProfile::built_in();
  if (file.empty()) return network;
  TW_TRY(const auto text, read_text("--profile", file));
  TW_TRY(const auto own, market::read_network(file, text));
  network.merge(own);
  return network;
}

}  // namespace tw::cli
