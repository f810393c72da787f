// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"
#include "market/offer.h"

/// Measured lifetimes of spot machines: many die in their first hour or two, the others live on, unlike with
/// a constant rate. Tables are in lifetimes.cc, each with its source.
namespace tw::market {

struct LifetimeLaw {
  std::string name;
  std::string source;             ///< publication and date of the measurement
  std::vector<double> gone_by_h;  ///< share gone within 1, 2, ... hours; empty: exponential
  double mean_h = 0;              ///< of the exponential, or of what is left after a table without a cap
  double cap_h = 24;              ///< nothing lives longer (GCP preemptible machines: 24 h); 0: no cap

  /// Uniform within an hour of the table.
  Duration draw(Prng& random) const;

  /// Share of machines that are gone by then.
  double gone_by(double hours) const;

  /// Losses per hour among machines that are this old; infinite at the cap.
  double hazard_per_h(double hours) const;

  /// The mean lifetime; infinite for machines that are never taken.
  double expected_h() const;
};

const std::vector<LifetimeLaw>& measured_lifetimes();

/// A measured law by its name, or "exponential:MEAN_H". No measurement supports the exponential: it serves
/// only for comparison with models that use it. The error lists the names.
Result<LifetimeLaw> lifetimes_named(const std::string& name);

/// Law of on-demand and owned machines, which are never taken.
LifetimeLaw never_taken();

/// The law of an offer: measured for its GPU in its region, else for its GPU, else for the GPUs of its
/// provider. Spot machines of providers without measurements get a named exponential: by the offer's share
/// for 30 days, else one for all (see its source).
LifetimeLaw lifetimes_for(const Offer& offer);

/// Lifetime of one machine in the user's own logs.
struct Lived {
  double hours = 0;
  bool taken = true;  ///< false: it was still there when last seen
};

/// The law updated with observed lifetimes, hour by hour. The hazard of each hour of life is the mean of a
/// Beta distribution whose prior counts as prior_machines machines (of a Gamma distribution if the prior is
/// exponential). Machines that were still there count as survivors of the time they lived.
LifetimeLaw learned(const LifetimeLaw& prior, const std::vector<Lived>& seen, double prior_machines = 10);

/// Seconds from the request to a running machine, or to its replacement; measured quantiles 0, 1/4, 1/2, 3/4,
/// 1, linear between them.
struct StartTimes {
  std::string name;
  std::string source;
  std::vector<double> quantiles_s;

  Duration draw(Prng& random) const;
};

const std::vector<StartTimes>& measured_start_times();

/// Start times for the GPU in a law's name; else those of the K80.
const StartTimes& start_times_for(std::string_view law);

/// A shortage hits a zone: some of its machines go at the same moment.
struct ZoneShocks {
  double per_day = 0;  ///< of each zone, at a constant rate
  double share = 0.5;  ///< share of the zone's machines that go, each at random

  bool operator==(const ZoneShocks&) const = default;
};

}  // namespace tw::market
