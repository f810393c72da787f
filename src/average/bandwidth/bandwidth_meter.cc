// SPDX-License-Identifier: Apache-2.0
#include "average/bandwidth/bandwidth_meter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "wire/limits.h"

namespace tw::average {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBin = 100ms;
constexpr std::int64_t kSustained = 3;  // bins
constexpr std::int64_t kLong = 10;      // bins: no burst is that long
constexpr double kFull = 0.85;
constexpr double kStep = 0.2;
/// Reports of others about the same time may come this much later.
constexpr Duration kSettled = 200ms;
/// A pause longer than this, and than a few usual gaps, is not part of a transfer.
constexpr Duration kPause = 250ms;
constexpr int kUsualGaps = 4;
/// An older report says nothing of the present.
constexpr Duration kStale = 500ms;
constexpr double kMuchFaster = 2;
/// At full bandwidth no pair gets this many times more than another.
constexpr double kUnfair = 4;
/// A rate seen this lately still holds.
constexpr Duration kLately = 3s;
constexpr double kNoNoise = 1.1;
/// Part of a slow pair's known rate that counts as its usual rate.
constexpr double kAsUsual = 0.7;
constexpr std::uint64_t kMostNanos = 3'600'000'000'000;  // an hour
/// When bulk flows again after this pause, a slow pair gets the chance to show that it has recovered.
constexpr Duration kRest = 1s;
constexpr double kForgiven = 1.1;
/// A direction has recovered when it shows this many times its known capacity.
constexpr double kMuchMore = 1.2;
/// A round counts for a direction if it carried as much as its capacity carries in this time.
constexpr double kUsed_s = 0.1;
constexpr double kTry = 2;
/// A round with pressure forgets this part of the excess of the highest rate over the capacity.
constexpr double kForgets = 0.05;
/// A pair with nearly the full bandwidth is not slow.
constexpr double kAsFast = 0.9;

std::int64_t bin_of(Instant t) { return t.time_since_epoch() / kBin; }

Instant start_of(std::int64_t bin) { return Instant{} + bin * kBin; }

}  // namespace

// ---- one side

void BandwidthSide::carried(Instant from, Instant to, std::uint64_t bytes) {
  if (to <= from) return;
  from = std::max(from, start_of(bin_of(to) - kBins + kSustained));  // an earlier part is forgotten
  carried_ += static_cast<double>(bytes);
  const double bytes_per_ns = static_cast<double>(bytes) / static_cast<double>((to - from).count());
  for (std::int64_t number = bin_of(from); number <= bin_of(to); ++number) {
    Bin& bin = bins_[static_cast<std::size_t>(number % kBins)];
    if (bin.number != number) bin = {number, 0};
    const Duration within = std::min(to, start_of(number + 1)) - std::max(from, start_of(number));
    bin.bytes += bytes_per_ns * static_cast<double>(within.count());
  }
}

void BandwidthSide::raise(Instant from, Instant to) {
  from = std::max(from, start_of(bin_of(to) - kBins + kSustained));
  for (std::int64_t number = bin_of(from); number <= bin_of(to); ++number) {
    show(rate_before(number + 1, kSustained));
  }
}

void BandwidthSide::correct(Instant at) {
  if (capacity_ > 0) show(rate_before(bin_of(at), kLong));
}

void BandwidthSide::show(double rate) {
  if (rate > kMuchMore * capacity_) failures_ = wait_ = 0;
  capacity_ = std::max(capacity_, rate);
  shown_ = std::max(shown_, rate);
}

double BandwidthSide::rate_before(std::int64_t bin, std::int64_t bins) const {
  double bytes = 0;
  for (std::int64_t number = bin - bins; number < bin; ++number) {
    const Bin& one = bins_[static_cast<std::size_t>(number % kBins)];
    if (one.number == number) bytes += one.bytes;
  }
  return bytes / to_seconds(bins * kBin);
}

bool BandwidthSide::is_full(Instant at) const {
  return rate_before(bin_of(at), kSustained) >= kFull * capacity_;
}

void BandwidthSide::lower(Instant at) {
  const double rate = rate_before(bin_of(at), kSustained);
  if (rate < kFull * capacity_) fate_ = Fate::lowered;
  capacity_ += kStep * std::min(0.0, rate - capacity_);
}

void BandwidthSide::end_round() {
  const bool used = std::exchange(carried_, 0) > kUsed_s * capacity_;
  const Fate fate = std::exchange(fate_, Fate::unpressed);
  if (!used) return;
  if (fate == Fate::lowered) {
    wait_ = ++failures_;
  } else if (wait_ > 0) {
    --wait_;
  } else if (fate != Fate::pressed) {
    capacity_ = std::min(shown_, kTry * capacity_);
  }
  if (fate >= Fate::pressed) shown_ += kForgets * (std::min(shown_, capacity_) - shown_);
}

// ---- pairs

void BandwidthMeter::Flow::add(Instant now, Window window) {
  windows[next++ % windows.size()] = window;
  at = now;
}

double BandwidthMeter::Flow::rate() const {
  std::uint64_t bytes = 0;
  for (const Window& window : windows) bytes += window.bytes;
  return took() == Duration{} ? 0 : static_cast<double>(bytes) / to_seconds(took());
}

Duration BandwidthMeter::Flow::took() const {
  Duration all{};
  for (const Window& window : windows) all += window.took;
  return all;
}

bool BandwidthMeter::Out::is_as_usual() const { return limit > 0 && flow.rate() >= kAsUsual * limit; }

void BandwidthMeter::handed(Instant now, PeerId to) {
  Out& out = out_[to];
  TW_CHECK(now >= out.handed_at);
  if (out.flowing_since == kNever) out.flowing_since = now;
  if (now - out.handed_at > kRest) out.limit *= kForgiven;
  out.handed_at = now;
}

