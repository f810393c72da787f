// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "market/site.h"

namespace tw::market {

enum class Purchase { spot, on_demand, owned };

std::string_view to_string(Purchase purchase);
std::optional<Purchase> parse_purchase(std::string_view written);  ///< in any case; also on_demand

/// A priced VM type in a zone. 0 of a size, an empty text: not known.
struct Offer {
  std::string provider;        ///< as in Site
  std::string region;          ///< the provider's own name
  std::string zone;            ///< empty: any zone of the region
  std::string failure_domain;  ///< machines in one are lost together: the zone, else the region
  std::string vm_type;
  std::string gpu;            ///< as SkyPilot and the publications write it: T4, A10, A100-80GB
  double gpus = 0;            ///< of one VM; a fraction where a GPU is shared
  double gpu_memory_gib = 0;  ///< of one GPU
  double memory_gib = 0;
  double vcpus = 0;
  double network_gbps = 0;  ///< the most one VM may send or receive, 1e9 bit/s
  Purchase purchase = Purchase::on_demand;
  double usd_per_h = 0;  ///< of the whole VM, its GPUs included
  std::string source;    ///< where the price is from
  std::int64_t as_of_unix_s = 0;
  double start_up_s = 0;        ///< from the request to a machine that can run a peer
  double notice_s = 0;          ///< before a spot machine is taken; 0: none
  double taken_in_30_days = 0;  ///< share of such spot machines that are taken within 30 days; 0: not known
  std::string quota_class;      ///< offers of one share a limit, such as "aws us-west-2 G and VT spot"

  bool operator==(const Offer&) const = default;
};

/// Fills in what the offer leaves open: start-up time, notice, network cap, failure domain and quota class,
/// from publications and the clouds' own pages on all machines of a provider. See docs/planner.md.
void fill_in(Offer& offer);

/// The price of one GPU, or of a machine without one.
inline double usd_per_gpu_h(const Offer& offer) {
  return offer.usd_per_h / (offer.gpus > 0 ? offer.gpus : 1);
}

inline Site site_of(const Offer& offer) { return {offer.provider, offer.region, offer.zone}; }

}  // namespace tw::market
