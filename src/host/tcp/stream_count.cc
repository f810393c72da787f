// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/stream_count.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr double kFirstTarget = 187.5e6;  // bytes per second
constexpr double kFirstOfAll = 750e6;     // of all far links together
constexpr int kFirstMost = 24;

// A stream needs some seven round trips from its first packets to a full window.
constexpr int kWarmUpRoundTrips = 7;
constexpr int kMeasureRoundTrips = 3;
constexpr Duration kMeasureAtLeast = 300ms;

constexpr double kWorthIt = 1.1;
constexpr Duration kPause = 20s;

int first_guess(Duration round_trip, int far_links) {
  if (round_trip < StreamCount::kNear) return 1;
  const double target = std::min(kFirstTarget, kFirstOfAll / far_links);  // bytes per second
  const double streams = std::ceil(to_seconds(round_trip) * target / StreamCount::kWindowBytes);
  return static_cast<int>(std::clamp<double>(streams, 1, kFirstMost));
}

}  // namespace

StreamCount::StreamCount(Duration round_trip, int most)
    : round_trip_(round_trip), most_(most), warm_up_(kWarmUpRoundTrips * round_trip) {
  share_with(1);
}

void StreamCount::share_with(int far_links) {
  far_links_ = far_links;
  together_ = std::max(1, kMostTogether / std::max(1, far_links));
  if (!is_guess_) return;
  wanted_ = std::min(most_, first_guess(round_trip_, std::max(1, far_links)));
}

void StreamCount::on_round_trip(Duration least) {
  if (least <= Duration{} || least >= round_trip_) return;
  round_trip_ = least;
  if (is_guess_) return share_with(far_links_);
  if (is_far()) return;
  wanted_ = 1;
  before_ = 0;
}

void StreamCount::on_saturated(Duration time, std::uint64_t bytes) {
  if (round_trip_ < kNear) return;
  if (warm_up_ > Duration{}) {
    warm_up_ -= time;
    return;
  }
  measured_ += time;
  bytes_ += static_cast<double>(bytes);
  if (measured_ < std::max(kMeasureAtLeast, kMeasureRoundTrips * round_trip_)) return;
  pause_ = std::max(Duration{}, pause_ - measured_);
  const double bytes_per_s = bytes_ / to_seconds(measured_);
  measured_ = {};
  bytes_ = 0;
  judge(bytes_per_s);
}

void StreamCount::judge(double bytes_per_s) {
  if (before_ != 0 && bytes_per_s < kWorthIt * best_) {
    wanted_ = before_;
    before_ = 0;
    pause_ = kPause;
    return;
  }
  if (pause_ > Duration{}) return;
  best_ = bytes_per_s;
  raise();
}

void StreamCount::raise() {
  const int next = std::min({most_, 2 * wanted_, std::max(wanted_, together_)});
  before_ = wanted_ < next ? wanted_ : 0;
  wanted_ = next;
  is_guess_ = false;
  warm_up_ = kWarmUpRoundTrips * round_trip_;
}

}  // namespace tw::host
