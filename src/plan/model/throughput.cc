// SPDX-License-Identifier: Apache-2.0
#include "plan/model/throughput.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/result.h"
#include "base/text/quantity.h"
#include "plan/model/gpu_memory.h"
#include "plan/model/round_time.h"

namespace tw::plan {
namespace {

constexpr std::array<std::pair<Pattern, std::string_view>, 5> kPatterns{{
    {Pattern::tradewind, "tradewind"},
    {Pattern::tradewind_sites, "tradewind-sites"},
    {Pattern::hivemind, "hivemind"},
    {Pattern::ring, "ring"},
    {Pattern::parameter_server, "parameter-server"},
}};

/// 80 % ranges of averaging by Hivemind: published runs, each left out of its fit, lie within these factors.
constexpr double kOneSiteFactor = 1.09;
constexpr double kBetweenCloudsFactor = 1.2;
constexpr double kOnPremiseFactor = 1.3;
constexpr double kSentFactor = 1.035;

struct Speeds {
  Estimate all;
  std::vector<double> by_group;
  ReadRate reads;
  std::vector<std::string> assumptions;
};

/// The error of a GPU's speed is the same in all its groups; those of different GPUs are independent.
Result<Speeds> speeds_of(const Workload& workload, const std::vector<PeerGroup>& peers,
                         const Knowledge& knowledge) {
  const ModelProfile& model = workload.model;
  Speeds speeds;
  const bool alone = count_of(peers) == 1;
  std::map<std::string, double> errors;  ///< by GPU, samples/s
  for (const PeerGroup& group : peers) {
    TW_TRY(check_gpu_memory(model, group.gpu, group.gpu_memory_gib, knowledge.gpus));
    const auto by_itself = model.alone.find(group.gpu);
    TW_TRY(auto speed, alone&& by_itself != model.alone.end()
                           ? Speed{within_factor(by_itself->second.samples_per_s, by_itself->second.factor),
                                   by_itself->second.source, true}
                           : speed_of(model, group.gpu, knowledge.gpus));
    const Estimate& each = speed.samples_per_s;
    const double read_sps = card_samples_per_s(workload, knowledge.network, group);
    ReadRate reads = read_rate(model, group, each.value, read_sps);
    if (speeds.reads.peer.empty() || reads.share() > speeds.reads.share()) speeds.reads = std::move(reads);
    speeds.by_group.push_back(group.count * std::min(each.value, read_sps));
    speeds.all.value += speeds.by_group.back();
    errors[group.gpu] += speeds.by_group.back() * std::log(each.high / each.value);
    if (speed.measured) continue;
    const std::string several = several_gpus_text(group.gpu, speed.measured);
    if (!several.empty() && std::ranges::count(speeds.assumptions, several) == 0)
      speeds.assumptions.push_back(several);
    speeds.assumptions.push_back(fmt::format("{} on {}: {} samples/s, {}", model.name, group.gpu,
                                             significant(each.value, 4), speed.source));
  }
  double variance = 0;
  for (const auto& [gpu, error] : errors) variance += error * error;
  speeds.all = within_factor(speeds.all.value, std::exp(std::sqrt(variance) / speeds.all.value));
  return speeds;
}

void note_estimated_paths(const std::vector<PeerGroup>& peers, const market::NetworkProfile& network,
                          std::vector<std::string>& assumptions) {
  for (const PeerGroup& a : peers) {
    for (const PeerGroup& b : peers) {
      const market::PathRate path = network.path(network_site(a), network_site(b));
      if (!(a.site < b.site) || path.measured) continue;
      assumptions.push_back(fmt::format("{} to {}: {} Mbit/s a stream, {}", to_string(a.site),
                                        to_string(b.site), significant(path.stream_bytes_per_s * 8 / 1e6, 3),
                                        path.source));
    }
  }
}

double hivemind_factor(const std::vector<PeerGroup>& peers) {
  double factor = kOneSiteFactor;
  for (const PeerGroup& group : peers) {
    if (on_premise(group.site)) return kOnPremiseFactor;
    if (region_of(group.site) != region_of(peers.front().site)) factor = kBetweenCloudsFactor;
  }
  return factor;
}

RoundTime hivemind_time(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Knowledge& knowledge, double calc_s) {
  const HivemindRound round =
      hivemind_round(workload.model, peers, knowledge.network, knowledge.hivemind, calc_s);
  RoundTime time{round.comm_s, hivemind_factor(peers), sent_evenly(peers, round.sent_mb), ""};
  double longest_s = 0;
  for (const auto& [seconds, what] : std::initializer_list<std::pair<double, std::string>>{
           {round.matchmaking_s, "matchmaking"},
           {round.update_s, "update"},
           {round.exchange_s, "exchange"},
           {round.wire_s, "stream " + round.slowest},
           {round.card_s > round.update_s + round.exchange_s ? round.card_s : 0, "network card"}}) {
    if (seconds <= longest_s) continue;
    longest_s = seconds;
    time.limit = what;
  }
  return time;
}

/// The errors of calculating and averaging are independent.
Estimate sum_of(const Estimate& a, const Estimate& b) {
  const double sum = a.value + b.value;
  const double error = std::hypot(a.value * std::log(a.high / a.value),
                                  b.value > 0 ? b.value * std::log(b.high / b.value) : 0);
  return within_factor(sum, std::exp(error / sum));
}

}  // namespace

std::string_view to_string(Pattern pattern) {
  return std::find_if(kPatterns.begin(), kPatterns.end(),
                      [&](const auto& each) { return each.first == pattern; })
      ->second;
}

Result<Pattern> parse_pattern(const std::string& name) {
  for (const auto& [pattern, known] : kPatterns)
    if (name == known) return pattern;
  return Error{fmt::format("{}: unknown pattern; expected one of {}", name, pattern_names())};
}

std::string pattern_names() {
  std::vector<std::string_view> names;
  for (const auto& [pattern, known] : kPatterns) names.push_back(known);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Prediction> predict(const Workload& workload, const std::vector<PeerGroup>& peers,
                           const Knowledge& knowledge) {
  TW_TRY(auto speeds, speeds_of(workload, peers, knowledge));
  Prediction prediction;
  prediction.group_sps = std::move(speeds.by_group);
  prediction.reads = std::move(speeds.reads);
  const bool hivemind = workload.pattern == Pattern::hivemind;
  prediction.local_sps = speeds.all;
  prediction.round_samples =
      hivemind ? hivemind_round_samples(workload.model, count_of(peers), workload.target_batch_size)
               : workload.target_batch_size;
  const double local_factor = prediction.local_sps.high / prediction.local_sps.value;
  prediction.calc_s = within_factor(prediction.round_samples / prediction.local_sps.value, local_factor);
  const RoundTime time = hivemind ? hivemind_time(workload, peers, knowledge, prediction.calc_s.value)
                                  : derived_round(workload, peers, knowledge);
  prediction.comm_s = within_factor(time.comm_s, time.factor);
  if (workload.delayed) prediction.overlap_s = std::min(time.comm_s, prediction.calc_s.value);
  const Estimate round_s = sum_of(prediction.calc_s, prediction.comm_s);
  prediction.throughput_sps = within_factor(prediction.round_samples / (round_s.value - prediction.overlap_s),
                                            round_s.high / round_s.value);
  prediction.granularity =
      time.comm_s > 0 ? within_factor(prediction.calc_s.value / time.comm_s, local_factor * time.factor)
                      : within_factor(std::numeric_limits<double>::infinity(), 1);
  double sent = 0;
  for (const auto& row : time.sent_mb) sent += std::accumulate(row.begin(), row.end(), 0.0);
  prediction.sent_mb_per_peer_round = within_factor(sent / count_of(peers), kSentFactor);
  prediction.sent_mb = time.sent_mb;
  const char* calculation = prediction.reads.limits() ? "data" : "calculation";
  prediction.limit = prediction.calc_s.value >= time.comm_s ? calculation : time.limit;
  if (!prediction.reads.peer.empty())
    prediction.reads.requests_per_s = prediction.throughput_sps.value / samples_a_read(workload);
  prediction.assumptions = std::move(speeds.assumptions);
  note_estimated_paths(peers, knowledge.network, prediction.assumptions);
  return prediction;
}

double samples_a_read(const Workload& workload) {
  return workload.samples_a_read > 0 ? workload.samples_a_read : std::max(1.0, workload.model.microbatch);
}

double card_samples_per_s(const Workload& workload, const market::NetworkProfile& network,
                          const PeerGroup& peer) {
  const market::Site site = network_site(peer);
  return network.bytes_per_s(site, site, workload.streams) / (1e6 * workload.model.data_mb_per_sample);
}

ReadRate read_rate(const ModelProfile& model, const PeerGroup& peer, double samples_per_s,
                   double card_samples_per_s) {
  if (!(model.data_mb_per_sample > 0)) return {};
  const double mbit = 8 * model.data_mb_per_sample;
  return {.mbit_s = samples_per_s * mbit,
          .card_mbit_s = card_samples_per_s * mbit,
          .peer = fmt::format("{}@{}", peer.gpu, to_string(peer.site))};
}

double speed_up(double granularity, double times, bool hidden) {
  const auto round = [&](double calc) { return hidden ? std::max(1.0, calc) : 1 + calc; };
  return round(granularity) / round(granularity / times);
}

}  // namespace tw::plan
