// SPDX-License-Identifier: Apache-2.0
#include "plan/search/market_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/result.h"
#include "plan/model/checkpoint_interval.h"
#include "plan/search/market_limits.h"
#include "plan/search/site_rounds.h"

namespace tw::plan {
namespace {

/// Bytes of the state a parameter: fp32 and two moments of the optimizer, where no profile says more.
constexpr double kStateBytes = 12;

using market::Offer;

/// From the request to the machine, if its offer does not say (CM-DARE, ICDCS 2020: 67 to 78 s, and the same
/// again until the worker trains).
constexpr double kStart_s = 75;
constexpr double kJoin_s = 80;

int most_of(const Job& job, const Offer& offer) {
  for (const PeerGroup& group : job.owned)
    if (offer.vm_type == kOwnHost && group.gpu == machine_name(offer) && group.site == site_of(offer))
      return group.count;
  return job.offer_max > 0 ? std::min(job.offer_max, job.peers_max) : job.peers_max;
}

/// Mean lifetime with shocks, which come at a constant rate in addition to the law.
double mean_life_h(const market::LifetimeLaw& law, const Offer& offer, const market::ZoneShocks& shocks) {
  const double struck_per_h =
      offer.purchase == market::Purchase::spot ? shocks.per_day * shocks.share / 24 : 0;
  return 1 / (1 / law.expected_h() + struck_per_h);
}

/// A candidate with mean times of its cycle: it is waited for, joins, works, and is taken.
Candidate candidate_of(const MarketInputs& inputs, const Offer& offer, const Speed& speed) {
  Candidate one{
      .offer = offer,
      .site = network_site({1, machine_name(offer), site_of(offer)}),
      .samples_per_s = speed.samples_per_s.value,
      .usd_per_h = offer.usd_per_h,
      .speed_factor = speed.samples_per_s.high / speed.samples_per_s.value,
      .speed_source = speed.source,
      .measured = speed.measured,
      .lifetimes = offer.purchase == market::Purchase::spot ? lifetimes_for(offer) : market::never_taken()};
  const PeerGroup peer{1, machine_name(offer), site_of(offer)};
  const double card_sps = card_samples_per_s(inputs.workload, inputs.knowledge.network, peer);
  one.reads = read_rate(inputs.workload.model, peer, one.samples_per_s, card_sps);
  one.samples_per_s = std::min(one.samples_per_s, card_sps);
  one.start_s = (offer.start_up_s > 0 ? offer.start_up_s : kStart_s) + kJoin_s;
  one.join_s = kJoin_s;
  one.free_traffic = !inputs.tariffs.knows(site_of(offer));
  if (offer.purchase == market::Purchase::spot && !inputs.seen.empty())
    one.lifetimes = learned(one.lifetimes, inputs.seen);
  const double life_s = mean_life_h(one.lifetimes, offer, inputs.job.shocks) * 3600;
  if (std::isinf(life_s)) return one;
  one.taken_per_h = 3600 / life_s;
  one.working_share = std::max(0.0, life_s - kJoin_s) / (life_s + one.start_s - kJoin_s);
  one.paid_share = life_s / (life_s + one.start_s - kJoin_s);
  return one;
}

/// On-demand machines without a GPU, at sites of others, in the order of the offers.
std::vector<Candidate> idle_anchors(const MarketInputs& inputs, const std::vector<Candidate>& others) {
  std::vector<Candidate> anchors;
  for (const Offer& offer : inputs.offers) {
    const bool idle = offer.gpu.empty() && offer.purchase == market::Purchase::on_demand;
    if (!idle || !is_in_market(inputs.job, offer)) continue;
    const auto here = [&](const Candidate& one) { return site_of(one.offer) == site_of(offer); };
    const auto other = std::find_if(others.begin(), others.end(), here);
    if (other == others.end()) continue;
    Candidate one = candidate_of(inputs, offer, {within_factor(1, 1), "trains nothing", true});
    one.site = other->site;
    one.samples_per_s = 0;
    anchors.push_back(std::move(one));
  }
  return anchors;
}

std::string name_of_gpu_at(const MarketSpace& market, std::size_t site) {
  for (const Candidate& one : market.candidates)
    if (one.site == market.sites[site]) return machine_name(one.offer);
  return "";
}

std::vector<PeerGroup> peer_of_each_site(const MarketSpace& market) {
  std::vector<PeerGroup> peers;
  for (std::size_t site = 0; site < market.sites.size(); ++site)
    peers.push_back({1, name_of_gpu_at(market, site), market.sites[site]});
  return peers;
}

/// Offers that fit but for one reason, with the names of machines for which it holds.
class LeftOut {
 public:
  void add(const Offer& offer, std::string reason) {
    for (const std::string& name : {machine_name(offer), offer.gpu}) {
      if (name.empty() || !reason.starts_with(name + ": ")) continue;
      reason.erase(0, name.size() + 2);
      const std::string option = "--name " + name + " ";
      if (const auto at = reason.find(option); at != std::string::npos)
        reason.replace(at, option.size(), "--name GPU ");
      groups_[reason].machines.insert(machine_name(offer));
      break;
    }
    ++groups_[reason].offers;
  }

