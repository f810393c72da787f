// SPDX-License-Identifier: Apache-2.0
#include "average/averager.h"

#include <algorithm>

#include "base/check.h"
#include "base/parallel.h"
#include "swarm/ballots/shared_plan.h"
#include "swarm/straggler_policy.h"

namespace tw::average {
namespace {

using namespace std::chrono_literals;

/// Chunks wait for averaging at most this many times its expected time, and at most this part of the time
/// before it.
constexpr int kGivesWay = 2;
constexpr int kAccumulatesLonger = 4;

}  // namespace

// ---- steps
// ----------------------------------------------------------------------------------------------------

const Averager::Step* Averager::find(StepId step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : &found->second;
}

Averager::Step* Averager::find(StepId step) {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : &found->second;
}

std::vector<Averager::Refused> Averager::open(Instant now, StepId step) {
  TW_CHECK(step.round > 0 && !is_open(step));
  std::erase_if(steps_, [&](const auto& entry) { return entry.first.round != step.round; });
  newest_ = step.round;
  custody_.open(step);
  const Geometry& geometry = options_.fragments.of(step.round).geometry;
  steps_.try_emplace(
      step,
      Reduction::Options{options_.self, step, geometry, options_.codec, options_.stochastic,
                         options_.norm_cap, threads_for(geometry.length, options_.threads), options_.rarely});
  const auto early = std::exchange(early_, {});
  early_bytes_.clear();
  std::vector<Refused> refused;
  for (const auto& [from, message] : early) {
    if (std::optional<Refused> one = on_bulk(now, from, message)) refused.push_back(*std::move(one));
  }
  return refused;
}

void Averager::abandon() {
  steps_.clear();
  early_.clear();
  early_bytes_.clear();
  custody_.open({});
  newest_ = 0;
}

// Chunks and segments would share the bandwidth equally: when many joined few members, segments came so late
// that a peer counted as stalled. A joiner loses at most a fifth of the time, so it still gets its state
// before the means after it are dropped.
bool Averager::adopt(Instant now, const swarm::SharedPlan& plan, Instant worked_since) {
  Step* step = find(plan->step());
  if (step == nullptr || !step->reduction.adopt(plan)) return false;
  step->planned_at = now;
  step->called_at = std::min(step->called_at, now);
  const Duration until_call = std::max(Duration{}, step->called_at - worked_since);
  step->lines_until = std::min(now + kGivesWay * from_seconds(plan->expected_s),
                               step->called_at + until_call / kAccumulatesLonger);
  return true;
}

const wire::Plan* Averager::plan(StepId step) const {
  const Step* found = find(step);
  return found != nullptr ? found->reduction.plan().get() : nullptr;
}

Instant Averager::called_at(StepId step) const {
  const Step* found = find(step);
  return found != nullptr ? found->called_at : kNever;
}

std::vector<wire::Contribution> Averager::due(StepId step) const {
  std::vector<wire::Contribution> due;
  const wire::Plan* called = plan(step);
  if (called == nullptr) return due;
  const auto& contributed = find(step)->contributed;
  std::ranges::copy_if(called->draft.contributors, std::back_inserter(due), [&](const wire::Contribution& c) {
    return c.peer == options_.self && !contributed.contains(c.slot);
  });
  return due;
}

void Averager::contribute(StepId step, const wire::Contribution& due, const GradientSum& gradient_sum,
                          std::span<const float> residual) {
  Step* found = find(step);
  TW_CHECK(found != nullptr && due.peer == options_.self && found->contributed.insert(due.slot).second);
  found->reduction.contribute(due.slot, gradient_sum, due.samples, residual);
}

std::vector<Unfit> Averager::take_unfit(StepId step) {
  Step* found = find(step);
  if (found == nullptr || !found->reduction.plan()) return {};
  std::vector<Unfit> unfit = found->reduction.take_unfit();
  for (const Unfit& one : unfit) {
    if (one.peer == options_.self && one.why == wire::StallCause::too_large)
      found->beyond_cap.insert(found->reduction.plan()->ballot);
  }
  return unfit;
}

std::size_t Averager::ballots_beyond_cap(StepId step) const {
  const Step* found = find(step);
  return found != nullptr ? found->beyond_cap.size() : 0;
}

Averager::News Averager::take_news(StepId step) {
  News news;
  Step* found = find(step);
  if (found == nullptr || !found->reduction.plan()) return news;
  if (!found->told_scattered) news.scattered = found->told_scattered = found->reduction.scattered();
  if (!found->reduction.complete()) return news;
  const auto version = swarm::number_of(*found->reduction.plan());
  if (std::exchange(found->told_mean, version) == version) return news;
  news.gathered = !std::exchange(found->told_gathered, true);
  news.mean = found->reduction.mean().digest();
  return news;
}

bool Averager::complete(StepId step) const {
  const Step* found = find(step);
  return found != nullptr && found->reduction.complete();
}

Averager::Mean Averager::finish(StepId step, const std::vector<wire::Contribution>& contributions) {
  TW_CHECK(complete(step));
  const Reduction& reduction = find(step)->reduction;
  Mean mean{reduction.mean().segments(), contributions};
  std::erase_if(mean.own, [&](const wire::Contribution& c) { return !reduction.made(c); });
  steps_.erase(step);
  meter_.end_round();
  return mean;
}

// ---- who holds it up
// ------------------------------------------------------------------------------------------

std::vector<Reduction::Debt> Averager::debts(StepId step) const {
  const Step* found = find(step);
  return found != nullptr ? found->reduction.debts() : std::vector<Reduction::Debt>{};
}

std::vector<Averager::Objection> Averager::objections(Instant now, StepId step,
                                                      const RoundTrips& round_trip) {
  std::vector<Objection> objections;
  Step* found = find(step);
  if (found == nullptr || !found->reduction.plan() || found->reduction.complete()) return objections;
  add_stalls(now, *found, round_trip, objections);
  add_slow(now, *found, objections);
  return objections;
}

void Averager::add_stalls(Instant now, Step& step, const RoundTrips& round_trip, std::vector<Objection>& to) {
  // While anything arrives, the bandwidth is in use, and a peer whose segments come later has not stalled.
  Instant last_came{};
  for (const auto& [peer, last] : last_bulk_) last_came = std::max(last_came, last);
  const std::map<PeerId, wire::StallCause> owing = step.reduction.owing();
  std::erase_if(step.owes_since, [&](const auto& entry) { return !owing.contains(entry.first); });
  for (const auto& [peer, cause] : owing) {
    Instant& owes_since = step.owes_since.try_emplace(peer, step.planned_at).first->second;
    const Duration limit = swarm::owing_after(round_trip(peer));
    if (now - std::max(step.planned_at, last_came) < limit || now - reported_[peer] < swarm::kReportAgain)
      continue;
    reported_[peer] = now;
    // While its segments arrive, the missing ones are on their way.
    const Instant quiet_since = std::max(owes_since, last_bulk_[peer]);
    const bool ask_again = now - quiet_since >= swarm::kAskAgainAfter;
    if (ask_again) owes_since = now;
    to.push_back({peer, cause, {}, ask_again});
  }
}

// Names peers that still send, but so slowly that they would hold up the round: others can reduce the rest.
void Averager::add_slow(Instant now, const Step& step, std::vector<Objection>& to) {
  const Duration expected = from_seconds(step.reduction.plan()->expected_s);
  const Duration elapsed = now - step.planned_at;
  const bool early = expected <= Duration{} || elapsed < swarm::slow_is_known_after(expected);
  if (early || now - slowness_told_at_ < swarm::kReportAgain) return;
  slowness_told_at_ = now;
  for (const Reduction::Debt& debt : step.reduction.debts()) {
    const double part = static_cast<double>(debt.here) / static_cast<double>(debt.all);
    if (debt.here == debt.all || elapsed <= swarm::slow_after(expected, part)) continue;
    const wire::StallCause cause =
        debt.contributes ? wire::StallCause::slow_contribution : wire::StallCause::slow_mean;
    to.push_back({debt.peer, cause, step.reduction.missing_of(debt.peer)});
  }
}

// ---- messages
// -------------------------------------------------------------------------------------------------

std::optional<Averager::Refused> Averager::on_bulk(Instant now, PeerId from, const wire::Message& message) {
  const auto* scatter = std::get_if<wire::Scatter>(&message);
  const auto* gather = std::get_if<wire::Gather>(&message);
  TW_CHECK(scatter != nullptr || gather != nullptr);
  const StepId told = scatter != nullptr ? scatter->step : gather->step;
  if (told.round == newest_ + 1) {  // before its record, that of round 0 too, is here
    keep_early(now, from, message);
    return std::nullopt;
  }
  Step* step = find(told);
  if (step == nullptr) return std::nullopt;  // late: that step is decided
  end_probe();
  Reduction& reduction = step->reduction;
  const Status fits = scatter != nullptr ? reduction.fits(*scatter) : reduction.fits(*gather);
  if (!fits.ok()) return Refused{from, true, fits.error().message};
  const Status taken =
      scatter != nullptr ? reduction.on_scatter(from, *scatter) : reduction.on_gather(from, *gather);
  if (!taken.ok()) return Refused{from, false, taken.error().message};
  last_bulk_[from] = now;
  return std::nullopt;
}

void Averager::keep_early(Instant now, PeerId from, const wire::Message& message) {
  const auto* scatter = std::get_if<wire::Scatter>(&message);
  const Blob& payload = scatter != nullptr ? scatter->payload : std::get<wire::Gather>(message).payload;
  const Geometry& geometry = options_.fragments.largest();
  const std::uint64_t vector = encoded_bytes(codec_of_mean(options_.codec), geometry);
  const std::uint64_t bound = kEarlyVectors * (vector + geometry.segments() * kEarlyOverhead);
  std::uint64_t& kept = early_bytes_[from];
  const std::uint64_t bytes = kEarlyOverhead + payload.size();
  if (kept + bytes > bound) return;
  kept += bytes;
  last_bulk_[from] = now;
  early_.emplace_back(from, message);
}

bool Averager::on_bandwidth_report(Instant now, PeerId from, const wire::BandwidthReport& bandwidth_report,
                                   Duration round_trip) {
  meter_.on_bandwidth_report(now, from, bandwidth_report, round_trip);
  probe_.on_bandwidth_report(from, bandwidth_report, round_trip);
  return probe_.aims_at(from);
}

void Averager::on_new_link(PeerId peer) {
  for (auto& [id, step] : steps_) step.reduction.on_new_link(peer);
  custody_.on_new_link(peer);
}

void Averager::on_close(PeerId peer, bool member) {
  meter_.on_close(peer);
  last_bulk_.erase(peer);
  if (member) return;
  early_bytes_.erase(peer);
  std::erase_if(early_, [&](const auto& entry) { return entry.first == peer; });
  for (auto& [id, step] : steps_) step.reduction.on_lost_link(peer);
}

// ---- bandwidth
// ----------------------------------------------------------------------------------------------------

std::optional<wire::Message> Averager::next_segment(PeerId to) {
  for (auto& [id, step] : steps_) {
    std::optional<wire::Message> message = step.reduction.next_bulk(to);
    if (message) end_probe();
    if (message) return message;
  }
  return custody_.next_segment(to);
}

std::optional<wire::Message> Averager::next_padding(Instant now, PeerId to) {
  std::optional<wire::Message> message = probe_.next_bulk(now, to);
  if (!message && !probe_.holds_back(now, to)) meter_.ran_dry(to);
  return message;
}

Instant Averager::has_lines_until() const {
  Instant until{};
  for (const auto& [id, step] : steps_) until = std::max(until, step.lines_until);
  return until;
}

// A peer that joins later, or resumes, is measured by its usual traffic.
std::vector<PeerId> Averager::begin_probe(Instant now, const std::vector<wire::Member>& members) {
  const codec::Codec codec = codec_of_mean(options_.codec);
  const Geometry& geometry = options_.fragments.largest();
  const Probe::Sizes sizes{encoded_bytes(codec, geometry), encoded_bytes(codec, geometry.segment_length)};
  if (!std::exchange(may_probe_, false) || newest_ != 1 || sizes.vector_bytes < options_.probe_from)
    return {};
  std::vector<PeerId> targets = Probe::targets(options_.self, members);
  probe_.begin(now, targets, sizes);
  return targets;
}

std::vector<PeerId> Averager::step(Instant now) {
  std::vector<PeerId> targets = probe_.to_be_nudged(now);
  if (probe_.is_over(now)) end_probe();
  return targets;
}

void Averager::end_probe() {
  if (!probe_.is_under_way()) return;
  probe_.end();
  probed_ = meter_.bandwidth();
}

std::optional<wire::Bandwidth> Averager::take_probed() { return std::exchange(probed_, std::nullopt); }

std::vector<PeerId> Averager::take_wakeups() {
  std::vector<PeerId> peers;
  for (auto& [id, step] : steps_) std::ranges::copy(step.reduction.take_wakeups(), std::back_inserter(peers));
  return peers;
}

std::uint64_t Averager::held_bytes() const {
  std::uint64_t bytes = custody_.held_bytes();
  for (const auto& [id, step] : steps_) bytes += step.reduction.held_bytes();
  for (const auto& [peer, early] : early_bytes_) bytes += early;
  return bytes;
}

}  // namespace tw::average
