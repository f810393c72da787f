// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/search/market_space.h"

/// Which offers the limits of a job allow, and what to say when they allow none.
namespace tw::plan {

/// Those of the market and the job's own hosts.
std::vector<market::Offer> all_offers(const Job& job, const std::vector<market::Offer>& offers);

/// What of the job's wishes the offer fails; empty: none.
std::string unfit(const Job& job, const market::Offer& offer);

/// By providers and regions alone.
bool is_in_market(const Job& job, const market::Offer& offer);

/// The limits that alone leave nothing, with what there is without them.
Error no_offer(const MarketInputs& inputs);

/// Names that nothing in the market has, which are misspelt or not in the catalog.
void note_names_without_offers(const MarketInputs& inputs, std::vector<std::string>& notes);

/// Hosts of one's own have a known speed; quotas name something.
Status check_names(const MarketInputs& inputs);

}  // namespace tw::plan
