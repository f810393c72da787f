// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/date.h"
#include "base/text/option.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/plan/own_lives.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "host/files_disk.h"
#include "host/http.h"
#include "host/system/calendar.h"
#include "market/catalog.h"
#include "market/spot_advisor.h"

namespace tw::cli {
namespace {

constexpr const char* kPublicCatalogs =
    "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs";
/// Clouds move to a new schema at different times.
constexpr const char* kSchemas[] = {"v8", "v7", "v6", "v5"};
constexpr const char* kPublicSpotAdvisor = "https://spot-bid-advisor.s3.amazonaws.com";
constexpr const char* kClouds[] = {"aws", "azure", "gcp", "lambda"};
/// A server that has tables sends them sooner.
constexpr std::chrono::seconds kSilence{30};
constexpr int kFound = 200;
constexpr int kNotThere = 404;

Result<market::OfferQuery> query_of(const CatalogArguments& arguments) {
  market::OfferQuery query{.provider = arguments.provider, .region = arguments.region, .gpu = arguments.gpu};
  const int ways = (arguments.spot ? 1 : 0) + (arguments.on_demand ? 1 : 0) + (arguments.owned ? 1 : 0);
  if (ways > 1) return Error{"--spot, --on-demand, --owned: give one of them, or none for all"};
  if (arguments.spot) query.purchase = market::Purchase::spot;
  if (arguments.on_demand) query.purchase = market::Purchase::on_demand;
  if (arguments.owned) query.purchase = market::Purchase::owned;
  return query;
}

std::string site_text(const market::Offer& offer) { return to_string(site_of(offer)); }

/// "3 h", "12 days old", "3 days ahead".
std::string age_cell(const market::Offer& offer, std::int64_t now_unix_s) {
  if (offer.as_of_unix_s <= 0) return "undated";
  if (market::is_ahead(offer.as_of_unix_s, now_unix_s))
    return market::age_text(offer.as_of_unix_s - now_unix_s) + " ahead";
  return market::age_text(now_unix_s - offer.as_of_unix_s) + (is_old(offer, now_unix_s) ? " old" : "");
}

/// As wide as what stands in it.
template <class Text>
int width_of(const std::vector<market::Offer>& offers, Text text) {
  std::size_t width = 9;
  for (const market::Offer& offer : offers) width = std::max(width, text(offer).size());
  return static_cast<int>(width);
}

void print_table(std::vector<market::Offer> offers, std::uint64_t most) {
  const std::size_t all = offers.size();
  offers.resize(std::min<std::size_t>(all, most));
  const std::int64_t now = host::now_unix_s();
  const auto age_text = [now](const market::Offer& offer) { return age_cell(offer, now); };
  const int site_width = width_of(offers, site_text);
  const int type_width = width_of(offers, [](const market::Offer& offer) { return offer.vm_type; });
  const int age_width = width_of(offers, age_text);
  print_out("{:<12} {:>4} {:>9} {:>9}  {:<9}  {:<{}}  {:<{}}  {:>{}}  {}\n", "GPU", "GPUs", "$/h", "$/GPU h",
            "purchase", "site", site_width, "VM type", type_width, "price age", age_width, "source");
  bool old = false, ahead = false;
  for (const market::Offer& o : offers) {
    old = old || is_old(o, now);
    ahead = ahead || market::is_ahead(o.as_of_unix_s, now);
    print_out("{:<12} {:>4g} {:>9.4f} {:>9.4f}  {:<9}  {:<{}}  {:<{}}  {:>{}}  {}\n",
              o.gpu.empty() ? "none" : o.gpu, o.gpus, o.usd_per_h, usd_per_gpu_h(o), to_string(o.purchase),
              site_text(o), site_width, o.vm_type, type_width, age_text(o), age_width, o.source);
  }
  if (all > offers.size()) print_out("... and {} more: --limit {}\n", all - offers.size(), all);
  if (old)
    print_out("old: more than {} h; tw catalog update fetches new prices\n", market::kFreshPriceS / 3600);
  if (ahead) print_out("ahead: the date of the price is ahead of this clock\n");
}

int list(const CatalogArguments& arguments) {
  const auto query = query_of(arguments);
  if (!query) return complain(query.error().message, kUsage);
  if (arguments.csv && arguments.json) return complain("--csv, --json: give one of them", kUsage);
  const auto most = parse_count("--limit", arguments.limit, {.least = 1, .most = 1'000'000});
  if (!most) return complain(most.error().message, kUsage);
  const auto market = price_sources(arguments.market);
  if (!market) return complain(market.error().message, kUsage);
  const auto chosen = select(market.value().offers, query.value());
  if (!chosen) return complain(chosen.error().message, kUsage);
  if (arguments.csv) {
    print_out("{}", write_offers(chosen.value()));
    return kDone;
  }
  if (arguments.json) {
    print_out("{}", to_json(chosen.value(), host::now_unix_s()));
    return kDone;
  }
  for (const std::string& source : market.value().sources) print_out("{}\n", source);
  if (!market.value().left_out.empty()) {
    print_out("{} rows are no offers{}\n", market.value().left_out.size(),
              arguments.left_out ? ":" : " (--left-out: which and why)");
    if (arguments.left_out)
      for (const std::string& row : market.value().left_out) print_out("  {}\n", row);
  }
  print_out("\n");
  print_table(chosen.value(), most.value());
  return kDone;
}

void print_laws(const std::vector<market::LifetimeLaw>& laws) {
  print_out("{:<24} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>11}  source\n", "gone within", "1 h", "2 h", "4 h",
            "8 h", "12 h", "24 h", "mean");
  for (const market::LifetimeLaw& law : laws) {
    print_out("{:<24}", law.name);
    for (const double h : {1.0, 2.0, 4.0, 8.0, 12.0, 23.9}) print_out(" {:>6.1f}%", 100 * law.gone_by(h));
    print_out(" {:>9.1f} h  {}\n", law.expected_h(), law.source);
  }
}

/// How long machines live: by the laws there are, or by one, and by what own logs say.
Result<std::vector<market::LifetimeLaw>> laws_asked_for(const CatalogArguments& arguments) {
  if (arguments.law.empty() && !arguments.learn.empty())
    return Error{fmt::format("--learn {}: expected a law to begin with, such as gcp-v100 or exponential:24",
                             arguments.learn.front())};
  if (arguments.law.empty()) return market::measured_lifetimes();
  TW_TRY(const auto prior, market::lifetimes_named(arguments.law));
  std::vector<market::Lived> seen;
  for (const std::string& folder : arguments.learn) {
    TW_TRY(const auto lives, lives_in(folder));
    seen.insert(seen.end(), lives.begin(), lives.end());
  }
  std::vector<market::LifetimeLaw> laws{prior};
  if (!arguments.learn.empty()) laws.push_back(learned(prior, seen));
  return laws;
}

int lifetimes(const CatalogArguments& arguments) {
  const auto laws = laws_asked_for(arguments);
  if (!laws) return complain(laws.error().message, kUsage);
  print_laws(laws.value());
  return kDone;
}

Result<world::HttpAnswer> get(const std::string& url) {
  ProgressLine line;
  return host::http_get(url, {.silence = kSilence, .meanwhile = [&] { line.show("waiting for " + url, 0); }});
}

/// The cloud's table of the newest schema that has it.
Result<std::string> fetch(const std::string& from, const std::string& cloud) {
  for (const char* schema : kSchemas) {
    const std::string url = fmt::format("{}/{}/{}/vms.csv", from, schema, cloud);
    TW_TRY(auto answer, get(url));
    if (answer.status == kFound) return std::move(answer.body);
    if (answer.status != kNotThere)
      return Error{fmt::format("{}: the server answers {}", url, answer.status)};
  }
  return Error{
      fmt::format("{}: no {}/vms.csv in {} to {} there; the cloud's name is as in SkyPilot, such as aws",
                  from, cloud, kSchemas[0], kSchemas[std::size(kSchemas) - 1])};
}

/// A file in a folder is there as a whole or as it was.
Status put(const std::string& folder, const std::string& name, const std::string& text) {
  host::DiskFiles disk;
  if (Status made = disk.make_folder(folder); !made) return made;
  const std::string path = folder + "/" + name;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  if (Status written = disk.write(path + ".new", {&bytes, 1}); !written) return written;
  return disk.rename(path + ".new", path);
}

/// How often AWS took spot machines. A server that has no such file is no error.
Result<std::size_t> update_spot_advisor(const std::string& from, const std::string& folder) {
  const std::string url = fmt::format("{}/{}", from, market::kSpotAdvisorFile);
  TW_TRY(const auto answer, get(url));
  if (answer.status == kNotThere) return std::size_t{0};
  if (answer.status != kFound) return Error{fmt::format("{}: the server answers {}", url, answer.status)};
  TW_TRY(const auto advisor, market::SpotAdvisor::read(url, answer.body));
  if (advisor.size() == 0)
    return Error{
        fmt::format("{}: expected interruptions of machines, found none; the file stays as it was", url)};
  TW_TRY(put(folder, market::kSpotAdvisorFile, answer.body));
  return advisor.size();
}

/// Put in place only when it can be read.
Result<market::CatalogOffers> update_one(const std::string& cloud, const std::string& from,
                                         const std::string& into) {
  TW_TRY(const auto text, fetch(from, cloud));
  auto offers =
      market::read_skypilot(cloud, {{fmt::format("{} of {}", cloud, from), text, host::now_unix_s()}});
  if (!offers) return offers.error();
  if (offers.value().offers.empty())
    return Error{fmt::format("{}: expected a table of prices for {}, found no offer in {}", from, cloud,
                             counted(static_cast<std::uint64_t>(offers.value().rows), "row"))};
  TW_TRY(put(into + "/" + cloud, "vms.csv", text));
  TW_TRY(put(into + "/" + cloud, kAsOfFile, date_text(host::now_unix_s()) + "\n"));
  return offers;
}

int update(const CatalogArguments& arguments) {
  std::vector<std::string> clouds = arguments.clouds;
  if (clouds.empty()) clouds.assign(std::begin(kClouds), std::end(kClouds));
  const std::string from = arguments.from.empty() ? kPublicCatalogs : arguments.from;
  const std::string into = arguments.into.empty() ? catalog_folder() : arguments.into;
  int code = kDone;
  for (const std::string& cloud : clouds) {
    if (cloud.empty() ||
        cloud.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos)
      return complain(fmt::format("{}: not a cloud; expected a name as in SkyPilot, such as aws", cloud),
                      kUsage);
    const auto updated = update_one(cloud, from, into);
    if (!updated) {
      code = complain(fmt::format("{}; the catalog of {} stays as it was", updated.error().message, cloud),
                      kFailed);
      continue;
    }
    print_out("{}/{}/vms.csv: {} from {}\n", into, cloud, counted(updated.value().offers.size(), "offer"),
              counted(static_cast<std::uint64_t>(updated.value().rows), "row"));
    if (cloud != "aws") continue;
    const std::string folder = fmt::format("{}/{}", into, cloud);
    const auto told = update_spot_advisor(arguments.from.empty() ? kPublicSpotAdvisor : from, folder);
    if (!told) code = complain(told.error().message, kFailed);
    if (told && told.value() > 0)
      print_out("{}/{}: interruptions of {} machines\n", folder, market::kSpotAdvisorFile, told.value());
  }
  return code;
}

}  // namespace

void describe_catalog(CLI::App& app, CatalogArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("catalog", "List prices and lifetimes of machines; fetch new prices");
  command->require_subcommand(1);
  CLI::App* list = command->add_subcommand("list", "List offers by price of a GPU, with source and age");
  list->add_option("--gpu", arguments.gpu, "T4, A100-80GB, ...; none: machines without one");
  list->add_flag("--spot", arguments.spot, "only spot machines");
  list->add_flag("--on-demand", arguments.on_demand, "only on-demand machines");
  list->add_flag("--owned", arguments.owned, "only your own hosts");
  list->add_option("--provider", arguments.provider, "aws, azure, gcp, lambda, ...");
  list->add_option("--region", arguments.region, "us-west-2, ...");
  list->add_option("--limit", arguments.limit, "rows to show")->capture_default_str();
  list->add_flag("--csv", arguments.csv, "print all matches as a CSV that --offers reads");
  list->add_flag("--json", arguments.json, "print all matches as JSON, with the age of each price");
  list->add_flag("--left-out", arguments.left_out, "show the rows of catalogs that are no offers, and why");
  describe_market(*list, arguments.market);
  list->footer(
      "\nExamples:\n  tw catalog list --gpu T4 --spot\n  tw catalog list --provider gcp --region us-west1\n"
      "  tw catalog list --offers hosts.csv --owned");
  CLI::App* update = command->add_subcommand("update", "Fetch the price tables that SkyPilot publishes");
  update->add_option("CLOUD", arguments.clouds, "names as in SkyPilot; default: aws azure gcp lambda");
  update->add_option("--from", arguments.from,
                     "address of the tables; default: those that SkyPilot publishes");
  update->add_option("--into", arguments.into, "folder; default: ~/.cache/tradewind/catalogs");
  update->footer("\nExamples:\n  tw catalog update\n  tw catalog update aws runpod");
  CLI::App* lifetimes = command->add_subcommand("lifetimes", "Show how long spot machines live");
  lifetimes->add_option("LAW", arguments.law, "a listed law, or exponential:MEAN_H; default: all");
  lifetimes->add_option("--learn", arguments.learn, "folder with event logs of your run; may be repeated")
      ->allow_extra_args(false);
  lifetimes->footer(
      "\nExamples:\n  tw catalog lifetimes\n  tw catalog lifetimes gcp-v100-us-west1 --learn tw-out");
  command->footer("What the columns of one's own offers mean: docs/planner.md.");
}

int run_catalog(const CatalogArguments& arguments, const std::string& what) {
  if (what == "update") return update(arguments);
  return what == "lifetimes" ? lifetimes(arguments) : list(arguments);
}

}  // namespace tw::cli
