// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"
#include "sim/trace.h"

/// How long machines of a spot market live, as it was measured: many die in their first hour or two, the
/// others live on; a constant rate has neither. Tables are in lifetimes.cc, each with its source.
namespace tw {

struct LifetimeLaw {
  std::string name;
  std::string source;             ///< publication and date of the measurement
  std::vector<double> gone_by_h;  ///< share gone within 1, 2, ... hours; empty: exponential
  double mean_h = 0;              ///< of the exponential
  double cap_h = 24;              ///< nothing lives longer (GCP preemptible machines: 24 h); 0: no cap

  /// Within an hour of the table uniform.
  Duration draw(Prng& random) const;

  /// Share that is gone by then.
  double gone_by(double hours) const;
};

const std::vector<LifetimeLaw>& measured_lifetimes();

/// A measured law by its name, or "exponential:MEAN_H", which no measurement supports: it stands for nothing
/// but comparison with models that use it. The error lists the names.
Result<LifetimeLaw> lifetimes_named(const std::string& name);

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
};

struct Generator {
  LifetimeLaw lifetimes;
  StartTimes replacement;  ///< a machine that went is followed by another after so long
  ZoneShocks shocks;
  int zones = 1;  ///< slot s is in zone s mod zones
  int peers = 16;
  Duration length{};
};

/// By time. All slots are taken at 0, by machines that are new then.
std::vector<Stay> generate_stays(const Generator& generator, std::uint64_t seed);

}  // namespace tw
