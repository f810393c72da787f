// SPDX-License-Identifier: Apache-2.0
#include "plan/model/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/date.h"
#include "base/text/quantity.h"
#include "plan/search/market_space.h"

namespace tw::plan {
namespace {

/// Price of the whole machine if it (4xT4) is one peer, else of one of its GPUs.
double usd_of_peer(const market::Offer& offer, const std::string& gpu) {
  return offer.gpu == gpu ? offer.usd_per_h / std::max(1.0, offer.gpus) : offer.usd_per_h;
}

bool stands_at(const market::Offer& offer, const market::Site& site) {
  if (region_of(site_of(offer)) == region_of(site)) return true;
  const std::vector<market::Site> areas = areas_around(site);
  return std::find(areas.begin(), areas.end(), region_of(site_of(offer))) != areas.end();
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
    return (offer.gpu == group.gpu || machine_name(offer) == group.gpu) && stands_at(offer, group.site);
  };
  const auto own = std::find_if(prices.own.begin(), prices.own.end(), fits);
  if (own != prices.own.end()) return *own;
  const market::Offer* best = nullptr;
  for (const market::Offer& offer : prices.offers) {
    if (!fits(offer) || (prices.purchase && offer.purchase != *prices.purchase)) continue;
    if (best == nullptr || usd_of_peer(offer, group.gpu) < usd_of_peer(*best, group.gpu)) best = &offer;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

Cost cost_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Prediction& prediction,
             const Prices& prices) {
  Cost cost;
  double vm = 0;
  for (const PeerGroup& group : peers) {
    const std::string name = fmt::format("{}@{}", group.gpu, to_string(group.site));
    const auto offer = offer_for(group, prices);
    if (!offer) {
      cost.assumptions.push_back(fmt::format("{}: no price known, counted as owned: 0 USD/h", name));
      continue;
    }
    vm += group.count * usd_of_peer(*offer, group.gpu);
    cost.assumptions.push_back(
        fmt::format("{}: {} USD/h {}, {}{}", name, significant(usd_of_peer(*offer, group.gpu), 4),
                    to_string(offer->purchase), offer->source,
                    offer->as_of_unix_s > 0 ? ", " + date_text(offer->as_of_unix_s) : ""));
  }
  const Estimate& speed = prediction.throughput_sps;
  const Estimate& sent = prediction.sent_mb_per_peer_round;
  const double speed_factor = speed.high / speed.value;
  const double usd_per_round = egress_usd_per_round(peers, prediction, prices.tariffs);
  cost.assumptions.push_back(data_assumption(workload, prices.data));
  cost.vm_usd_per_h = within_factor(vm, 1);
  cost.egress_usd_per_h = within_factor(3600 * usd_per_round / prediction.round_s(), speed_factor);
  cost.data_usd_per_h = scaled(speed, 3600 * data_usd_per_sample(workload, peers, prediction, prices));
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
