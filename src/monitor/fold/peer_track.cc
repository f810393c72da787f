// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/peer_track.h"

#include <algorithm>

namespace tw::monitor {

using world::Phase;

namespace {

/// Rounds this old were told already.
constexpr double kTellSharesS = 3;

/// What a peer told once a second does not hold any more when it has said nothing for so long.
constexpr double kSilentS = 5;

PeerState state_of(wire::Doing doing) {
  switch (doing) {
    case wire::Doing::starting:
      return PeerState::starting;
    case wire::Doing::computing:
      return PeerState::computing;
    case wire::Doing::averaging:
      return PeerState::averaging;
    case wire::Doing::applying:
      return PeerState::applying;
    case wire::Doing::fetching:
      return PeerState::fetching;
    case wire::Doing::leaving:
      return PeerState::leaving;
    case wire::Doing::left:
      return PeerState::left;
  }
  return PeerState::starting;
}

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
  last_ = {.round = event.round,
           .begun_ago_s = begun_s_,
           .called_ago_s = std::max(called_s_, begun_s_),
           .committed_ago_s = seen.at_s,
           .calc_s = number_in(event, "calc_s").value_or(0),
           .comm_s = number_in(event, "comm_s").value_or(0),
           .leads = std::ranges::find(led_, event.round) != led_.end(),
           .samples_total = seen.count("samples_total")};
  // A round that is committed again, after a return to a checkpoint, is told again.
  while (!shares_.empty() && shares_.back().round >= event.round) shares_.pop_back();
  shares_.push_back({.round = event.round,
                     .committed_ago_s = seen.at_s,
                     .samples = seen.count("samples"),
                     .loss = number_in(event, "loss"),
                     .left_out = std::move(left_out_[event.round])});
  left_out_.erase(left_out_.begin(), left_out_.upper_bound(event.round));
  if (shares_.size() > wire::kMostShares) shares_.pop_front();
}

void Stages::take_lost(const Seen& seen) {
  const world::Event& event = seen.event();
  if (!event.peer) return;
  const auto committed = std::ranges::find(shares_, event.round, &wire::ShareWord::round);
  std::vector<wire::LeftOutWord>& out =
      committed != shares_.end() ? committed->left_out : left_out_[event.round];
  if (std::ranges::find(out, *event.peer, &wire::LeftOutWord::peer) == out.end())
    out.push_back({*event.peer, event.why});
}

std::vector<wire::ShareWord> Stages::shares(double now_s) const {
  std::vector<wire::ShareWord> told;
  for (const wire::ShareWord& share : shares_) {
    const double age_s = std::max(0.0, now_s - share.committed_ago_s);
    if (age_s > kTellSharesS && &share != &shares_.back()) continue;
    told.push_back(share);
    told.back().committed_ago_s = age_s;
  }
  return told;
}

wire::RoundWord Stages::last(double now_s) const {
  wire::RoundWord last = last_;
  for (double* time : {&last.begun_ago_s, &last.called_ago_s, &last.committed_ago_s})
    *time = last.round == 0 ? 0 : std::max(0.0, now_s - *time);
  return last;
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
  if (const auto cpu_s = number_in(seen.event(), "cpu_s")) usage.cpu_s = ended_.cpu_s + *cpu_s;
  if (number_in(seen.event(), "peak_memory"))
    usage.peak_memory = std::max(ended_.peak_memory, seen.count("peak_memory"));
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

void PeerTrack::take_stages(const wire::RoundWord& last, double at_s) {
  if (last.round == 0 || last.round <= told_round_) return;
  told_round_ = last.round;
  lane.enter(leaves_ ? PeerState::leaving : PeerState::computing, last.round, at_s - last.begun_ago_s);
  lane.enter(leaves_ ? PeerState::leaving : PeerState::averaging, last.round, at_s - last.called_ago_s);
  lane.enter(leaves_ ? PeerState::leaving : PeerState::applying, last.round, at_s - last.committed_ago_s);
}

void PeerTrack::take(const wire::Status& status, double at_s) {
  shown_.heard_s = std::max(shown_.heard_s, at_s);
  if (!status.site.empty()) shown_.site = status.site;
  if (!status.hardware.empty()) shown_.hardware = status.hardware;
  shown_.anchor = status.anchor;
  shown_.round = status.round;
  shown_.usage = {.hours = 0,
                  .cpu_s = status.usage.cpu_s,
                  .peak_memory = status.usage.peak_memory,
                  .bytes_sent = status.usage.bytes_sent,
                  .bytes_received = status.usage.bytes_received};
  if (status.parameters) {
    shown_.digest = to_string(status.parameters->digest);
    shown_.digest_round = status.parameters->round;
  }
  if (status.usd_per_h) shown_.usd_per_h = status.usd_per_h;
  uptime.set_hours(status.usage.hours);
  contributions.set(status.rounds, status.samples, status.samples_per_s);
  shown_.notice.reset();
  if (const auto& notice = status.notice) {
    shown_.notice = {.source = notice->source,
                     .kind = notice->kind,
                     .told_s = at_s - notice->told_ago_s,
                     .deadline_s = {}};
    if (notice->deadline_in_s) shown_.notice->deadline_s = at_s + *notice->deadline_in_s;
  }
  leaves_ = status.doing == wire::Doing::leaving;
  if (!is_gone()) {
    take_stages(status.last, at_s);
    lane.enter(state_of(status.doing), status.round, at_s - status.since_ago_s);
  }
  shown_.wait.reset();
  if (!status.wait) return;
  shown_.wait = {
      .text = status.wait->text, .since_s = at_s - status.wait->since_ago_s, .peers = status.wait->peers};
  wait_ends_s_ = at_s + kSilentS;
  if (!is_gone()) lane.wait(status.wait->text);
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
