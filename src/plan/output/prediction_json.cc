// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/number.h"
#include "plan/model/round_time.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

/// null if there is no number, as for the granularity of a lone peer.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json range(const Estimate& estimate) { return {number(estimate.low), number(estimate.high)}; }

/// null where a machine has no price.
Json priced(const std::optional<Estimate>& usd) { return usd ? number(usd->value) : Json(nullptr); }

Json priced_range(const std::optional<Estimate>& usd) { return usd ? range(*usd) : Json{nullptr, nullptr}; }

/// Factors of the peers of each group, of all bandwidths, of the target batch size.
constexpr double kPeers[] = {0.125, 0.25, 0.5, 1, 2, 4, 8};
constexpr double kBandwidths[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};
constexpr double kBatches[] = {1.0 / 16, 0.25, 0.5, 1, 2, 4, 16};
constexpr int kMostPeers = 1024;

/// Six digits: the page shows fewer.
Json rounded(double value) {
  return number(std::isfinite(value) ? *parse_number<double>(fmt::format("{:.6g}", value)) : value);
}

std::vector<PeerGroup> times(std::vector<PeerGroup> peers, double factor) {
  for (PeerGroup& group : peers)
    group.count = std::max(1, static_cast<int>(std::lround(group.count * factor)));
  return peers;
}

Lines times(Lines lines, double factor) {
  for (double& card : lines.card) card *= factor;
  for (std::vector<double>& row : lines.pair)
    for (double& pair : row) pair *= factor;
  return lines;
}

/// Rounds of these peers at each bandwidth and batch: {samples/s, seconds, seconds of averaging,
/// granularity}.
Json rounds_of(const Workload& workload, const std::vector<PeerGroup>& peers, double local_sps,
               const Lines& lines) {
  Json rounds = Json::array();
  for (const double bandwidth : kBandwidths) {
    const double comm_s = derived_round(workload, peers, times(lines, bandwidth)).comm_s;
    Json row = Json::array();
    for (const double batch : kBatches) {
      const double samples = std::max(1.0, std::round(workload.target_batch_size * batch));
      const double calc_s = samples / local_sps;
      const double round_s = calc_s + comm_s - (workload.delayed ? std::min(comm_s, calc_s) : 0);
      row.push_back(
          {rounded(samples / round_s), rounded(round_s), rounded(comm_s), rounded(calc_s / comm_s)});
    }
    rounds.push_back(std::move(row));
  }
  return rounds;
}

/// The cost of these peers in dollars: of the machines an hour (null: there are some without a price), of a
/// round's traffic, and of the data of a sample. Bandwidth and batch change neither of these.
Json usd_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Prediction& prediction,
            const Prices& prices) {
  const Cost cost = cost_of(workload, peers, prediction, prices);
  const double per_round = cost.egress_usd_per_h.value * prediction.round_s() / 3600;
  const double per_sample = cost.data_usd_per_h.value / 3600 / prediction.throughput_sps.value;
  return {{"machines", priced(cost.vm_usd_per_h)},
          {"of_round", rounded(per_round)},
          {"of_sample", rounded(per_sample)}};
}

/// Predictions for every position of the sliders. null for Hivemind's pattern, whose law knows no lines.
Json answers_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Prices& prices) {
  if (workload.pattern == Pattern::hivemind) return nullptr;
  Json answers{{"peers", Json::array()},
               {"bandwidth", kBandwidths},
               {"tbs", Json::array()},
               {"rounds", Json::array()},
               {"usd", Json::array()},
               {"as_it_is", {{"peers", count_of(peers)}, {"tbs", workload.target_batch_size}}}};
  for (const double batch : kBatches)
    answers["tbs"].push_back(std::max(1.0, std::round(workload.target_batch_size * batch)));
  const Knowledge knowledge;
  for (const double factor : kPeers) {
    const std::vector<PeerGroup> scaled = times(peers, factor);
    const int count = count_of(scaled);
    if ((count > kMostPeers && factor > 1) || (!answers["peers"].empty() && answers["peers"].back() == count))
      continue;
    const auto prediction = predict(workload, scaled, knowledge);
    if (!prediction) continue;
    answers["peers"].push_back(count);
    answers["rounds"].push_back(rounds_of(workload, scaled, prediction.value().local_sps.value,
                                          lines_of(workload, scaled, knowledge.network)));
    answers["usd"].push_back(usd_of(workload, scaled, prediction.value(), prices));
  }
  return answers;
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
  const std::initializer_list<std::pair<const char*, std::optional<Estimate>>> per_h{
      {"vm", cost.vm_usd_per_h},
      {"egress", cost.egress_usd_per_h},
      {"data", cost.data_usd_per_h},
      {"total", cost.total_usd_per_h}};
  for (const auto& [name, usd] : per_h) {
    json["usd_per_h"][name] = priced(usd);
    ranges["usd_per_h"][name] = priced_range(usd);
  }
  json["usd_per_million_samples"] = priced(cost.usd_per_million_samples);
  ranges["usd_per_million_samples"] = priced_range(cost.usd_per_million_samples);
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
  for (const std::string& machine : cost.unpriced) json["assumptions"].push_back(machine);
  for (const std::string& assumption : cost.assumptions) json["assumptions"].push_back(assumption);
  return json.dump(2) + "\n";
}

std::string page_fields(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Prediction& prediction, const Cost& cost, const Prices& prices) {
  return fmt::format(R"("model":{},"peers":{},"prediction":{},"answers":{})",
                     Json(workload.model.name).dump(), Json(to_string(peers)).dump(),
                     to_json(prediction, cost), answers_of(workload, peers, prices).dump());
}

}  // namespace tw::plan
