// SPDX-License-Identifier: Apache-2.0
#include "market/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/date.h"
#include "base/text/text.h"
#include "market/built_in.h"
#include "market/gpu_name.h"

namespace tw::market {
namespace {

const std::vector<std::string> kColumns = {
    "provider",       "region",     "zone",     "failure_domain",   "vm_type",    "gpu",       "gpus",
    "gpu_memory_gib", "memory_gib", "vcpus",    "network_gbps",     "purchase",   "usd_per_h", "source",
    "as_of",          "start_up_s", "notice_s", "taken_in_30_days", "quota_class"};

Offer read_offer(CsvRow& row, const CatalogFile& file) {
  // Ten times the size, or price, of the largest machine for rent.
  constexpr CsvRange kGib{.least = 0, .most = 1e6}, kVcpus{.least = 0, .most = 1e5};
  constexpr CsvRange kGbps{.least = 0, .most = 1e5}, kUsd{.least = 0, .most = 1e5};
  constexpr CsvRange kSeconds{.least = 0, .most = 1e6}, kGpus{.least = 0.001, .most = 1024};
  const Site site = site_at(row.word("provider"), row.word("region"), row.text("zone"));
  Offer offer{.provider = site.provider,
              .region = site.region,
              .zone = site.zone,
              .failure_domain = row.text("failure_domain"),
              .vm_type = row.text("vm_type"),
              .gpu = gpu_name(row.text("gpu")),
              .gpu_memory_gib = row.number_or("gpu_memory_gib", 0, kGib),
              .memory_gib = row.number_or("memory_gib", 0, kGib),
              .vcpus = row.number_or("vcpus", 0, kVcpus),
              .network_gbps = row.number_or("network_gbps", 0, kGbps),
              .usd_per_h = row.number("usd_per_h", kUsd),
              .source = row.empty("source") ? file.name : row.text("source"),
              .as_of_unix_s = file.as_of_unix_s,
              .start_up_s = row.number_or("start_up_s", 0, kSeconds),
              .notice_s = row.number_or("notice_s", 0, kSeconds),
              .taken_in_30_days = row.number_or("taken_in_30_days", 0, {.least = 0, .most = 0.99}),
              .quota_class = row.text("quota_class")};
  const auto several = several_gpus(offer.gpu);
  if (several) offer.gpu = several->gpu;
  const double count = several ? several->count : 1;
  offer.gpus = offer.gpu.empty() ? row.number_or("gpus", 0, {.least = 0, .most = 0})
                                 : row.number_or("gpus", count, kGpus);
  if (several && offer.gpus != count) row.complain("gpus", fmt::format("nothing, or the {} of gpu", count));
  const auto purchase = parse_purchase(row.text("purchase"));
  if (!purchase) row.complain("purchase", "spot, on-demand or owned");
  offer.purchase = purchase.value_or(Purchase::on_demand);
  if (purchase && purchase != Purchase::owned && offer.usd_per_h == 0)
    row.complain("usd_per_h", "more than 0, for what is rented");
  const auto as_of = parse_date(row.text("as_of"));
  if (!row.empty("as_of") && !as_of)
    row.complain("as_of", "a date such as 2023-04-25 or 2026-05-20T10:00:00Z");
  offer.as_of_unix_s = as_of.value_or(file.as_of_unix_s);
  fill_in(offer);
  return offer;
}

/// Names that the offers have in a column of the query, for messages.
std::string names_of(const std::vector<Offer>& offers, std::string Offer::*field) {
  std::set<std::string> names;
  for (const Offer& offer : offers) names.insert(offer.*field);
  std::string text;
  for (const std::string& name : names)
    if (!name.empty()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// A word of a query as the user wrote it, and as offers have it.
struct Wanted {
  std::string_view what;
  const std::string& written;
  std::string name;
};

Status keep(std::vector<Offer>& offers, std::string Offer::*field, const Wanted& wanted) {
  if (wanted.written.empty()) return Unit{};
  const std::string names = names_of(offers, field);
  const std::string name = wanted.name == "none" ? "" : wanted.name;
  std::erase_if(offers, [&](const Offer& offer) { return !same_word(offer.*field, name); });
  if (offers.empty())
    return Error{fmt::format("{} {}: no offer; there are {}", wanted.what, wanted.written, names)};
  return Unit{};
}

}  // namespace

Result<std::vector<Offer>> read_offers(const CatalogFile& file) {
  TW_TRY(const auto table,
         CsvTable::parse(file.name, file.text, {"provider", "region", "gpu", "purchase", "usd_per_h"}));
  TW_TRY(table.knows_only(kColumns));
  std::vector<Offer> offers;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    offers.push_back(read_offer(row, file));
    if (!row.status()) return row.status().error();
  }
  return offers;
}

std::string write_offers(const std::vector<Offer>& offers) {
  std::string text = csv_line(kColumns);
  for (const Offer& o : offers) {
    text += csv_line({o.provider, o.region, o.zone, o.failure_domain, o.vm_type, o.gpu, csv_number(o.gpus),
                      csv_number(o.gpu_memory_gib), csv_number(o.memory_gib), csv_number(o.vcpus),
                      csv_number(o.network_gbps), std::string(to_string(o.purchase)), csv_number(o.usd_per_h),
                      o.source, o.as_of_unix_s > 0 ? date_text(o.as_of_unix_s) : "", csv_number(o.start_up_s),
                      csv_number(o.notice_s), csv_number(o.taken_in_30_days), o.quota_class});
  }
  return text;
}

const std::vector<Offer>& built_in_offers() {
  static const std::vector<Offer> offers = [] {
    auto read = read_offers({"offers.csv", built_in_file("offers.csv"), 0});
    TW_CHECK(read.ok());
    return std::move(read).value();
  }();
  return offers;
}

std::string age_text(std::int64_t seconds) {
  const std::int64_t hours = std::max<std::int64_t>(0, seconds) / 3600;
  if (hours < 48) return fmt::format("{} h", hours);
  return fmt::format("{} days", hours / 24);
}

std::string dated_text(std::int64_t as_of_unix_s, std::int64_t now_unix_s) {
  if (is_ahead(as_of_unix_s, now_unix_s))
    return fmt::format("dated {} ahead of this clock", age_text(as_of_unix_s - now_unix_s));
  return age_text(now_unix_s - as_of_unix_s) + " old";
}

std::string price_age_text(const Offer& offer, std::int64_t now_unix_s) {
  return offer.as_of_unix_s <= 0 ? "undated" : dated_text(offer.as_of_unix_s, now_unix_s);
}

Result<std::vector<Offer>> select(const std::vector<Offer>& offers, const OfferQuery& query) {
  std::vector<Offer> chosen = offers;
  TW_TRY(keep(chosen, &Offer::gpu, {"GPU", query.gpu, gpu_name(query.gpu)}));
  TW_TRY(keep(chosen, &Offer::provider, {"provider", query.provider, site_at(query.provider, "").provider}));
  TW_TRY(keep(chosen, &Offer::region, {"region", query.region, query.region}));
  if (query.purchase) {
    std::erase_if(chosen, [&](const Offer& offer) { return offer.purchase != *query.purchase; });
    if (chosen.empty())
      return Error{fmt::format("{}: none of the offers that fit else are for sale that way",
                               to_string(*query.purchase))};
  }
  std::ranges::stable_sort(chosen, {}, usd_per_gpu_h);
  return chosen;
}

}  // namespace tw::market
