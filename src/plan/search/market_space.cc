// SPDX-License-Identifier: Apache-2.0
#include "plan/search/market_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "plan/search/site_rounds.h"

namespace tw::plan {
namespace {

using market::Offer;

/// From the request to the machine, where its offer does not say (CM-DARE, ICDCS 2020: 67 to 78 s, and as
/// much again until the worker trains).
constexpr double kStart_s = 75;
constexpr double kJoin_s = 80;

bool listed(const std::vector<std::string>& list, std::initializer_list<std::string> names) {
  if (list.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  });
}

/// What of the job's wishes the offer fails; empty: none.
std::string unfit(const Job& job, const Offer& offer) {
  if (offer.gpu.empty()) return "machines without a GPU";
  if (offer.gpus != std::floor(offer.gpus) || offer.gpus < 1) return "machines with a part of a GPU";
  if (!listed(job.providers, {offer.provider})) return "providers";
  if (!listed(job.regions, {offer.region, offer.provider + ":" + offer.region, offer.zone})) return "regions";
  if (!listed(job.gpus, {offer.gpu, machine_name(offer)})) return "gpus";
  if (job.purchase && offer.purchase != *job.purchase && offer.purchase != market::Purchase::owned)
    return "purchase";
  return "";
}

std::vector<Offer> all_offers(const Job& job, const std::vector<Offer>& offers) {
  std::vector<Offer> all = offers;
  for (const PeerGroup& group : job.owned) {
    const auto several = several_gpus(group.gpu);
    all.push_back({.provider = group.site.provider,
                   .region = group.site.region,
                   .zone = group.site.zone,
                   .failure_domain = to_string(group.site),
                   .vm_type = "own",
                   .gpu = several ? several->gpu : group.gpu,
                   .gpus = several ? several->count : 1.0,
                   .purchase = market::Purchase::owned,
                   .source = "JOB owned"});
  }
  return all;
}

int most_of(const Job& job, const Offer& offer) {
  for (const PeerGroup& group : job.owned)
    if (offer.vm_type == "own" && group.gpu == machine_name(offer) && group.site == site_of(offer))
      return group.count;
  return job.offer_max > 0 ? std::min(job.offer_max, job.peers_max) : job.peers_max;
}

/// Shocks come at a constant rate beside the law.
double mean_life_h(const market::LifetimeLaw& law, const Offer& offer, const market::ZoneShocks& shocks) {
  const double struck_per_h =
      offer.purchase == market::Purchase::spot ? shocks.per_day * shocks.share / 24 : 0;
  return 1 / (1 / law.expected_h() + struck_per_h);
}

/// A machine is waited for, joins, works, and is taken.
Candidate candidate_of(const MarketInputs& inputs, const Offer& offer, const Speed& speed) {
  Candidate one{
      .offer = offer,
      .site = network_site({1, machine_name(offer), site_of(offer)}),
      .samples_per_s = speed.samples_per_s.value,
      .usd_per_h = offer.usd_per_h,
      .speed_factor = speed.samples_per_s.high / speed.samples_per_s.value,
      .speed_source = speed.source,
      .lifetimes = offer.purchase == market::Purchase::spot ? lifetimes_for(offer) : market::never_taken()};
  one.start_s = (offer.start_up_s > 0 ? offer.start_up_s : kStart_s) + kJoin_s;
  one.join_s = kJoin_s;
  if (offer.purchase == market::Purchase::spot && !inputs.seen.empty())
    one.lifetimes = learned(one.lifetimes, inputs.seen);
  const double life_s = mean_life_h(one.lifetimes, offer, inputs.job.shocks) * 3600;
  if (std::isinf(life_s)) return one;
  one.working_share = std::max(0.0, life_s - kJoin_s) / (life_s + one.start_s - kJoin_s);
  one.paid_share = life_s / (life_s + one.start_s - kJoin_s);
  return one;
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

void add_quotas(const Job& job, MarketSpace& market) {
  for (const auto& [name, most] : job.quotas) {
    const int quota = static_cast<int>(market.space.quotas.size());
    market.space.quotas.push_back(most);
    for (std::size_t i = 0; i < market.candidates.size(); ++i) {
      const Offer& offer = market.candidates[i].offer;
      const bool counts = name == offer.quota_class || name == offer.provider || name == offer.gpu ||
                          name == machine_name(offer) || name == to_string(offer.purchase);
      if (counts && market.space.choices[i].quota < 0) market.space.choices[i].quota = quota;
    }
  }
}

template <class Value>
int place_of(std::vector<Value>& values, const Value& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<int>(found - values.begin());
  values.push_back(value);
  return static_cast<int>(values.size() - 1);
}

/// The cheapest of the same machine at the same site and in the same failure domain.
std::vector<Candidate> without_dearer_twins(std::vector<Candidate> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.usd_per_h < b.usd_per_h; });
  std::set<std::tuple<market::Site, std::string, market::Purchase, std::string, std::string>> seen;
  std::vector<Candidate> cheapest;
  for (Candidate& one : all)
    if (seen.insert({one.site, machine_name(one.offer), one.offer.purchase, one.offer.failure_domain,
                     one.offer.quota_class})
            .second)
      cheapest.push_back(std::move(one));
  return cheapest;
}

