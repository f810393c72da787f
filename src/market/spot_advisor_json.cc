// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "market/spot_advisor.h"

namespace tw::market {
namespace {

constexpr double kShares[] = {0.025, 0.075, 0.125, 0.175, 0.25};

}  // namespace

Result<SpotAdvisor> SpotAdvisor::read(const std::string& file, std::string_view json) {
  const auto data = nlohmann::json::parse(json, nullptr, false);
  if (!data.is_object() || !data.contains("spot_advisor") || !data["spot_advisor"].is_object())
    return Error{fmt::format("{}: expected AWS's spot-advisor-data.json, an object with spot_advisor", file)};
  SpotAdvisor advisor;
  for (const auto& [region, systems] : data["spot_advisor"].items()) {
    if (!systems.is_object() || !systems.contains("Linux")) continue;
    for (const auto& [type, facts] : systems["Linux"].items()) {
      const auto range = facts.is_object() ? facts.find("r") : facts.end();
      const int at = range != facts.end() && range->is_number_integer() ? range->get<int>() : -1;
      if (at < 0 || at >= std::ssize(kShares))
        return Error{fmt::format("{}: {} {}: r: expected a range from 0 to {}", file, region, type,
                                 std::size(kShares) - 1)};
      advisor.shares_[{region, type}] = kShares[at];
    }
  }
  return advisor;
}

double SpotAdvisor::taken_in_30_days(const std::string& region, const std::string& vm_type) const {
  const auto found = shares_.find({region, vm_type});
  return found == shares_.end() ? 0 : found->second;
}

void SpotAdvisor::fill_in(std::vector<Offer>& offers) const {
  for (Offer& offer : offers)
    if (offer.provider == "aws" && offer.purchase == Purchase::spot && offer.taken_in_30_days == 0)
      offer.taken_in_30_days = taken_in_30_days(offer.region, offer.vm_type);
}

}  // namespace tw::market
