// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/search/market_space.h"

/// Offers that the limits of a job allow, and the error when there are none.
namespace tw::plan {

/// Offers of the market and the job's own hosts.
std::vector<market::Offer> all_offers(const Job& job, const std::vector<market::Offer>& offers);

/// The limits of the job that the offer violates; empty: none.
std::string unfit(const Job& job, const market::Offer& offer);

/// Checks only providers and regions.
bool is_in_market(const Job& job, const market::Offer& offer);

/// Names limits each of which leaves no offer, and what there is without them.
Error no_offer(const MarketInputs& inputs);

/// Notes names that no offer of the market has: they are misspelt or not in the catalog.
void note_names_without_offers(const MarketInputs& inputs, std::vector<std::string>& notes);

/// The user's own hosts must have a known speed, and quotas must name something.
Status check_names(const MarketInputs& inputs);

}  // namespace tw::plan
