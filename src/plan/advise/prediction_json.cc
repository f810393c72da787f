// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/prediction_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

/// null where there is no number, as for the granularity of a peer alone.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json range(const Estimate& estimate) { return {number(estimate.low), number(estimate.high)}; }

}  // namespace

std::string to_json(const Prediction& prediction, const Cost& cost) {
  Json json, ranges;
  for (const auto& [name, estimate] : std::initializer_list<std::pair<const char*, const Estimate&>>{
           {"throughput_sps", prediction.throughput_sps},
           {"local_sps", prediction.local_sps},
           {"calc_s", prediction.calc_s},
           {"comm_s", prediction.comm_s},
           {"granularity", prediction.granularity},
           {"sent_mb_per_peer_round", prediction.sent_mb_per_peer_round}}) {
    json[name] = number(estimate.value);
    ranges[name] = range(estimate);
  }
  for (const auto& [name, estimate] :
       std::initializer_list<std::pair<const char*, const Estimate&>>{{"vm", cost.vm_usd_per_h},
                                                                      {"egress", cost.egress_usd_per_h},
                                                                      {"data", cost.data_usd_per_h},
                                                                      {"total", cost.total_usd_per_h}}) {
    json["usd_per_h"][name] = estimate.value;
    ranges["usd_per_h"][name] = range(estimate);
  }
  json["usd_per_million_samples"] = cost.usd_per_million_samples.value;
  ranges["usd_per_million_samples"] = range(cost.usd_per_million_samples);
  json["limit"] = prediction.limit;
  json["round_s"] = prediction.round_s();
  json["overlap_s"] = prediction.overlap_s;
  json["ranges"] = ranges;
  json["assumptions"] = prediction.assumptions;
  for (const std::string& assumption : cost.assumptions) json["assumptions"].push_back(assumption);
  return json.dump(2) + "\n";
}

}  // namespace tw::plan
