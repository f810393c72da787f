// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/price_age.h"

#include <fmt/format.h>

#include <algorithm>

#include "market/catalog.h"

namespace tw::cli {

std::string price_age_line(const plan::MarketSpace& market, const plan::Recommendation& plan,
                           std::int64_t now_unix_s) {
  std::int64_t oldest_s = 0, latest_unix_s = 0;
  for (std::size_t i = 0; i < plan.chosen.counts.size(); ++i) {
    const market::Offer& offer = market.candidates[i].offer;
    if (plan.chosen.counts[i] == 0 || offer.as_of_unix_s <= 0) continue;
    latest_unix_s = std::max(latest_unix_s, offer.as_of_unix_s);
    if (is_old(offer, now_unix_s)) oldest_s = std::max(oldest_s, now_unix_s - offer.as_of_unix_s);
  }
  std::string text;
  if (market::is_ahead(latest_unix_s, now_unix_s))
    text += fmt::format("A price is {}; check the clock, and as_of of the offers.\n",
                        market::dated_text(latest_unix_s, now_unix_s));
  if (oldest_s > 0)
    text += fmt::format("The oldest of these prices is {} old; `tw catalog update` fetches today's.\n",
                        market::age_text(oldest_s));
  return text;
}

}  // namespace tw::cli
