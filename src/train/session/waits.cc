// SPDX-License-Identifier: Apache-2.0
#include "train/session/waits.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace tw::train {
namespace {

using namespace std::chrono_literals;

/// A wait that lasts longer names its cause (docs/reliability.md).
constexpr Duration kNameWaitAfter = 4s;
constexpr int kUnusualTimes = 3;

}  // namespace

void OwnWork::submitted(Instant now, swarm::Wait what) {
  if (jobs_.empty()) since_ = now;
  jobs_.push_back(std::move(what));
}

void OwnWork::finished(Instant now, Duration took) {
  Usual& usual = usual_[jobs_.front().kind];
  // The first one compiles and warms up.
  usual.took = ++usual.seen <= 2 ? took : usual.took + (took - usual.took) / 4;
  jobs_.pop_front();
  since_ = now;
}

void OwnWork::dropped(Instant now, std::size_t number) {
  TW_CHECK(number < jobs_.size());
  jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(number));
  if (number == 0) since_ = now;
}

swarm::Wait OwnWork::current() const { return jobs_.empty() ? swarm::Wait{} : jobs_.front(); }

Duration OwnWork::usual(swarm::Wait::Kind kind) const {
  const auto found = usual_.find(kind);
  return found == usual_.end() ? Duration{} : found->second.took;
}

void Waits::on_refused(Instant now, const std::string& address, const std::string& cause) {
  std::erase_if(unanswered_, [&](const auto& dials) { return now - dials.second.last >= kDialledNoMore; });
  Dials& dials = unanswered_[address];
  dials.last = now;
  dials.known.address = address;
  dials.known.cause = cause;
  ++dials.known.attempts;
  if (unanswered_.size() <= kMostAddresses) return;
  unanswered_.erase(
      std::ranges::min_element(unanswered_, {}, [](const auto& entry) { return entry.second.last; }));
}

std::optional<swarm::Wait::Unanswered> Waits::unanswered(Instant now, const std::string& address) const {
  const auto found = unanswered_.find(address);
  if (found == unanswered_.end() || now - found->second.last >= kDialledNoMore) return std::nullopt;
  return found->second.known;
}

Duration Waits::told_first_after() const {
  if (last_.kind != swarm::Wait::Kind::computing) return kNameWaitAfter;
  return std::max(kNameWaitAfter, kUnusualTimes * compute_.usual(last_.kind));
}

std::optional<world::Event> Waits::watch(Instant now, Round round, const swarm::Wait& wait) {
  const bool rounds_go_on = wait.kind == swarm::Wait::Kind::link;  // for the others
  const bool same = goes_on(last_, wait) && (round == round_ || rounds_go_on);
  last_ = wait;
  round_ = round;
  if (!same) since_ = now;
  if (!same) told_after_ = {};
  if (wait.kind == swarm::Wait::Kind::computing && compute_.since() > since_) {  // another microbatch
    since_ = compute_.since();
    told_after_ = {};
  }
  const Duration waited = now - since_;
  if (wait.kind == swarm::Wait::Kind::nothing || waited < told_first_after()) return std::nullopt;
  if (told_after_ != Duration{} && waited < told_after_ + std::max(kNameWaitAfter, told_after_ / 2))
    return std::nullopt;
  told_after_ = waited;
  world::Event event{.at = now, .round = round, .why = text_of(wait)};
  if (!wait.peers.empty()) event.peer = wait.peers.front();
  event::Wait told{.peers = wait.peers, .seconds = to_seconds(waited)};
  if (wait.total > 0) {
    told.done = wait.done;
    told.total = wait.total;
  }
  event.fact = std::move(told);
  return event;
}

}  // namespace tw::train
