// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/text/csv.h"
#include "base/text/quantity.h"
#include "market/built_in.h"
#include "plan/methods/choice.h"
#include "plan/methods/deepvm.h"
#include "plan/model/gpu.h"

namespace tw::plan {
namespace {

using market::Purchase;

constexpr double kBytesPerParam = 12;  ///< of a checkpoint: parameter and two moments

/// DeepVM's measurements of a machine type (catalog/deepvm.csv).
struct KnownType {
  std::string gpu;
  double network_gbps = 0;
  double score = 0;                   ///< of its GPU
  std::optional<SigmoidSpeed> speed;  ///< by number of machines
};

const std::map<std::string, KnownType>& known_types() {
  static const std::map<std::string, KnownType> types = [] {
    std::map<std::string, KnownType> read;
    const CsvTable table =
        CsvTable::parse("deepvm.csv", market::built_in_file("deepvm.csv"), {"vm_type"}).value();
    for (std::size_t i = 0; i < table.size(); ++i) {
      CsvRow row = table.row(i);
      KnownType& type = read[row.word("vm_type")];
      type = {row.text("gpu"), row.number("network_gbps"), row.number_or("score", 0), std::nullopt};
      if (!row.empty("sigmoid_a"))
        type.speed = SigmoidSpeed{row.number("sigmoid_a"), row.number("sigmoid_b"), row.number("sigmoid_c")};
    }
    return read;
  }();
  return types;
}

/// Workers per anchor stay below it, by the lesser bandwidth in Gbit/s: the publication's table.
const std::map<double, int> kSaturation{{0.3, 2},   {1.7, 12}, {5, 16},  {10, 20},
                                        {12.5, 24}, {15, 24},  {25, 28}, {30, 32}};

/// No bend: linear speed-up.
constexpr SigmoidSpeed kNeverBends{.a = 1, .b = 1e9, .c = 1};

/// Scores of all GPUs on one scale: the job's, else DeepVM's if it has all of them, else data sheets.
class Scores {
 public:
  explicit Scores(const MethodTask& task) : own_(task.job.methods.deepvm_scores) {
    for (const auto& [vm_type, type] : known_types())
      if (type.score > 0) published_[type.gpu] = type.score;
    for (const Candidate& one : task.market.candidates)
      measured_ = measured_ && (one.offer.gpu.empty() || own_.contains(one.offer.gpu) ||
                                published_.contains(one.offer.gpu));
  }

  /// 0: not known.
  double of(const market::Offer& offer) const {
    if (const auto own = own_.find(offer.gpu); own != own_.end()) return own->second * offer.gpus;
    if (measured_) return published_.at(offer.gpu) * offer.gpus;
    const auto sheet = Gpus::built_in().find(offer.gpu);
    return sheet ? sheet.value().tensor_tflops * offer.gpus : 0;
  }

  std::string source() const { return measured_ ? "DeepVM's" : "dense fp16 TFLOPS of data sheets"; }

