// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Sentences that say what the numbers of a plan or a prediction mean.
namespace tw::plan {

/// What a number of machines does.
struct FleetSpeed {
  int machines = 0;
  double samples_per_s = 0;
  double usd_per_h = 0;
};

/// Up to which number machines pay, and what the next ones do. One pays while speed grows by more than the
/// square root of the price, so that cost times time falls. The fleets rise in price. Empty: all of them pay.
std::string paying_answer(const std::vector<FleetSpeed>& fleets);

/// That traffic is most of the cost, and the target batch that makes it less. Empty: it is less than half.
std::string traffic_answer(double traffic_usd, double all_usd, double target_batch_size);

/// The share of linear speed that this granularity gives, and the target batch for 90 %. Empty: it gives
/// more. hidden: averaging goes on beside calculating.
std::string granularity_answer(double granularity, double target_batch_size, bool hidden);

}  // namespace tw::plan
