// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/peer_track.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tw::monitor {

using world::Phase;

namespace {

/// Rounds this old were told already.
constexpr double kTellRoundsS = 3;

/// What a peer told once a second does not hold any more when it has said nothing for so long.
constexpr double kSilentS = 5;

}  // namespace

void Uptime::note(double at_s, bool starts, bool stops) {
  if (starts) end();
  if (!runs_) begun_s_ = last_s_ = at_s;
  runs_ = true;
  last_s_ = std::max(last_s_, at_s);
  if (stops) end();
}

void Uptime::set_hours(double hours) {
  ended_s_ = hours * 3600;
  runs_ = false;
}

void Uptime::end() {
  if (runs_) ended_s_ += last_s_ - begun_s_;
  runs_ = false;
}

void Contributions::add(Round round, std::uint64_t samples, double at_s) {
  if (!last_.empty() && last_.back().round == round) {
    samples_ += samples - last_.back().samples;
    last_.back() = {round, samples, at_s};
    return;
  }
  last_.push_back({round, samples, at_s});
  if (last_.size() > kMostKept) last_.pop_front();
  ++rounds_;
  samples_ += samples;
}

void Contributions::set(std::uint64_t rounds, std::uint64_t samples, double samples_per_s) {
  last_.clear();
  rounds_ = rounds;
  samples_ = samples;
  told_per_s_ = samples_per_s;
}

void Contributions::rewind(Round to) {
  for (; !last_.empty() && last_.back().round > to; last_.pop_back()) {
    samples_ -= last_.back().samples;
    --rounds_;
  }
}

double Contributions::samples_per_s() const {
  if (last_.size() < 2) return told_per_s_.value_or(0);
  const std::size_t first = last_.size() > kSpeedRounds ? last_.size() - kSpeedRounds : 1;
  double samples = 0;
  for (std::size_t i = first; i < last_.size(); ++i) samples += static_cast<double>(last_[i].samples);
  const double seconds = last_.back().at_s - last_[first - 1].at_s;
  return seconds > 0 ? samples / seconds : 0;
}

void Stages::take(const Seen& seen) {
  const world::Event& event = seen.event();
  if (event.phase == Phase::accumulate) begun_s_ = called_s_ = seen.at_s;
  if (event.phase == Phase::call && called_s_ == begun_s_) called_s_ = seen.at_s;
  if (event.phase == Phase::lead && event.round != led_.back()) led_ = {led_.back(), event.round};
  if (event.phase == Phase::lost) take_lost(seen);
  if (event.phase == Phase::commit) take_commit(seen);
}

void Stages::take_commit(const Seen& seen) {
  const world::Event& event = seen.event();
  // A round that is committed again, after a return to a checkpoint, is told again.
  while (!rounds_.empty() && rounds_.back().round >= event.round) rounds_.pop_back();
  BoardRound& part = rounds_.emplace_back();
  part.round = event.round;
  part.begun_s = begun_s_;
  part.called_s = std::max(called_s_, begun_s_);
  part.committed_s = seen.at_s;
  if (std::ranges::find(led_, event.round) != led_.end()) {
    part.calc_s = number_in(event, "calc_s");
    part.comm_s = number_in(event, "comm_s");
  }
  part.samples = seen.count("samples");
  part.samples_total = seen.count("samples_total");
  if (part.samples > 0) part.contributors = {seen.writer()};
  part.left_out = std::move(left_out_[event.round]);
  part.loss = number_in(event, "loss");
  left_out_.erase(left_out_.begin(), left_out_.upper_bound(event.round));
  if (rounds_.size() > wire::kMostToldRounds) rounds_.pop_front();
}

void Stages::take_lost(const Seen& seen) {
  const world::Event& event = seen.event();
  if (!event.peer) return;
  const auto committed = std::ranges::find(rounds_, event.round, &BoardRound::round);
  std::vector<LeftOut>& out = committed != rounds_.end() ? committed->left_out : left_out_[event.round];
  const bool known = std::ranges::find(out, *event.peer, &LeftOut::peer) != out.end();
  if (!known && out.size() < wire::kMostLeftOut)
    out.push_back({*event.peer, wire::cut_text(event.why, wire::kMostWhyBytes)});
}

