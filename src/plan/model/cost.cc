// SPDX-License-Identifier: Apache-2.0
#include "plan/model/cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/text/date.h"
#include "base/text/quantity.h"
#include "plan/search/market_space.h"

namespace tw::plan {
namespace {

/// Price of the whole machine if it (4xT4) is one peer, else of one of its GPUs.
double usd_of_peer(const market::Offer& offer, const std::string& gpu) {
  return offer.gpu == gpu ? offer.usd_per_h / std::max(1.0, offer.gpus) : offer.usd_per_h;
}

bool is_area_around(const market::Site& area, const market::Site& site) {
  const std::vector<market::Site> areas = areas_around(site);
  return std::find(areas.begin(), areas.end(), region_of(area)) != areas.end();
}

bool stands_at(const market::Offer& offer, const market::Site& site) {
  const market::Site there = site_of(offer);
  return region_of(there) == region_of(site) || is_area_around(there, site) || is_area_around(site, there);
}

bool is_machine_of(const market::Offer& offer, const PeerGroup& group) {
  return offer.gpu == group.gpu || machine_name(offer) == group.gpu;
}

bool is_bought_so(const market::Offer& offer, const PeerGroup& group, const Prices& prices) {
  if (group.purchase) return offer.purchase == *group.purchase;
  return prices.purchases.empty() || offer.purchase == market::Purchase::owned ||
         std::find(prices.purchases.begin(), prices.purchases.end(), offer.purchase) !=
             prices.purchases.end();
}

std::string name_of(const PeerGroup& group) {
  return fmt::format("{}@{}{}", group.gpu, to_string(group.site),
                     group.purchase ? " " + std::string(to_string(*group.purchase)) : "");
}

/// What there is instead of a price of the group, and what to do.
std::string unpriced_text(const PeerGroup& group, const Prices& prices) {
  std::set<std::string> otherwise, elsewhere;
  for (const market::Offer& offer : prices.offers) {
    if (!is_machine_of(offer, group)) continue;
    if (stands_at(offer, group.site))
      otherwise.emplace(to_string(offer.purchase));
    else
      elsewhere.insert(to_string(region_of(site_of(offer))));
  }
  constexpr std::size_t kMostNamed = 6;
  const bool more = elsewhere.size() > kMostNamed;
  if (more) elsewhere.erase(std::next(elsewhere.begin(), kMostNamed), elsewhere.end());
  std::string there = "no offer of it anywhere";
  if (!elsewhere.empty())
    there = fmt::format("offered at {}{}", fmt::join(elsewhere, ", "), more ? " and others" : "");
  if (!otherwise.empty()) there = fmt::format("offered there as {}", fmt::join(otherwise, ", "));
  return fmt::format(
      "{}: no price is known, so there is no total ({}); give one: usd_per_h: {{{}@{}: USD}}, or --offers "
      "FILE",
      name_of(group), there, group.gpu, to_string(group.site));
}

double egress_usd_per_round(const std::vector<PeerGroup>& peers, const Prediction& prediction,
                            const market::Tariffs& tariffs) {
  double usd = 0;
  for (std::size_t g = 0; g < peers.size(); ++g) {
    for (std::size_t h = 0; h < peers.size(); ++h)
      usd += prediction.sent_mb[g][h] / 1e3 * tariffs.usd_per_gb(peers[g].site, peers[h].site);
  }
  return usd;
}

Estimate scaled(const Estimate& estimate, double factor) {
  return {estimate.value * factor, estimate.low * factor, estimate.high * factor};
}

/// Mean over the samples, of which each group reads as many as it is fast.
double data_usd_per_sample(const Workload& workload, const std::vector<PeerGroup>& peers,
                           const Prediction& prediction, const Prices& prices) {
  double usd = 0, samples = 0;
  for (std::size_t g = 0; g < peers.size(); ++g) {
    const double part = prediction.group_sps.empty() ? peers[g].count : prediction.group_sps[g];
    usd += part * data_usd_per_sample(workload, prices.data, prices.tariffs, peers[g].site);
    samples += part;
  }
  return samples > 0 ? usd / samples : 0;
}

}  // namespace

double data_usd_per_sample(const Workload& workload, const DataSource& data, const market::Tariffs& tariffs,
                           const market::Site& reader) {
  const double gb = workload.model.data_mb_per_sample / 1e3;
  if (!data.store) return gb * data.usd_per_gb;
  return gb * tariffs.read_usd_per_gb(*data.store, reader) +
         data.store->usd_per_million_reads.value_or(0) / 1e6 / samples_a_read(workload);
}

std::string data_assumption(const Workload& workload, const DataSource& data) {
  if (!(workload.model.data_mb_per_sample > 0))
    return fmt::format("data: {} names no data_mb_per_sample, so reading samples is counted as free",
                       workload.model.file.empty() ? workload.model.name : workload.model.file);
  if (!data.store)
    return fmt::format("data: {} USD/GB{}, requests not counted", significant(data.usd_per_gb, 4),
                       data.named ? "" : " (no data_store is named: the default, Backblaze B2's of 2023)");
  const auto& request = data.store->usd_per_million_reads;
  return fmt::format("data: from {}, {}, {}, {:g} samples a request; {}", data.store->name,
                     data.store->site.empty()
                         ? fmt::format("{} USD/GB", significant(data.store->read_usd_per_gb, 4))
                         : "by the tariff from there to each site",
                     request ? fmt::format("{} USD a million requests", significant(*request, 4))
                             : "no price of its requests is known",
                     samples_a_read(workload), data.store->source);
}

std::optional<market::Offer> offer_for(const PeerGroup& group, const Prices& prices) {
  const auto fits = [&](const market::Offer& offer) {
    return is_machine_of(offer, group) && stands_at(offer, group.site);
  };
  const auto own = std::find_if(prices.own.begin(), prices.own.end(), fits);
  if (own != prices.own.end()) return *own;
  const market::Offer* best = nullptr;
  for (const market::Offer& offer : prices.offers) {
    if (!fits(offer) || !is_bought_so(offer, group, prices)) continue;
    if (best == nullptr || usd_of_peer(offer, group.gpu) < usd_of_peer(*best, group.gpu)) best = &offer;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

namespace {

/// The machines with a price cost so much; the others are in cost.unpriced.
double machines_usd_per_h(const std::vector<PeerGroup>& peers, const Prices& prices, Cost& cost) {
  double usd = 0;
  for (const PeerGroup& group : peers) {
    const auto offer = offer_for(group, prices);
    if (!offer && (on_premise(group.site) || group.purchase == market::Purchase::owned)) {
      cost.assumptions.push_back(name_of(group) + ": your own machine, 0 USD/h; usd_per_h gives it a price");
    } else if (!offer) {
      cost.unpriced.push_back(unpriced_text(group, prices));
    } else {
      usd += group.count * usd_of_peer(*offer, group.gpu);
      cost.assumptions.push_back(
          fmt::format("{}: {} USD/h {}, {}{}", name_of(group), significant(usd_of_peer(*offer, group.gpu), 4),
                      to_string(offer->purchase), offer->source,
                      offer->as_of_unix_s > 0 ? ", " + date_text(offer->as_of_unix_s) : ""));
    }
  }
  return usd;
}

/// A cloud without a tariff may charge for traffic all the same.
void add_uncharged(const std::vector<PeerGroup>& peers, const market::Tariffs& tariffs,
                   std::vector<std::string>& assumptions) {
  if (count_of(peers) < 2) return;
  std::set<std::string> said;
  for (const PeerGroup& group : peers)
    if (!tariffs.knows(group.site) && said.insert(group.site.provider).second)
      assumptions.push_back(uncharged_text(group.site.provider));
}

}  // namespace

std::string uncharged_text(const std::string& provider) {
  return fmt::format("egress: no tariff of {} is known, its traffic is counted as free", provider);
}

Cost cost_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Prediction& prediction,
             const Prices& prices) {
  Cost cost;
  const double vm = machines_usd_per_h(peers, prices, cost);
  const Estimate& speed = prediction.throughput_sps;
  const Estimate& sent = prediction.sent_mb_per_peer_round;
  const double speed_factor = speed.high / speed.value;
  const double usd_per_round = egress_usd_per_round(peers, prediction, prices.tariffs);
  cost.assumptions.push_back(data_assumption(workload, prices.data));
  add_uncharged(peers, prices.tariffs, cost.assumptions);
  cost.egress_usd_per_h = within_factor(3600 * usd_per_round / prediction.round_s(), speed_factor);
  cost.data_usd_per_h = scaled(speed, 3600 * data_usd_per_sample(workload, peers, prediction, prices));
  if (!cost.unpriced.empty()) return cost;
  cost.vm_usd_per_h = within_factor(vm, 1);
  const double total = vm + cost.egress_usd_per_h.value + cost.data_usd_per_h.value;
  cost.total_usd_per_h = {total, vm + cost.egress_usd_per_h.low + cost.data_usd_per_h.low,
                          vm + cost.egress_usd_per_h.high + cost.data_usd_per_h.high};
  // Data and egress cost the same per sample at any speed.
  const double per_million = 1e6 / 3600 / speed.value;
  const double fixed = (total - vm) * per_million;
  const double sent_factor = sent.value > 0 ? sent.high / sent.value : 1;
  cost.usd_per_million_samples = {vm * per_million + fixed,
                                  vm * per_million / speed_factor + fixed / sent_factor,
                                  vm * per_million * speed_factor + fixed * sent_factor};
  return cost;
}

}  // namespace tw::plan
