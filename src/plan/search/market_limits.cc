// SPDX-License-Identifier: Apache-2.0
#include "plan/search/market_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/text.h"
#include "market/catalog.h"
#include "market/gpu_name.h"
#include "plan/model/gpu_memory.h"

namespace tw::plan {
namespace {

using market::Offer;

using Names = std::vector<std::string>;

/// What the lists of a job may call an offer.
Names gpu_names(const Offer& offer) { return {offer.gpu, machine_name(offer)}; }

Names region_names(const Offer& offer) {
  Names names{offer.region, offer.provider + ":" + offer.region};
  if (!offer.zone.empty()) names.push_back(offer.zone);
  return names;
}

Names provider_names(const Offer& offer) { return {offer.provider}; }

Names purchase_names(const Offer& offer) { return {std::string(to_string(offer.purchase))}; }

Names quota_names(const Offer& offer) {
  return {offer.provider, offer.gpu, machine_name(offer), std::string(to_string(offer.purchase)),
          offer.quota_class};
}

/// A list of the job that says what may be rented, and what it calls an offer.
struct MarketList {
  const char* name;
  Names (*asked)(const Job& job);
  void (*lift)(Job& job);
  Names (*names_of)(const Offer& offer);
};

constexpr MarketList kLists[] = {
    {"gpus", [](const Job& job) { return job.gpus; }, [](Job& job) { job.gpus.clear(); }, gpu_names},
    {"regions", [](const Job& job) { return job.regions; }, [](Job& job) { job.regions.clear(); },
     region_names},
    {"providers", [](const Job& job) { return job.providers; }, [](Job& job) { job.providers.clear(); },
     provider_names},
    {"purchase",
     [](const Job& job) {
       Names names;
       for (const market::Purchase one : job.purchases) names.emplace_back(to_string(one));
       return names;
     },
     [](Job& job) { job.purchases.clear(); }, purchase_names}};

/// The case of own names is the user's: MyBox, or a quota class.
bool has_any(const Names& list, const Names& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::ranges::any_of(list, [&](const std::string& one) { return same_word(one, name); });
  });
}

bool allows(const Names& list, const Names& names) { return list.empty() || has_any(list, names); }

bool is_excluded(const Job& job, const Offer& offer) {
  return std::any_of(std::begin(kLists), std::end(kLists),
                     [&](const MarketList& list) { return has_any(job.exclude, list.names_of(offer)); });
}

struct BeforeInAnyCase {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::ranges::lexicographical_compare(a, b, {}, lower_letter, lower_letter);
  }
};

using NameSet = std::set<std::string, BeforeInAnyCase>;

/// A few of them, as text.
std::string some_of(const NameSet& names) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> few;
  for (const std::string& name : names) {
    if (few.size() == kMost) break;
    few.push_back(name);
  }
  return fmt::format("{}{}", fmt::join(few, ", "),
                     names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
}

}  // namespace

std::vector<Offer> all_offers(const Job& job, const std::vector<Offer>& offers) {
  std::vector<Offer> all = offers;
  for (const PeerGroup& group : job.owned) {
    const auto several = market::several_gpus(group.gpu);
    all.push_back({.provider = group.site.provider,
                   .region = group.site.region,
                   .zone = group.site.zone,
                   .failure_domain = to_string(group.site),
                   .vm_type = std::string(kOwnHost),
                   .gpu = several ? several->gpu : group.gpu,
                   .gpus = several ? several->count : 1.0,
                   .purchase = market::Purchase::owned,
                   .source = "JOB owned"});
  }
  return all;
}

bool is_own_host(const Job& job, const Offer& offer) {
  return offer.vm_type == kOwnHost &&
         std::any_of(job.owned.begin(), job.owned.end(), [&](const PeerGroup& group) {
           return group.gpu == machine_name(offer) && group.site == site_of(offer);
         });
}

