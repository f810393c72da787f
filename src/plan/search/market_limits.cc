// SPDX-License-Identifier: Apache-2.0
#include "plan/search/market_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tw::plan {
namespace {

using market::Offer;

bool listed(const std::vector<std::string>& list, std::initializer_list<std::string> names) {
  if (list.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  });
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

/// The value of an offer that the limit of that name restricts.
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

}  // namespace

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

bool is_in_market(const Job& job, const Offer& offer) {
  return listed(job.providers, {offer.provider}) &&
         listed(job.regions, {offer.region, offer.provider + ":" + offer.region, offer.zone});
}

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

}  // namespace tw::plan