template <class Way>
bool BandwidthMeter::is_outpaced(Instant now, PeerId peer, const std::map<PeerId, Way>& ways, double times) {
  const double rate = ways.at(peer).flow.rate();
  return std::any_of(ways.begin(), ways.end(), [&](const auto& entry) {
    const Flow& flow = entry.second.flow;
    return now - flow.at < kLately && flow.rate() >= times * rate;
  });
}

template <class Way>
bool BandwidthMeter::fills(Instant now, PeerId peer, const BandwidthSide& side,
                           const std::map<PeerId, Way>& ways) {
  return side.is_full(now - kSettled) && !is_outpaced(now, peer, ways, kUnfair);
}

void BandwidthMeter::on_bandwidth_report(Instant now, PeerId from,
                                         const wire::BandwidthReport& bandwidth_report, Duration round_trip) {
  const Duration took{static_cast<std::int64_t>(std::min(bandwidth_report.over_ns, kMostNanos))};
  In& in = in_[from];
  in.told = bandwidth_report;
  in.told_at = now;
  if (took < kWindow) return;  // a true report covers at least kWindow
  Out& out = out_[from];
  out.flow.add(now, {bandwidth_report.bytes, took});
  up_.carried(now - took, now, bandwidth_report.bytes);
  up_.correct(now);
  const double rate = out.flow.rate();
  const bool faster = out.limit > 0 && rate > kNoNoise * out.limit;
  if (faster) out.limit = rate;
  const bool had_more =
      out.flowing_since != kNever && now - out.flowing_since >= out.flow.took() + round_trip + kSettled;
  if (had_more) {
    up_.had_more(bandwidth_report.down_full);
    up_.raise(std::max(out.flowing_since, out.raised_at - kSettled), now);
    out.raised_at = now;
  }
  if (bandwidth_report.down_full || fills(now, from, up_, out_)) {
    out.limit = 0;  // the pair is not what limits it
  } else if (had_more && !out.is_as_usual()) {
    if (!is_outpaced(now, from, out_, kMuchFaster)) return up_.lower(now - kSettled);
    out.limit = out.limit == 0 ? rate : out.limit + kStep * (rate - out.limit);
  }
}

std::optional<wire::BandwidthReport> BandwidthMeter::arrived(Instant now, PeerId from, std::uint64_t bytes,
                                                             bool asked) {
  In& in = in_[from];
  TW_CHECK(now >= in.came_at);
  const Duration gap = now - std::exchange(in.came_at, now);
  if (in.began_at == kNever || gap > kPause + kUsualGaps * in.usual_gap) {
    in.began_at = now;  // when these bytes began to come is not known
    in.bytes = 0;
    return std::nullopt;
  }
  if (gap > kWindow / 2 + kUsualGaps * in.usual_gap) in.open_until = now + kWindow;
  in.usual_gap += (gap - in.usual_gap) / 4;
  in.bytes += bytes;
  const Duration took = now - in.began_at;
  if (took < kWindow || now < in.open_until) return std::nullopt;
  in.flow.add(now, {in.bytes, took});
  down_.carried(in.began_at, now, in.bytes);
  down_.correct(now);
  if (in.told && now - in.told_at < kStale && in.told->more) {
    down_.raise(now - kStale, now);
    down_.had_more(in.told->up_full);
  } else if (asked) {
    down_.raise(now - kStale, now);
  }
  in.began_at = now;
  if (is_held_back(now, from) && is_anybody_else_held_back(now, from)) down_.lower(now - kSettled);
  wire::BandwidthReport bandwidth_report{std::exchange(in.bytes, 0),
                                         static_cast<std::uint64_t>(took.count())};
  const auto out = out_.find(from);
  bandwidth_report.more =
      out != out_.end() && out->second.flowing_since != kNever && now - out->second.flowing_since >= kStale;
  bandwidth_report.up_full = out != out_.end() && fills(now, from, up_, out_);
  bandwidth_report.down_full = fills(now, from, down_, in_);
  return bandwidth_report;
}

// Its sender has more, and neither end's bandwidth explains why it does not come.
bool BandwidthMeter::is_held_back(Instant now, PeerId from) const {
  const In& in = in_.at(from);
  return in.told && now - in.told_at < kStale && in.told->more && !in.told->up_full &&
         !fills(now, from, down_, in_) && !is_outpaced(now, from, in_, kMuchFaster);
}

bool BandwidthMeter::is_anybody_else_held_back(Instant now, PeerId from) const {
  return std::ranges::any_of(in_, [&](const auto& entry) {
    return entry.first != from && now - entry.second.flow.at < kStale && is_held_back(now, entry.first);
  });
}

void BandwidthMeter::end_round() {
  up_.end_round();
  down_.end_round();
}

void BandwidthMeter::on_close(PeerId peer) {
  out_.erase(peer);
  in_.erase(peer);
}

wire::Bandwidth BandwidthMeter::bandwidth() const {
  wire::Bandwidth line{
      std::min(up_.capacity(), wire::kMostBytesPerS), std::min(down_.capacity(), wire::kMostBytesPerS), {}};
  for (const auto& [peer, out] : out_) {
    if (out.limit > 0 && out.limit < kAsFast * up_.capacity()) line.slow.push_back({peer, out.limit});
  }
  if (line.slow.size() > wire::kMostSlowPairs) {
    std::ranges::nth_element(line.slow, line.slow.begin() + wire::kMostSlowPairs, {},
                             &wire::PairRate::bytes_per_s);
    line.slow.resize(wire::kMostSlowPairs);
  }
  return line;
}

}  // namespace tw::average
