// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "plan/model/round_time.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

/// null if there is no number, as for the granularity of a lone peer.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json range(const Estimate& estimate) { return {number(estimate.low), number(estimate.high)}; }

/// null if the browser's copy of the model (web/model.js) does not cover it: other patterns, and lone peers.
Json inputs_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Knowledge& knowledge) {
  if (workload.pattern != Pattern::tradewind || count_of(peers) < 2) return nullptr;
  const Lines lines = lines_of(workload, peers, knowledge.network);
  Json groups = Json::array();
  for (std::size_t g = 0; g < peers.size(); ++g) {
    const auto speed = speed_of(workload.model, peers[g].gpu, knowledge.gpus);
    if (!speed) return nullptr;
    groups.push_back({{"count", peers[g].count},
                      {"card", lines.card[g]},
                      {"samples_per_s", speed.value().samples_per_s.value}});
  }
  return {{"work",
           {{"params_m", workload.model.params_m},
            {"bytes_per_param", workload.bytes_per_param},
            {"tbs", workload.target_batch_size},
            {"delayed", workload.delayed}}},
          {"groups", std::move(groups)},
          {"pair", lines.pair},
          {"rtt_s", lines.rtt_s}};
}

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
  json["reads"] = nullptr;
  if (const ReadRate& reads = prediction.reads; !reads.peer.empty())
    json["reads"] = {{"requests_per_s", reads.requests_per_s},
                     {"mbit_s", reads.mbit_s},
                     {"card_mbit_s", reads.card_mbit_s},
                     {"peer", reads.peer}};
  json["round_s"] = prediction.round_s();
  json["overlap_s"] = prediction.overlap_s;
  json["ranges"] = ranges;
  json["assumptions"] = prediction.assumptions;
  for (const std::string& assumption : cost.assumptions) json["assumptions"].push_back(assumption);
  return json.dump(2) + "\n";
}

std::string page_fields(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Prediction& prediction, const Cost& cost, const Knowledge& knowledge) {
  return fmt::format(R"("model":{},"peers":{},"prediction":{},"inputs":{})", Json(workload.model.name).dump(),
                     Json(to_string(peers)).dump(), to_json(prediction, cost),
                     inputs_of(workload, peers, knowledge).dump());
}

}  // namespace tw::plan
