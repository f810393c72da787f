// SPDX-License-Identifier: Apache-2.0
#include "sim/lifetimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/number.h"

namespace tw {
namespace {

constexpr const char* kCmDare =
    "Li, Walls, Guo: Characterizing and Modeling Distributed Training with Transient Cloud GPU Servers "
    "(CM-DARE), "
    "ICDCS 2020, figures; data github cake-lab/CM-DARE 263b7f14; GCP preemptible, 2019";
constexpr const char* kTransient =
    "Li, Walls, Xu, Guo: Speeding up Deep Learning with Transient Servers, ICAC 2019, fig. 3; data github "
    "cake-lab/transient-deep-learning 87c6717e; GCP preemptible, 2018 and 2019";
constexpr const char* kStartUp =
    "CM-DARE (ICDCS 2020): provisioning, staging and booting of transient machines, GCP us-east1 and "
    "us-west1, 2019";
constexpr const char* kReplacement =
    "CM-DARE (ICDCS 2020): immediate request for a replacement, mean and deviation as quantiles of a normal "
    "distribution, 2019";

struct Row {
  const char* name;
  const char* source;
  int launched;
  int gone_by_hour[24];  ///< machines, after 1, 2, ... hours
};

// clang-format off
constexpr Row kRows[] = {
    {"gcp-k80", kTransient, 128,
     {10, 10, 18, 19, 19, 20, 25, 25, 25, 25, 25, 25, 25, 26, 27, 37, 37, 37, 38, 38, 40, 40, 40, 44}},
    {"gcp-p100", kTransient, 42,
     {2, 2, 2, 2, 6, 6, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10, 10, 10, 10, 10}},
    {"gcp-v100", kTransient, 66,
     {18, 20, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 23}},
    {"gcp-cpu", kTransient, 348,
     {14, 21, 29, 32, 34, 38, 42, 42, 44, 44, 47, 52, 55, 56, 56, 56, 56, 56, 57, 57, 58, 59, 60, 61}},
    {"gcp-k80-us-central1", kCmDare, 48,
     {5, 5, 7, 7, 7, 8, 13, 13, 13, 13, 13, 13, 13, 14, 15, 22, 22, 22, 22, 22, 23, 23, 23, 27}},
    {"gcp-k80-us-west1", kCmDare, 48,
     {2, 2, 7, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 10, 11, 11, 11, 11}},
    {"gcp-k80-europe-west1", kCmDare, 30,
     {12, 12, 14, 14, 14, 14, 15, 15, 16, 16, 16, 16, 18, 18, 18, 20, 20, 20, 20, 20, 20, 20, 20, 20}},
    {"gcp-k80-us-east1", kCmDare, 30,
     {14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14}},
    {"gcp-p100-us-east1", kCmDare, 30,
     {6, 12, 19, 19, 19, 19, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 21}},
    {"gcp-p100-europe-west1", kCmDare, 30,
     {0, 2, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8}},
    {"gcp-p100-us-central1", kCmDare, 30,
     {8, 10, 10, 10, 10, 10, 12, 14, 14, 14, 14, 14, 14, 14, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16}},
    {"gcp-p100-us-west1", kCmDare, 30,
     {5, 9, 9, 9, 13, 13, 13, 13, 13, 15, 16, 16, 16, 16, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20}},
    {"gcp-v100-europe-west4", kCmDare, 30,
     {2, 5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 13}},
    {"gcp-v100-asia-east1", kCmDare, 30,
     {7, 9, 11, 12, 12, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14}},
    {"gcp-v100-us-central1", kCmDare, 30,
     {20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20}},
    {"gcp-v100-us-west1", kCmDare, 30,
     {9, 15, 16, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22}},
};

// clang-format on

LifetimeLaw law_of(const Row& row) {
  LifetimeLaw law{row.name, row.source};
  for (const int gone : row.gone_by_hour) {
    law.gone_by_h.push_back(static_cast<double>(gone) / static_cast<double>(row.launched));
  }
  return law;
}

Duration hours(double h) { return from_seconds(3600 * h); }

/// An hour at which shortages strike, one after the other.
std::vector<Duration> strikes(const ZoneShocks& shocks, Duration length, Prng& random) {
  std::vector<Duration> times;
  if (shocks.per_day <= 0) return times;
  for (double h = 0;;) {
    h -= std::log(1 - random.uniform()) * 24 / shocks.per_day;
    if (hours(h) >= length) return times;
    times.push_back(hours(h));
  }
}

}  // namespace

Duration LifetimeLaw::draw(Prng& random) const {
  const double u = random.uniform();
  double h = cap_h;
  if (gone_by_h.empty()) {
    h = -mean_h * std::log(1 - u);
  } else if (u < gone_by_h.back()) {
    const auto hour = std::upper_bound(gone_by_h.begin(), gone_by_h.end(), u);
    const double before = hour == gone_by_h.begin() ? 0 : *std::prev(hour);
    h = static_cast<double>(hour - gone_by_h.begin()) + (u - before) / (*hour - before);
  }
  return hours(cap_h > 0 ? std::min(h, cap_h) : h);
}

double LifetimeLaw::gone_by(double h) const {
  if (cap_h > 0 && h >= cap_h) return 1;
  if (gone_by_h.empty()) return 1 - std::exp(-h / mean_h);
  const auto whole = static_cast<std::size_t>(h);
  const double before = whole == 0 ? 0 : gone_by_h[whole - 1];
  return before + (h - static_cast<double>(whole)) * (gone_by_h[whole] - before);
}

const std::vector<LifetimeLaw>& measured_lifetimes() {
  static const std::vector<LifetimeLaw> laws = [] {
    std::vector<LifetimeLaw> all;
    for (const Row& row : kRows) all.push_back(law_of(row));
    return all;
  }();
  return laws;
}

Result<LifetimeLaw> lifetimes_named(const std::string& name) {
  std::string names;
  for (const LifetimeLaw& law : measured_lifetimes()) {
    if (law.name == name) return law;
    names += law.name + ", ";
  }
  const std::string prefix = "exponential:";
  if (name.starts_with(prefix)) {
    const auto mean_h = parse_number<double>(std::string_view(name).substr(prefix.size()));
    if (mean_h && *mean_h > 0) return LifetimeLaw{name, "a constant rate; no measurement", {}, *mean_h, 0};
  }
  return Error{fmt::format("lifetimes {}: expected one of {}or exponential:MEAN_H such as exponential:12",
                           name, names)};
}

Duration StartTimes::draw(Prng& random) const {
  const double place = random.uniform() * static_cast<double>(quantiles_s.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double part = place - static_cast<double>(below);
  return from_seconds(quantiles_s[below] + part * (quantiles_s[below + 1] - quantiles_s[below]));
}

const std::vector<StartTimes>& measured_start_times() {
  static const std::vector<StartTimes> times = {
      {"start-k80", kStartUp, {74.4, 79.4, 83.4, 85.5, 90.7}},
      {"start-p100", kStartUp, {85.2, 89.6, 91.7, 93.7, 97.1}},
      {"replace-k80", kReplacement, {46.0, 64.9, 70.3, 75.8, 94.7}},
      {"replace-p100", kReplacement, {50.4, 63.5, 67.3, 71.1, 84.2}},
      {"replace-v100", kReplacement, {45.0, 65.1, 70.9, 76.7, 96.8}},
  };
  return times;
}

const StartTimes& start_times_for(std::string_view law) {
  const std::vector<StartTimes>& times = measured_start_times();
  for (const StartTimes& time : times) {
    const std::string prefix = "replace-";
    if (time.name.starts_with(prefix) && law.find(time.name.substr(prefix.size())) != std::string_view::npos)
      return time;
  }
  return *std::find_if(times.begin(), times.end(),
                       [](const StartTimes& t) { return t.name == "replace-k80"; });
}

std::vector<Stay> generate_stays(const Generator& generator, std::uint64_t seed) {
  std::vector<std::vector<Duration>> shocks;
  for (int zone = 0; zone < generator.zones; ++zone) {
    Prng random(mix(seed, 1000 + static_cast<std::uint64_t>(zone)));
    shocks.push_back(strikes(generator.shocks, generator.length, random));
  }
  std::vector<Stay> stays;
  for (int slot = 0; slot < generator.peers; ++slot) {
    Prng random(mix(mix(seed, 1), static_cast<std::uint64_t>(slot)));
    for (Duration t{}; t < generator.length;) {
      Stay stay{slot, t, t + generator.lifetimes.draw(random), true};
      for (const Duration shock : shocks[static_cast<std::size_t>(slot % generator.zones)]) {
        if (shock <= t || shock >= stay.goes || !random.chance(generator.shocks.share)) continue;
        stay.goes = shock;
        break;
      }
      t = stay.goes + generator.replacement.draw(random);
      if (stay.goes >= generator.length) stay = {slot, stay.comes, generator.length, false};
      if (stay.goes > stay.comes) stays.push_back(stay);
    }
  }
  std::stable_sort(stays.begin(), stays.end(),
                   [](const Stay& a, const Stay& b) { return a.comes < b.comes; });
  return stays;
}

}  // namespace tw