/// A few of them, as text.
std::string some_of(const std::set<std::string>& names) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> few;
  for (const std::string& name : names) {
    if (few.size() == kMost) break;
    few.push_back(name);
  }
  return fmt::format("{}{}", fmt::join(few, ", "),
                     names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
}

/// What the limit of that name is about.
std::string value_of(const std::string& limit, const Offer& offer) {
  if (limit == "gpus") return machine_name(offer);
  if (limit == "regions") return offer.provider + ":" + offer.region;
  return limit == "providers" ? offer.provider : std::string(to_string(offer.purchase));
}

std::string asked_of(const std::string& limit, const Job& job) {
  if (limit == "gpus") return fmt::format("{}", fmt::join(job.gpus, ", "));
  if (limit == "regions") return fmt::format("{}", fmt::join(job.regions, ", "));
  if (limit == "providers") return fmt::format("{}", fmt::join(job.providers, ", "));
  return std::string(to_string(job.purchase.value_or(market::Purchase::owned)));
}

/// The limits that alone leave nothing, with what there is without them.
Error no_offer(const MarketInputs& inputs) {
  std::vector<std::string> ways;
  for (const char* limit : {"gpus", "regions", "providers", "purchase"}) {
    Job job = inputs.job;
    if (std::string_view(limit) == "gpus") job.gpus.clear();
    if (std::string_view(limit) == "regions") job.regions.clear();
    if (std::string_view(limit) == "providers") job.providers.clear();
    if (std::string_view(limit) == "purchase") job.purchase.reset();
    if (job == inputs.job) continue;
    std::set<std::string> there_are;
    for (const Offer& offer : all_offers(job, inputs.offers))
      if (unfit(job, offer).empty() &&
          speed_of(inputs.workload.model, machine_name(offer), inputs.knowledge.gpus).ok())
        there_are.insert(value_of(limit, offer));
    if (!there_are.empty())
      ways.push_back(fmt::format("{} {}: without this limit there are {}", limit, asked_of(limit, inputs.job),
                                 some_of(there_are)));
  }
  if (!ways.empty()) return Error{fmt::format("no offer fits. {}", fmt::join(ways, "; "))};
  const bool limited = !inputs.job.gpus.empty() || !inputs.job.regions.empty() ||
                       !inputs.job.providers.empty() || inputs.job.purchase.has_value();
  return Error{
      fmt::format("no offer{} of a machine with a GPU of known speed; see tw catalog list, and --offers FILE "
                  "for your own",
                  limited ? " fits, and lifting one of gpus, regions, providers and purchase does not help: "
                            "there is none"
                          : "")};
}