std::vector<BoardRound> Stages::rounds(double now_s) const {
  std::vector<BoardRound> told;
  for (const BoardRound& part : rounds_)
    if (now_s - *part.committed_s <= kTellRoundsS || &part == &rounds_.back()) told.push_back(part);
  return told;
}

bool PeerTrack::is_gone() const {
  return !lane.is_empty() && (lane.state() == PeerState::left || lane.state() == PeerState::lost);
}

void PeerTrack::enter(PeerState state, const Seen& seen) {
  shown_.round = std::max(shown_.round, seen.event().round);
  doing_ = state;
  if (is_gone()) return;
  lane.enter(leaves_ ? PeerState::leaving : state, shown_.round, seen.at_s);
  shown_.wait.reset();
}

void PeerTrack::gone(PeerState how, const std::string& why, Round round, double at_s) {
  lane.enter(how, std::max(shown_.round, round), at_s);
  shown_.wait.reset();
  shown_.ended = why;
}

void PeerTrack::take_start(const Seen& seen) {
  ended_ = shown_.usage;
  leaves_ = false;
  standing.stopped_s.reset();
  shown_.notice.reset();
  shown_.wait.reset();
  shown_.gpu.reset();
  shown_.ended.clear();
  if (std::string site = seen.event().text("site"); !site.empty()) shown_.site = std::move(site);
  if (std::string hardware = seen.event().text("hardware"); !hardware.empty())
    shown_.hardware = std::move(hardware);
  shown_.anchor = seen.count("anchor") != 0;
  if (const auto price = number_in(seen.event(), "usd_per_h")) shown_.usd_per_h = price;
  doing_ = PeerState::starting;
  lane.enter(doing_, shown_.round, seen.at_s);
}

void PeerTrack::take_usage(const Seen& seen) {
  BoardUsage& usage = shown_.usage;
  const auto take = [&](std::string_view name, std::uint64_t before, std::uint64_t& target) {
    if (number_in(seen.event(), name)) target = before + seen.count(name);
  };
  if (const auto cpu_s = finite_in(seen.event(), "cpu_s")) usage.cpu_s = ended_.cpu_s + *cpu_s;
  if (number_in(seen.event(), "peak_memory"))
    usage.peak_memory = std::max(ended_.peak_memory, seen.count("peak_memory"));
  if (number_in(seen.event(), "gpu_memory_total")) {
    const std::optional<double> busy = finite_in(seen.event(), "gpu_busy");
    shown_.gpu = BoardGpu{busy, seen.count("gpu_memory"), seen.count("gpu_memory_total")};
  }
  if (const auto up = finite_in(seen.event(), "up_mbit_s")) shown_.up_mbit_s = *up;
  if (const auto down = finite_in(seen.event(), "down_mbit_s")) shown_.down_mbit_s = *down;
  take("bytes_sent", ended_.bytes_sent, usage.bytes_sent);
  take("bytes_received", ended_.bytes_received, usage.bytes_received);
}

void PeerTrack::take_notice(const Seen& seen) {
  const world::Event& event = seen.event();
  BoardNotice notice{.source = event.source,
                     .kind = std::string(name_of(event.cause)),
                     .told_s = seen.at_s,
                     .deadline_s = {}};
  if (const auto left_s = number_in(event, "deadline_s")) notice.deadline_s = seen.at_s + *left_s;
  shown_.notice = std::move(notice);
  const bool goes = event.cause == world::Cause::preempt || event.cause == world::Cause::maintenance;
  if (!goes || is_gone()) return;
  leaves_ = true;
  lane.enter(PeerState::leaving, shown_.round, seen.at_s);
}

