// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text/fields.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "plan/advise/answers.h"

namespace tw::plan {
namespace {

constexpr int kMostSwept = 4096;

/// As many peers in all, in the proportions of the groups; groups without a peer are left out.
std::vector<PeerGroup> resized(const std::vector<PeerGroup>& peers, int count) {
  std::vector<PeerGroup> groups;
  int before = 0, given = 0;
  for (const PeerGroup& group : peers) {
    before += group.count;
    const int up_to = static_cast<int>(std::lround(1.0 * count * before / count_of(peers)));
    if (up_to > given) {
      groups.push_back(group);
      groups.back().count = up_to - given;
    }
    given = up_to;
  }
  return groups;
}

std::string usd_text(const std::optional<Estimate>& usd) {
  return usd ? significant(usd->value, 4) : "unknown";
}

}  // namespace

Result<SweepRange> parse_sweep(const std::string& text) {
  const Error wrong{fmt::format("{}: expected peers=FROM..TO with numbers from 1 to {}, such as peers=1..64",
                                text, kMostSwept)};
  constexpr std::string_view kName = "peers=";
  const std::size_t dots = text.find("..");
  if (!text.starts_with(kName) || dots == std::string::npos) return wrong;
  const auto least = number_in<int>(text.substr(kName.size(), dots - kName.size()), {1, kMostSwept});
  const auto most = number_in<int>(text.substr(dots + 2), {1, kMostSwept});
  if (!least || !most || *least > *most) return wrong;
  return SweepRange{*least, *most};
}

Result<std::vector<SweepPoint>> sweep(const Workload& workload, const std::vector<PeerGroup>& peers,
                                      SweepRange range, const Prices& prices) {
  std::set<int> counts{range.most};
  for (int count = range.least; count < range.most; count *= 2) counts.insert(count);
  std::vector<SweepPoint> points;
  for (const int count : counts) {
    SweepPoint point{.peers = resized(peers, count)};
    TW_TRY(auto prediction, predict(workload, point.peers));
    point.cost = cost_of(workload, point.peers, prediction, prices);
    point.prediction = std::move(prediction);
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<std::string> answers_of(const Workload& workload, const std::vector<SweepPoint>& points) {
  std::vector<FleetSpeed> fleets;
  for (const SweepPoint& point : points)
    if (point.cost.total_usd_per_h)
      fleets.push_back(
          {count_of(point.peers), point.prediction.throughput_sps.value, point.cost.total_usd_per_h->value});
  const SweepPoint& last = points.back();
  std::vector<std::string> answers{
      paying_answer(fleets),
      granularity_answer(last.prediction.granularity.value, workload.target_batch_size, workload.delayed)};
  if (last.cost.total_usd_per_h)
    answers.push_back(traffic_answer(last.cost.egress_usd_per_h.value, last.cost.total_usd_per_h->value,
                                     workload.target_batch_size));
  std::erase(answers, "");
  return answers;
}

std::string to_text(const Workload& workload, const std::vector<SweepPoint>& points) {
  std::string text = fmt::format("{:>6} {:>10} {:>8} {:>12} {:>9} {:>9}  {}\n", "peers", "samples/s",
                                 "linear", "granularity", "$/h", "$/1M", "limit");
  for (const SweepPoint& point : points) {
    const Prediction& p = point.prediction;
    text += fmt::format(
        "{:>6} {:>10} {:>6.0f} % {:>12} {:>9} {:>9}  {}\n", count_of(point.peers),
        significant(p.throughput_sps.value, 4), 100 * p.throughput_sps.value / p.local_sps.value,
        std::isfinite(p.granularity.value) ? significant(p.granularity.value, 3) : "none",
        usd_text(point.cost.total_usd_per_h), usd_text(point.cost.usd_per_million_samples), p.limit);
  }
  text += "\n";
  for (const std::string& answer : answers_of(workload, points)) text += answer + "\n";
  for (const std::string& assumption : points.back().prediction.assumptions)
    text += "assumed: " + assumption + "\n";
  for (const std::string& machine : points.back().cost.unpriced) text += "price: " + machine + "\n";
  for (const std::string& assumption : points.back().cost.assumptions) text += "price: " + assumption + "\n";
  return text;
}

}  // namespace tw::plan