std::string unfit(const Job& job, const Offer& offer) {
  if (is_own_host(job, offer)) return "";
  if (offer.gpu.empty()) return "machines without a GPU";
  if (offer.gpus != std::floor(offer.gpus) || offer.gpus < 1) return "machines with a part of a GPU";
  for (const MarketList& list : kLists) {
    const bool owned = list.names_of == purchase_names && offer.purchase == market::Purchase::owned;
    if (!owned && !allows(list.asked(job), list.names_of(offer))) return list.name;
  }
  return is_excluded(job, offer) ? "exclude" : "";
}

std::string quota_name(const std::string& written, const std::vector<Offer>& offers) {
  const bool is_class =
      std::ranges::any_of(offers, [&](const Offer& offer) { return same_word(offer.quota_class, written); });
  return is_class ? written : market_name(written);
}

bool is_in_quota(const std::string& name, const Offer& offer) { return has_any({name}, quota_names(offer)); }

bool is_in_market(const Job& job, const Offer& offer) {
  return allows(job.providers, provider_names(offer)) && allows(job.regions, region_names(offer)) &&
         !is_excluded(job, offer);
}

Result<Speed> speed_on(const MarketInputs& inputs, const Offer& offer) {
  const ModelProfile& model = inputs.workload.model;
  TW_TRY(const auto speed, speed_of(model, machine_name(offer), inputs.knowledge.gpus));
  TW_TRY(check_gpu_memory(model, machine_name(offer), offer.gpu_memory_gib, inputs.knowledge.gpus));
  return speed;
}

namespace {

/// Why the first of the offers that the job allows cannot train the model; empty: it allows none.
std::string why_unusable(const MarketInputs& inputs) {
  for (const Offer& offer : all_offers(inputs.job, inputs.offers)) {
    if (!unfit(inputs.job, offer).empty()) continue;
    if (const auto speed = speed_on(inputs, offer); !speed) return "; " + speed.error().message;
  }
  return "";
}

Names as_written_all(const Job& job, const std::string& list, Names names) {
  for (std::string& name : names) name = as_written(job, list, name);
  return names;
}

}  // namespace

Error no_offer(const MarketInputs& inputs) {
  std::vector<std::string> ways;
  const auto try_without = [&](const std::string& name, const Names& asked, const Job& job,
                               Names (*names_of)(const Offer&)) {
    NameSet there_are;
    for (const Offer& offer : all_offers(job, inputs.offers)) {
      if (unfit(job, offer).empty() && speed_on(inputs, offer)) there_are.insert(names_of(offer).back());
    }
    if (!there_are.empty())
      ways.push_back(fmt::format("{} {}: without this limit there are {}", name,
                                 fmt::join(as_written_all(inputs.job, name, asked), ", "),
                                 some_of(there_are)));
  };
  bool limited = !inputs.job.exclude.empty();
  for (const MarketList& list : kLists) {
    if (list.asked(inputs.job).empty()) continue;
    limited = true;
    Job job = inputs.job;
    list.lift(job);
    try_without(list.name, list.asked(inputs.job), job, list.names_of);
  }
  if (!inputs.job.exclude.empty()) {
    Job job = inputs.job;
    job.exclude.clear();
    try_without("exclude", inputs.job.exclude, job, gpu_names);
  }
  const std::string why = why_unusable(inputs);
  if (!ways.empty()) return Error{fmt::format("no offer fits. {}{}", fmt::join(ways, "; "), why)};
  return Error{fmt::format(
      "no offer{} of a machine that can train this model{}; see tw catalog list, and --offers FILE for your "
      "own",
      limited ? " fits, and lifting one of gpus, regions, providers, purchase and exclude does not help: "
                "there is none"
              : "",
      why)};
}