void PeerTrack::take_wait(const Seen& seen) {
  constexpr double kTellAgainS = 4;  // train/session/waits.h: after that, or half of what it lasted
  constexpr double kLateS = 2;
  const world::Event& event = seen.event();
  const double lasted_s = number_in(event, "seconds").value_or(0);
  BoardWait wait{.text = event.why, .since_s = seen.at_s - lasted_s, .peers = event.peers};
  if (wait.peers.empty() && event.peer) wait.peers = {*event.peer};
  shown_.wait = std::move(wait);
  wait_ends_s_ = seen.at_s + std::max(kTellAgainS, lasted_s / 2) + kLateS;
  if (!is_gone()) lane.wait(event.why);
}

void PeerTrack::take(const Seen& seen) {
  const world::Event& event = seen.event();
  shown_.heard_s = std::max(shown_.heard_s, seen.at_s);
  uptime.note(seen.at_s, event.phase == Phase::start, event.phase == Phase::stop);
  take_usage(seen);
  stages.take(seen);
  switch (event.phase) {
    case Phase::start:
      return take_start(seen);
    case Phase::accumulate:
      return enter(PeerState::computing, seen);
    case Phase::call:
      return enter(PeerState::averaging, seen);
    case Phase::commit:
      return enter(PeerState::applying, seen);
    case Phase::restore:
      if (event.digest.empty()) return enter(PeerState::fetching, seen);
      shown_.round = event.round;  // it may have given up a history with more rounds
      contributions.rewind(event.round);
      [[fallthrough]];
    case Phase::apply:
      shown_.digest = event.digest;
      shown_.digest_round = event.round;
      return enter(PeerState::applying, seen);
    case Phase::notice:
      return take_notice(seen);
    case Phase::wait:
      return take_wait(seen);
    case Phase::handover:
      leaves_ = true;
      return enter(PeerState::leaving, seen);
    case Phase::stop:
      standing.stopped_s = seen.at_s;
      return gone(PeerState::left, event.why, event.round, seen.at_s);
    default:
      return;
  }
}

void PeerTrack::take_stages(const BoardRound& last) {
  if (last.round <= told_round_) return;
  told_round_ = last.round;
  const auto enter = [&](PeerState state, double at_s) {
    lane.enter(leaves_ ? PeerState::leaving : state, last.round, at_s);
  };
  enter(PeerState::computing, last.begun_s);
  enter(PeerState::averaging, last.called_s.value_or(last.begun_s));
  enter(PeerState::applying, last.committed_s.value_or(last.begun_s));
}

void PeerTrack::take(const wire::Status& status, double at_s) {
  const BoardPeer before = std::exchange(shown_, status.peer);
  shown_.peer = before.peer;
  shown_.heard_s = std::max(before.heard_s, at_s);
  shown_.ended = before.ended;
  if (shown_.site.empty()) shown_.site = before.site;
  if (shown_.hardware.empty()) shown_.hardware = before.hardware;
  if (!shown_.usd_per_h) shown_.usd_per_h = before.usd_per_h;
  if (shown_.digest.empty())
    std::tie(shown_.digest, shown_.digest_round) = std::tie(before.digest, before.digest_round);
  uptime.set_hours(shown_.usage.hours);
  contributions.set(shown_.rounds, shown_.samples, shown_.samples_per_s);
  leaves_ = shown_.state == PeerState::leaving;
  wait_ends_s_ = at_s + kSilentS;
  if (is_gone()) return;
  if (!status.rounds.empty()) take_stages(status.rounds.back());
  lane.enter(shown_.state, shown_.round, shown_.since_s);
  if (shown_.wait) lane.wait(shown_.wait->text);
}

BoardPeer PeerTrack::board(double now_s) const {
  BoardPeer peer = shown_;
  peer.state = lane.state();
  peer.since_s = lane.since_s();
  peer.rounds = contributions.rounds();
  peer.samples = contributions.samples();
  peer.samples_per_s = is_gone() ? 0 : contributions.samples_per_s();
  peer.usage.hours = uptime.hours();
  if (now_s > wait_ends_s_) peer.wait.reset();
  return peer;
}

}  // namespace tw::monitor