  /// "3 offers left out: 2xM60, M60: 8 GiB of GPU memory".
  std::vector<std::string> notes() const {
    constexpr std::size_t kMostNamed = 12;
    std::vector<std::string> notes;
    for (const auto& [reason, group] : groups_) {
      std::vector<std::string> names(group.machines.begin(), group.machines.end());
      const std::size_t more = names.size() - std::min(names.size(), kMostNamed);
      names.resize(names.size() - more);
      std::string whose =
          fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
      if (!whose.empty()) whose += ": ";
      notes.push_back(fmt::format("{} offer{} left out: {}{}", group.offers, group.offers == 1 ? "" : "s",
                                  whose, reason));
    }
    return notes;
  }

 private:
  struct Group {
    int offers = 0;
    std::set<std::string> machines;
  };

  std::map<std::string, Group> groups_;  ///< by reason
};

template <class Value>
int place_of(std::vector<Value>& values, const Value& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<int>(found - values.begin());
  values.push_back(value);
  return static_cast<int>(values.size() - 1);
}

void add_choices(const MarketInputs& inputs, MarketSpace& market) {
  std::vector<std::string> domains;
  for (const Candidate& one : market.candidates) {
    Choice choice{.site = static_cast<std::size_t>(place_of(market.sites, one.site)),
                  .samples_per_s = one.samples_per_s * one.working_share,
                  .usd_per_h = one.usd_per_h * one.paid_share,
                  .most = one.samples_per_s > 0 ? most_of(inputs.job, one.offer) : 0,
                  .domain = place_of(domains, one.offer.failure_domain),
                  .away = 1 - one.working_share};
    if (one.offer.notice_s < market.space.checkpoint_s) {
      choice.lost_per_h = one.taken_per_h;
      choice.struck = one.offer.purchase == market::Purchase::spot ? inputs.job.shocks.share : 0;
    }
    market.space.choices.push_back(choice);
  }
}

void add_quotas(const MarketInputs& inputs, MarketSpace& market) {
  for (const auto& [written, most] : inputs.job.quotas) {
    const std::string name = quota_name(written, inputs.offers);
    const int quota = static_cast<int>(market.space.quotas.size());
    market.space.quotas.push_back(most);
    for (std::size_t i = 0; i < market.candidates.size(); ++i)
      if (is_in_quota(name, market.candidates[i].offer)) market.space.choices[i].quotas.push_back(quota);
  }
}

void price_reads(const MarketInputs& inputs, MarketSpace& market) {
  std::vector<double> usd;
  for (const Candidate& one : market.candidates)
    usd.push_back(data_usd_per_sample(inputs.workload, inputs.job.data, inputs.tariffs, site_of(one.offer)));
  market.space.usd_per_sample = *std::min_element(usd.begin(), usd.end());
  for (std::size_t i = 0; i < usd.size(); ++i)
    market.space.choices[i].usd_per_sample = usd[i] - market.space.usd_per_sample;
}

bool lives_as_long(const market::LifetimeLaw& law, const market::LifetimeLaw& other) {
  constexpr int kHours = 48;  // beyond the measured tables; then the means decide
  for (int hours = 1; hours <= kHours; ++hours)
    if (law.gone_by(hours) > other.gone_by(hours)) return false;
  return law.expected_h() >= other.expected_h();
}

/// Whether a machine serves at least as well as its twin: it starts, lives and warns no worse.
bool serves_as_well(const Candidate& one, const Candidate& twin) {
  return one.start_s <= twin.start_s && one.offer.notice_s >= twin.offer.notice_s &&
         lives_as_long(one.lifetimes, twin.lifetimes);
}

/// Keeps those of equal machines, at one site and in one failure domain, that no cheaper one is as good as.
std::vector<Candidate> without_dearer_twins(std::vector<Candidate> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.usd_per_h < b.usd_per_h; });
  using TwinKey = std::tuple<market::Site, std::string, market::Purchase, std::string, std::string>;
  std::map<TwinKey, std::vector<std::size_t>> twins;  // places in `kept`
  std::vector<Candidate> kept;
  for (Candidate& one : all) {
    std::vector<std::size_t>& cheaper = twins[{one.site, machine_name(one.offer), one.offer.purchase,
                                               one.offer.failure_domain, one.offer.quota_class}];
    const bool needless =
        std::ranges::any_of(cheaper, [&](std::size_t twin) { return serves_as_well(kept[twin], one); });
    if (needless) continue;
    cheaper.push_back(kept.size());
    kept.push_back(std::move(one));
  }
  return kept;
}

}  // namespace

