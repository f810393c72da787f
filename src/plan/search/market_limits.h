// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/search/market_space.h"

/// Offers that the limits of a job allow, and the error when there are none.
namespace tw::plan {

/// The type of machine of the job's own hosts.
inline constexpr std::string_view kOwnHost = "own";

/// A host of the list `owned`: the job names it itself, so the lists of what may be rented do not concern it.
bool is_own_host(const Job& job, const market::Offer& offer);

/// Speed of the model on the machine; an error if it is not known, cannot be, or the model does not fit.
Result<Speed> speed_on(const MarketInputs& inputs, const market::Offer& offer);

/// Offers of the market and the job's own hosts.
std::vector<market::Offer> all_offers(const Job& job, const std::vector<market::Offer>& offers);

/// The limits of the job that the offer violates; empty: none.
std::string unfit(const Job& job, const market::Offer& offer);

/// What the offers call a quota of the job: a quota class of theirs as it is written, for its name is the
/// user's own, such as "NVIDIA T4"; else as market_name().
std::string quota_name(const std::string& written, const std::vector<market::Offer>& offers);

/// Whether machines of the offer count for the quota with this quota_name().
bool is_in_quota(const std::string& name, const market::Offer& offer);

/// Checks only providers, regions and what is excluded.
bool is_in_market(const Job& job, const market::Offer& offer);

/// Names limits each of which leaves no offer, and what there is without them.
Error no_offer(const MarketInputs& inputs);

/// The user's own hosts must have a known speed and enough memory. Each name in regions, providers, gpus,
/// exclude and quotas must be that of an offer, in any case, today or among the built-in ones, or of a known
/// GPU, whether or not the job's other limits allow it (not under_way).
Status check_names(const MarketInputs& inputs);

/// "exclude: K80: no offer has it today", for each name in these lists.
std::vector<std::string> names_without_offers(const MarketInputs& inputs);

}  // namespace tw::plan
