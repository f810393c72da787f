// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "market/offer.h"

namespace tw::market {

/// Name of the file where AWS publishes it, and beside the vms.csv of aws in a folder of catalogs.
inline constexpr const char* kSpotAdvisorFile = "spot-advisor-data.json";

/// How often AWS took spot machines in the last 30 days, by region and type: its Spot Instance Advisor. AWS
/// gives only ranges (below 5 %, 5 to 10, 10 to 15, 15 to 20, above 20); the share is the middle of the
/// range, and 25 % for the last one.
class SpotAdvisor {
 public:
  /// Linux machines of spot-advisor-data.json. An error names the file and what is missing in it.
  static Result<SpotAdvisor> read(const std::string& file, std::string_view json);

  /// Share of machines that were taken; 0: not listed.
  double taken_in_30_days(const std::string& region, const std::string& vm_type) const;

  /// Sets it in spot offers of AWS that are listed here and have no value yet.
  void fill_in(std::vector<Offer>& offers) const;

  std::size_t size() const { return shares_.size(); }

 private:
  std::map<std::pair<std::string, std::string>, double> shares_;
};

}  // namespace tw::market
