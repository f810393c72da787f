// SPDX-License-Identifier: Apache-2.0
#include "market/lifetimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text/fields.h"
#include "base/text/text.h"

namespace tw::market {
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

/// The first three rows together, for other GPUs of the provider.
Row all_gpus() {
  Row sum{"gcp-gpu", kTransient, 0, {}};
  for (int r = 0; r < 3; ++r) {
    sum.launched += kRows[r].launched;
    for (int h = 0; h < 24; ++h) sum.gone_by_hour[h] += kRows[r].gone_by_hour[h];
  }
  return sum;
}

LifetimeLaw law_of(const Row& row) {
  LifetimeLaw law{row.name, row.source};
  for (const int gone : row.gone_by_hour) {
    law.gone_by_h.push_back(static_cast<double>(gone) / static_cast<double>(row.launched));
  }
  return law;
}

Duration hours(double h) { return from_seconds(3600 * h); }

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
  } else if (cap_h == 0) {
    h = static_cast<double>(gone_by_h.size()) - mean_h * std::log((1 - u) / (1 - gone_by_h.back()));
  }
  return hours(cap_h > 0 ? std::min(h, cap_h) : h);
}

double LifetimeLaw::gone_by(double h) const {
  if (cap_h > 0 && h >= cap_h) return 1;
  if (gone_by_h.empty()) return 1 - std::exp(-h / mean_h);
  const auto whole = static_cast<std::size_t>(h);
  if (whole >= gone_by_h.size()) {
    if (cap_h > 0) return gone_by_h.back();
    return 1 - (1 - gone_by_h.back()) * std::exp(-(h - static_cast<double>(gone_by_h.size())) / mean_h);
  }
  const double before = whole == 0 ? 0 : gone_by_h[whole - 1];
  return before + (h - static_cast<double>(whole)) * (gone_by_h[whole] - before);
}

double LifetimeLaw::hazard_per_h(double h) const {
  if (cap_h > 0 && h >= cap_h) return std::numeric_limits<double>::infinity();
  const auto whole = static_cast<std::size_t>(h);
  if (whole >= gone_by_h.size()) return gone_by_h.empty() || cap_h == 0 ? 1 / mean_h : 0;
  const double before = whole == 0 ? 0 : gone_by_h[whole - 1];
  return -std::log((1 - gone_by_h[whole]) / (1 - before));
}

double LifetimeLaw::expected_h() const {
  if (gone_by_h.empty()) return cap_h > 0 ? mean_h * (1 - std::exp(-cap_h / mean_h)) : mean_h;
  double sum = 0;
  double alive = 1;
  for (const double gone : gone_by_h) {
    sum += (alive + 1 - gone) / 2;
    alive = 1 - gone;
  }
  const double rest_h = cap_h - static_cast<double>(gone_by_h.size());
  return sum + alive * (cap_h > 0 ? std::max(0.0, rest_h) : mean_h);
}

const std::vector<LifetimeLaw>& measured_lifetimes() {
  static const std::vector<LifetimeLaw> laws = [] {
    std::vector<LifetimeLaw> all;
    for (const Row& row : kRows) all.push_back(law_of(row));
    all.push_back(law_of(all_gpus()));
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
    const auto mean_h =
        number_in<double>(std::string_view(name).substr(prefix.size()), {.low = 1e-3, .high = 1e9});
    if (mean_h) return LifetimeLaw{name, "a constant rate; no measurement", {}, *mean_h, 0};
  }
  return Error{fmt::format("lifetimes {}: expected one of {}or exponential:MEAN_H such as exponential:12",
                           name, names)};
}

LifetimeLaw never_taken() {
  return {
      "never", "on-demand and owned machines are not taken", {}, std::numeric_limits<double>::infinity(), 0};
}

LifetimeLaw lifetimes_for(const Offer& offer) {
  if (offer.purchase != Purchase::spot) return never_taken();
  if (offer.provider == "gcp") {
    const std::string gpu = lower(offer.gpu);
    for (const std::string& name : {"gcp-" + gpu + "-" + offer.region, "gcp-" + gpu, std::string("gcp-gpu")})
      if (const auto law = lifetimes_named(offer.gpu.empty() ? "gcp-cpu" : name)) return law.value();
  }
  constexpr double kMonthH = 30 * 24;
  if (offer.taken_in_30_days > 0)
    return {"exponential",
            fmt::format("{:g} % within 30 days, at a constant rate: its offer", 100 * offer.taken_in_30_days),
            {},
            -kMonthH / std::log(1 - offer.taken_in_30_days),
            0};
  // 5 to 20 % of AWS's spot machines end within 30 days; this is the middle.
  return {"exponential",
          "a constant rate: 12.5 % within 30 days (Erben et al. 2024 sec. 7: 5 to 20 % on AWS); not measured "
          "here",
          {},
          -kMonthH / std::log(1 - 0.125),
          0};
}

namespace {

/// Observations of machines in their hour-th hour.
struct HourSeen {
  double at_risk = 0;
  double taken = 0;
};

HourSeen seen_in(const std::vector<Lived>& seen, double hour) {
  HourSeen sum;
  for (const Lived& lived : seen) {
    if (lived.hours < hour) continue;
    const bool taken = lived.taken && lived.hours < hour + 1;
    sum.taken += taken ? 1 : 0;
    sum.at_risk += taken ? 1 : std::min(1.0, lived.hours - hour);
  }
  return sum;
}

/// Mean lifetime beyond an age, learned from these machines; the prior counts as prior_machines ends.
double learned_mean_h(double mean_h, const std::vector<Lived>& seen, double beyond_h, double prior_machines) {
  double lived_h = prior_machines * mean_h;
  double ends = prior_machines;
  for (const Lived& lived : seen) {
    if (lived.hours <= beyond_h) continue;
    lived_h += lived.hours - beyond_h;
    ends += lived.taken ? 1 : 0;
  }
  return lived_h / ends;
}

}  // namespace

LifetimeLaw learned(const LifetimeLaw& prior, const std::vector<Lived>& seen, double prior_machines) {
  LifetimeLaw law = prior;
  law.source += fmt::format("; with {} machines of own logs", seen.size());
  const bool beyond_cap = std::any_of(seen.begin(), seen.end(),
                                      [&](const Lived& lived) { return lived.hours > prior.cap_h + 1; });
  if (prior.cap_h > 0 && beyond_cap) {
    law.cap_h = 0;
    law.mean_h = prior.mean_h > 0 ? prior.mean_h : prior.cap_h;
  }
  const auto table_h = static_cast<double>(prior.gone_by_h.size());
  if (law.cap_h == 0) law.mean_h = learned_mean_h(law.mean_h, seen, table_h, prior_machines);
  double alive = 1;
  double alive_before = 1;  // of the prior
  for (std::size_t hour = 0; hour < prior.gone_by_h.size(); ++hour) {
    const double alive_after = 1 - prior.gone_by_h[hour];
    const HourSeen own = seen_in(seen, static_cast<double>(hour));
    const double at_risk = prior_machines * alive_before + own.at_risk;
    const double taken = prior_machines * (alive_before - alive_after) + own.taken;
    if (at_risk > 0) alive *= 1 - taken / at_risk;
    law.gone_by_h[hour] = 1 - alive;
    alive_before = alive_after;
  }
  return law;
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

}  // namespace tw::market