 private:
  std::map<std::string, double> own_;
  std::map<std::string, double> published_;
  bool measured_ = true;
};

/// Candidates for one kind of machine at a site.
struct Pair {
  std::optional<std::size_t> spot, on_demand;
};

/// DeepVM's market of one site, and the candidates behind its names.
struct SiteMarket {
  DeepVmMarket deepvm;
  std::map<std::string, Pair> workers;
  std::map<std::string, std::size_t> anchors;
};

double gbps_of(const market::Offer& offer) {
  const auto known = known_types().find(offer.vm_type);
  return known == known_types().end() ? offer.network_gbps : known->second.network_gbps;
}

/// Counts stay below the quota, as published.
void set_quota(const MarketSpace& market, std::size_t candidate, const std::string& name,
               DeepVmMarket& deepvm) {
  VcpuQuota& quota = deepvm.quotas[name];
  const bool spot = market.candidates[candidate].offer.purchase == Purchase::spot;
  (spot ? quota.spot : quota.on_demand) = most_of(market, candidate);
}

GpuMachine machine_of(const MarketSpace& market, const Pair& pair, const Scores& scores,
                      const std::string& name) {
  const market::Offer& spot = market.candidates[*pair.spot].offer;
  const auto known = known_types().find(spot.vm_type);
  return {.name = name,
          .quota_class = name,
          .vcpus = 1,
          .network_gbps = gbps_of(spot),
          .flops_score = scores.of(spot),
          .on_demand_usd_h = market.candidates[*pair.on_demand].usd_per_h,
          .spot_usd_h = market.candidates[*pair.spot].usd_per_h,
          .speed = known != known_types().end() && known->second.speed ? *known->second.speed : kNeverBends,
          .measured_s = {}};
}

SiteMarket market_at(const MethodTask& task, const market::Site& site, const Scores& scores) {
  SiteMarket at;
  const auto& all = task.market.candidates;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const market::Offer& offer = all[i].offer;
    if (site_of(offer) != site || offer.purchase == Purchase::owned) continue;
    if (offer.gpu.empty()) {
      set_quota(task.market, i, offer.vm_type, at.deepvm);
      at.anchors.emplace(offer.vm_type, i);
      at.deepvm.anchors.push_back({.name = offer.vm_type,
                                   .quota_class = offer.vm_type,
                                   .vcpus = 1,
                                   .network_gbps = gbps_of(offer),
                                   .memory_gib = offer.memory_gib,
                                   .on_demand_usd_h = all[i].usd_per_h});
      continue;
    }
    const std::string name = machine_name(offer);
    if (!at.workers.contains(name)) order.push_back(name);
    auto& place = offer.purchase == Purchase::spot ? at.workers[name].spot : at.workers[name].on_demand;
    if (!place) place = i;  // the cheapest comes first
    set_quota(task.market, i, name, at.deepvm);
  }
  for (const std::string& name : order) {
    const Pair& pair = at.workers.at(name);
    if (!pair.spot || !pair.on_demand) continue;
    at.deepvm.workers.push_back(machine_of(task.market, pair, scores, name));
    if (at.deepvm.workers.back().flops_score == 0) at.deepvm.workers.pop_back();
  }
  at.deepvm.saturation = kSaturation;
  return at;
}

DeepVmPolicy policy_of(Method method) {
  if (method == Method::cost_first) return DeepVmPolicy::cost_first;
  return method == Method::performance_first ? DeepVmPolicy::performance_first : DeepVmPolicy::with_scaling;
}

struct Found {
  SiteMarket market;
  DeepVmCluster cluster;
  market::Site site;
};

const GpuMachine& worker_of(const Found& found) {
  return *std::find_if(found.market.deepvm.workers.begin(), found.market.deepvm.workers.end(),
                       [&](const GpuMachine& one) { return one.name == found.cluster.worker; });
}

/// True if site a is better than b, by the measure of the method.
bool goes_before(Method method, const Found& a, const Found& b) {
  const auto measure = [&](const Found& one) {
    if (method == Method::cost_first) return std::pair<double, double>(one.cluster.workers, 0);
    if (method == Method::performance_first)
      return std::pair<double, double>(worker_of(one).flops_score, one.cluster.workers);
    return std::pair<double, double>(one.cluster.objective, 0);
  };
  const auto first = measure(a), second = measure(b);
  return first != second ? first > second : a.cluster.usd_per_h < b.cluster.usd_per_h;
}

std::vector<int> counts_of(const MethodTask& task, const Found& found) {
  std::vector<int> counts(task.market.candidates.size());
  const Pair& pair = found.market.workers.at(found.cluster.worker);
  const bool tiers = !found.cluster.anchor.empty();
  counts[*pair.spot] = found.cluster.workers - (tiers ? 0 : 1);
  if (!tiers) counts[*pair.on_demand] = 1;
  if (tiers) counts[found.market.anchors.at(found.cluster.anchor)] = found.cluster.anchors;
  return counts;
}

std::string reason_of(Method method, const Found& found, double limit) {
  const DeepVmCluster& one = found.cluster;
  const std::string cluster = one.anchor.empty()
                                  ? fmt::format("single anchor, {} x {}", one.workers, one.worker)
                                  : fmt::format("tiering, {} x {} with {} x {} for checkpoints", one.workers,
                                                one.worker, one.anchors, one.anchor);
  const std::string price = fmt::format("{} of {} $/h", significant(one.usd_per_h, 4), significant(limit, 4));
  if (method == Method::cost_first) return fmt::format("most machines: {}; {}", cluster, price);
  if (method == Method::performance_first)
    return fmt::format("highest score ({}): {}; {}", significant(worker_of(found).flops_score, 4), cluster,
                       price);
  return fmt::format("FLOPP x {} x K {} = {}, score {}: {}; {}", one.workers,
                     significant(one.scaling_factor, 4), significant(one.objective, 4),
                     significant(one.score, 4), cluster, price);
}

double checkpoint_gib(const MethodTask& task) {
  const double given = task.job.methods.deepvm_checkpoint_gib;
  return given > 0 ? given : kBytesPerParam * task.market.params_m * 1e6 / std::exp2(30);
}

}  // namespace

Result<MethodChoice> choose_by_deepvm(Method method, const MethodTask& task) {
  const double own = task.job.methods.deepvm_usd_per_h;
  const double limit = own > 0 ? own : task.usd_per_h;
  const DeepVmRequest request{
      .usd_per_h = limit, .buffers = task.job.methods.deepvm_buffers, .checkpoint_gib = checkpoint_gib(task)};
  const Scores scores(task);
  std::optional<Found> best;
  bool any = false;
  std::vector<market::Site> sites;
  for (const Candidate& one : task.market.candidates) {
    const market::Site site = site_of(one.offer);
    if (std::find(sites.begin(), sites.end(), site) != sites.end()) continue;
    sites.push_back(site);
    Found found{market_at(task, site, scores), {}, site};
    any = any || !found.market.deepvm.workers.empty();
    const auto ranked = recommend(found.market.deepvm, request, policy_of(method));
    if (ranked.empty()) continue;
    found.cluster = ranked.front();
    if (!best || goes_before(method, found, *best)) best = std::move(found);
  }
  if (!any) return Error{"no machine is sold both spot and on-demand at one site, which it needs"};
  if (!best)
    return Error{
        fmt::format("no cluster of two machines or more costs at most {} $/h", significant(limit, 4))};
  MethodChoice choice{counts_of(task, *best), reason_of(method, *best, limit), {}};
  if (method != Method::cost_first)
    choice.assumptions.push_back(
        fmt::format("{}: scores of GPUs are {}", to_string(method), scores.source()));
  if (worker_of(*best).speed.b == kNeverBends.b)
    choice.assumptions.push_back(fmt::format("{}: no scaling factor is known of {}, so it is 1",
                                             to_string(method), best->cluster.worker));
  return choice;
}

}  // namespace tw::plan
