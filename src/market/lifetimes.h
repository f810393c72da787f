// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"
#include "market/offer.h"

/// How long machines of a spot market live, as it was measured: many die in their first hour or two, the
/// others live on; a constant rate has neither. Tables are in lifetimes.cc, each with its source.
namespace tw::market {

struct LifetimeLaw {
  std::string name;
  std::string source;             ///< publication and date of the measurement
  std::vector<double> gone_by_h;  ///< share gone within 1, 2, ... hours; empty: exponential
  double mean_h = 0;              ///< of the exponential, or of what is left after a table without a cap
  double cap_h = 24;              ///< nothing lives longer (GCP preemptible machines: 24 h); 0: no cap

  /// Within an hour of the table uniform.
  Duration draw(Prng& random) const;

  /// Share that is gone by then.
  double gone_by(double hours) const;

  /// Losses per machine and hour among those that are that old; infinite at the cap.
  double hazard_per_h(double hours) const;

  /// The mean lifetime; infinite for machines that nobody takes.
  double expected_h() const;
};

const std::vector<LifetimeLaw>& measured_lifetimes();

/// A measured law by its name, or "exponential:MEAN_H", which no measurement supports: it stands for nothing
/// but comparison with models that use it. The error lists the names.
Result<LifetimeLaw> lifetimes_named(const std::string& name);

/// Nobody takes it: on-demand and owned machines.
LifetimeLaw never_taken();

/// The law of an offer: measured for its GPU in its region, else for its GPU, else for the GPUs of its
/// provider; for spot machines of providers without any, a named exponential: by what the offer says of 30
/// days, else one for all (see its source).
LifetimeLaw lifetimes_for(const Offer& offer);

/// One machine as one's own logs saw it.
struct Lived {
  double hours = 0;
  bool taken = true;  ///< false: it was still there when last seen
};

/// The law after what was seen, hour by hour: the hazard of each hour of life is the mean of a Beta
/// distribution whose prior counts as much as so many machines (of a Gamma distribution where the prior is
/// exponential). Machines that were still there count as survivors of what they lived.
LifetimeLaw learned(const LifetimeLaw& prior, const std::vector<Lived>& seen, double prior_machines = 10);

/// Seconds from the request to a machine that runs, or to its replacement; measured quantiles 0, 1/4, 1/2,
/// 3/4, 1, linear between them.
struct StartTimes {
  std::string name;
  std::string source;
  std::vector<double> quantiles_s;

  Duration draw(Prng& random) const;
};

const std::vector<StartTimes>& measured_start_times();

/// By what a law's name says of its GPU; else that of the K80.
const StartTimes& start_times_for(std::string_view law);

/// A shortage strikes a zone: some of its machines go at the same moment.
struct ZoneShocks {
  double per_day = 0;  ///< of each zone, at a constant rate
  double share = 0.5;  ///< of the zone's machines that go, each by chance

  bool operator==(const ZoneShocks&) const = default;
};

}  // namespace tw::market