namespace {

/// The names by which a list of the job calls these offers.
NameSet names_in(const std::vector<Offer>& offers, Names (*names_of)(const Offer&)) {
  NameSet names;
  for (const Offer& offer : offers)
    for (std::string& name : names_of(offer)) names.insert(std::move(name));
  names.erase("");
  return names;
}

/// The names that a list of the job may hold: of offers today, or of what the program knows.
struct KnownNames {
  NameSet today, ever;

  void add(const KnownNames& others) {
    today.insert(others.today.begin(), others.today.end());
    ever.insert(others.ever.begin(), others.ever.end());
  }
};

KnownNames known_names(const std::vector<Offer>& offers, Names (*names_of)(const Offer&)) {
  KnownNames known{.today = names_in(offers, names_of), .ever = {}};
  known.ever = names_in(market::built_in_offers(), names_of);
  known.ever.insert(known.today.begin(), known.today.end());
  return known;
}

/// "K80" or "4xK80", though nobody may offer it.
bool is_gpu(const Gpus& gpus, const std::string& name) {
  const auto several = market::several_gpus(name);
  return gpus.find(several ? several->gpu : name).ok();
}

/// A misspelt name would limit nothing, or forbid nothing.
Error misspelt(const std::string& key, const std::string& name, const NameSet& names) {
  const Names known(names.begin(), names.end());
  const std::string meant = did_you_mean(name, std::span<const std::string>(known));
  return Error{fmt::format("{} {}: no offer has this name{}", key, name,
                           meant.empty() ? "; there are " + some_of(names) : meant)};
}

/// A name in a list of the job.
struct Listed {
  std::string key, name;
  std::string written;  ///< the name, by the user
  KnownNames known;
  bool may_be_gpu = false;
};

/// Without the words for a purchase, which their reader has checked.
std::vector<Listed> listed_in(const Job& job, const std::vector<Offer>& offers) {
  std::vector<Listed> all;
  KnownNames any;
  for (const MarketList& list : kLists) {
    const KnownNames known = known_names(offers, list.names_of);
    any.add(known);
    if (list.names_of == purchase_names) continue;
    for (const std::string& name : list.asked(job))
      all.push_back({list.name, name, as_written(job, list.name, name), known, list.names_of == gpu_names});
  }
  for (const std::string& name : job.exclude)
    if (!market::parse_purchase(name))
      all.push_back({"exclude", name, as_written(job, "exclude", name), any, true});
  for (const auto& [name, most] : job.quotas)
    all.push_back({"quotas", quota_name(name, offers), name, known_names(offers, quota_names), true});
  return all;
}

/// The offers of a day may lack what others have: that makes no job wrong.
Status check_lists(const MarketInputs& inputs) {
  for (const Listed& one : listed_in(inputs.job, all_offers(inputs.job, inputs.offers))) {
    const bool known =
        one.known.ever.contains(one.name) || (one.may_be_gpu && is_gpu(inputs.knowledge.gpus, one.name));
    if (!known) return misspelt(one.key, one.written, one.known.ever);
  }
  return Unit{};
}

}  // namespace

std::vector<std::string> names_without_offers(const MarketInputs& inputs) {
  std::vector<std::string> notes;
  for (const Listed& one : listed_in(inputs.job, all_offers(inputs.job, inputs.offers)))
    if (!one.known.today.contains(one.name) && !market::parse_purchase(one.name))
      notes.push_back(fmt::format("{}: {}: no offer has it today", one.key, one.written));
  return notes;
}

Status check_names(const MarketInputs& inputs) {
  for (const PeerGroup& group : inputs.job.owned) {
    const ModelProfile& model = inputs.workload.model;
    const auto speed = speed_of(model, group.gpu, inputs.knowledge.gpus);
    const Status fits = check_gpu_memory(model, group.gpu, 0, inputs.knowledge.gpus);
    if (!speed || !fits)
      return Error{fmt::format("owned {}: {}", to_string({group}),
                               speed ? fits.error().message : speed.error().message)};
  }
  return inputs.under_way ? Unit{} : check_lists(inputs);
}

}  // namespace tw::plan