std::string machine_name(const Offer& offer) {
  if (offer.gpu.empty()) return offer.vm_type;
  return offer.gpus > 1 ? fmt::format("{:g}x{}", offer.gpus, offer.gpu) : offer.gpu;
}

Result<MarketSpace> market_space(const MarketInputs& inputs) {
  TW_TRY(check_names(inputs));
  MarketSpace market;
  LeftOut left_out;
  std::vector<Candidate> all;
  for (const Offer& offer : all_offers(inputs.job, inputs.offers)) {
    const std::string reason = unfit(inputs.job, offer);
    const auto speed = reason.empty() ? speed_on(inputs, offer) : Result<Speed>(Error{reason});
    if (speed) all.push_back(candidate_of(inputs, offer, speed.value()));
    if (!speed) left_out.add(offer, speed.error().message);
  }
  if (all.empty()) return no_offer(inputs);
  market.left_out = left_out.notes();
  for (std::string& note : names_without_offers(inputs)) market.left_out.push_back(std::move(note));

  market.candidates = without_dearer_twins(std::move(all));
  if (inputs.idle_anchors)
    for (Candidate& one : idle_anchors(inputs, market.candidates))
      market.candidates.push_back(std::move(one));
  const double state_mb = inputs.workload.model.state_mb;
  market.params_m = inputs.workload.model.params_m;
  market.state_gb = (state_mb > 0 ? state_mb : kStateBytes * market.params_m) / 1e3;
  market.tariffs = &inputs.tariffs;
  market.tensors = inputs.workload.model.tensors;
  Space& space = market.space;
  space.checkpoint_s = remote_checkpoint_s(1e3 * market.state_gb);
  space.shocks_per_h = inputs.job.shocks.per_day / 24;
  add_choices(inputs, market);
  space.sites = market.sites.size();
  space.most_peers = inputs.job.peers_max;
  space.least_domains = inputs.job.domains_min;
  space.delayed = inputs.job.delayed();
  space.samples_per_round = inputs.job.target_batch_size;
  market.samples_a_read = samples_a_read(inputs.workload);
  market.data = data_assumption(inputs.workload, inputs.job.data);
  price_reads(inputs, market);
  add_quotas(inputs, market);
  // shared_ptr: owned by the copies of the space's functions, which share its cache.
  const auto rounds =
      std::make_shared<SiteRounds>(inputs.workload, peer_of_each_site(market), inputs.knowledge.network,
                                   inputs.tariffs, inputs.knowledge.hivemind);
  space.averaging = [rounds](const std::vector<int>& peers) { return rounds->of(peers); };
  space.least = [rounds](const PartialPlan& plan) { return rounds->least(plan); };
  return market;
}

double state_usd(const MarketSpace& market, const std::vector<market::Site>& holders,
                 const market::Site& machine) {
  TW_CHECK(market.tariffs != nullptr);
  double least = std::numeric_limits<double>::infinity();
  for (const market::Site& holder : holders)
    least = std::min(least, market.tariffs->usd(holder, machine, market.state_gb));
  return holders.empty() ? 0 : least;
}

std::vector<PeerGroup> groups_of(const MarketSpace& market, const std::vector<int>& counts) {
  std::map<std::pair<market::Site, std::string>, int> merged;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      merged[{site_of(market.candidates[i].offer), machine_name(market.candidates[i].offer)}] += counts[i];
  std::vector<PeerGroup> groups;
  for (const auto& [where, count] : merged) groups.push_back({count, where.second, where.first});
  std::stable_sort(groups.begin(), groups.end(),
                   [](const PeerGroup& a, const PeerGroup& b) { return a.count > b.count; });
  return groups;
}

}  // namespace tw::plan