/// Names that nothing in the market has, which are misspelt or not in the catalog.
void note_names_without_offers(const MarketInputs& inputs, std::vector<std::string>& notes) {
  const auto note = [&](const char* limit, const std::vector<std::string>& names, auto has) {
    for (const std::string& name : names)
      if (std::none_of(inputs.offers.begin(), inputs.offers.end(),
                       [&](const Offer& offer) { return has(offer, name); }))
        notes.push_back(fmt::format("{} {}: no offer has it", limit, name));
  };
  note("gpus", inputs.job.gpus, [](const Offer& offer, const std::string& name) {
    return name == offer.gpu || name == machine_name(offer);
  });
  note("regions", inputs.job.regions, [](const Offer& offer, const std::string& name) {
    return name == offer.region || name == offer.provider + ":" + offer.region || name == offer.zone;
  });
  note("providers", inputs.job.providers,
       [](const Offer& offer, const std::string& name) { return name == offer.provider; });
}

/// Hosts of one's own have a known speed; quotas name something.
Status check_names(const MarketInputs& inputs) {
  for (const PeerGroup& group : inputs.job.owned) {
    const auto speed = speed_of(inputs.workload.model, group.gpu, inputs.knowledge.gpus);
    if (!speed) return Error{fmt::format("owned {}: {}", to_string({group}), speed.error().message)};
  }
  for (const auto& [name, most] : inputs.job.quotas) {
    std::set<std::string> names;
    for (const Offer& offer : all_offers(inputs.job, inputs.offers))
      names.insert({offer.provider, offer.gpu, machine_name(offer), std::string(to_string(offer.purchase)),
                    offer.quota_class});
    names.erase("");
    if (names.find(name) == names.end())
      return Error{fmt::format("quotas {}: nothing counts for it; there are {}", name, some_of(names))};
  }
  return Unit{};
}

}  // namespace

std::string machine_name(const Offer& offer) {
  return offer.gpus > 1 ? fmt::format("{:g}x{}", offer.gpus, offer.gpu) : offer.gpu;
}

Result<MarketSpace> market_space(const MarketInputs& inputs) {
  if (const Status known = check_names(inputs); !known) return known.error();
  MarketSpace market;
  std::map<std::string, int> left_out;
  std::vector<Candidate> all;
  for (const Offer& offer : all_offers(inputs.job, inputs.offers)) {
    const std::string reason = unfit(inputs.job, offer);
    const auto speed = reason.empty()
                           ? speed_of(inputs.workload.model, machine_name(offer), inputs.knowledge.gpus)
                           : Result<Speed>(Error{""});
    if (speed) all.push_back(candidate_of(inputs, offer, speed.value()));
    if (!speed) ++left_out[reason.empty() ? "GPU of unknown speed: " + offer.gpu : reason];
  }
  if (all.empty()) return no_offer(inputs);
  note_names_without_offers(inputs, market.left_out);
  for (const auto& [reason, count] : left_out)
    market.left_out.push_back(fmt::format("{} offers left out: {}", count, reason));

  market.candidates = without_dearer_twins(std::move(all));
  std::vector<std::string> domains;
  for (const Candidate& one : market.candidates)
    market.space.choices.push_back({.site = static_cast<std::size_t>(place_of(market.sites, one.site)),
                                    .samples_per_s = one.samples_per_s * one.working_share,
                                    .usd_per_h = one.usd_per_h * one.paid_share,
                                    .most = most_of(inputs.job, one.offer),
                                    .domain = place_of(domains, one.offer.failure_domain)});
  market.params_m = inputs.workload.model.params_m;
  Space& space = market.space;
  space.sites = market.sites.size();
  space.most_peers = inputs.job.peers_max;
  space.least_domains = inputs.job.domains_min;
  space.delayed = inputs.job.delayed;
  space.samples_per_round = inputs.job.target_batch_size;
  space.usd_per_sample = inputs.workload.model.data_mb_per_sample / 1e3 * inputs.data_usd_per_gb;
  add_quotas(inputs.job, market);
  // shared_ptr: owned by the copies of the space's functions, which remember together.
  const auto rounds =
      std::make_shared<SiteRounds>(inputs.workload, peer_of_each_site(market), inputs.knowledge.network,
                                   inputs.tariffs, inputs.knowledge.hivemind);
  space.averaging = [rounds](const std::vector<int>& peers) { return rounds->of(peers); };
  space.least = [rounds](const PartialPlan& plan) { return rounds->least(plan); };
  return market;
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
