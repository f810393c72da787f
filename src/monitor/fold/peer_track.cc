// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/peer_track.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace tw::monitor {

namespace {

/// Rounds this old were told already.
constexpr double kTellRoundsS = 3;

/// What a peer told once a second does not hold any more when it has said nothing for so long.
constexpr double kSilentS = 5;

/// A peer of another history is there no more when it has said nothing for so long.
constexpr double kApartS = 60;

/// It computes for the next round already. Its update then waits for a microbatch to end.
bool works_ahead(const event::Commit& commit) { return event::finite(commit.hidden_s).value_or(0) > 0; }

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

void Contributions::tells(Round round) {
  told_ = std::max(told_, round);
  while (!credits_.empty() && credits_.front().round <= told_) credits_.pop_front();
}

void Contributions::add(Round round, std::uint64_t samples, double at_s) {
  tells(round);
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

void Contributions::credit(Round round, std::uint64_t samples) {
  const bool is_new = told_ < round && (credits_.empty() || credits_.back().round < round);
  if (samples == 0 || !is_new) return;
  credits_.push_back({round, samples, 1});
  if (credits_.size() <= kMostKept) return;
  const Credit oldest = credits_.front();
  credits_.pop_front();
  credits_.front().samples += oldest.samples;
  credits_.front().rounds += oldest.rounds;
}

std::uint64_t Contributions::rounds(bool is_gone) const {
  std::uint64_t rounds = rounds_;
  if (is_gone)
    for (const Credit& credit : credits_) rounds += credit.rounds;
  return rounds;
}

std::uint64_t Contributions::samples(bool is_gone) const {
  std::uint64_t samples = samples_;
  if (is_gone)
    for (const Credit& credit : credits_) samples += credit.samples;
  return samples;
}

void Contributions::set(Round last, std::uint64_t rounds, std::uint64_t samples, double samples_per_s) {
  tells(last);
  last_.clear();
  rounds_ = rounds;
  samples_ = samples;
  told_per_s_ = samples_per_s;
}

void Contributions::rewind(Round to) {
  told_ = std::min(told_, to);
  while (!credits_.empty() && credits_.back().round > to) credits_.pop_back();
  for (; !last_.empty() && last_.back().round > to; last_.pop_back()) {
    samples_ -= last_.back().samples;
    --rounds_;
  }
  if (to == 0) rounds_ = samples_ = 0;  // also those that are kept no more
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
  if (event.as<event::Accumulate>() && std::exchange(begun_, event.round) != event.round)
    begun_s_ = seen.at_s;
  if (event.as<event::Lost>()) take_lost(seen);
  if (const auto* commit = event.as<event::Commit>()) take_commit(seen, *commit);
}

void Stages::take_commit(const Seen& seen, const event::Commit& commit) {
  const world::Event& event = seen.event();
  // A round that is committed again, after a return to a checkpoint, is told again.
  while (!rounds_.empty() && rounds_.back().round >= event.round) rounds_.pop_back();
  BoardRound& part = rounds_.emplace_back();
  part.round = event.round;
  part.begun_s = begun_s_;
  part.called_s = std::max(only_averaged_since(seen, commit).value_or(begun_s_), begun_s_);
  part.committed_s = seen.at_s;
  if (commit.samples > 0) {
    part.calc_s = event::finite(commit.calc_s);
    part.comm_s = event::finite(commit.comm_s);
  }
  part.samples = commit.samples;
  part.samples_total = commit.samples_total;
  if (part.samples > 0) part.contributors = {seen.writer()};
  part.left_out = std::move(left_out_[event.round]);
  part.loss = commit.loss;
  if (works_ahead(commit)) {
    begun_ = event.round + 1;
    begun_s_ = seen.at_s;
  }
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

void PeerTrack::stands_at(Round round) {
  shown_.round = std::min(shown_.round, round);
  told_round_ = std::min(told_round_, round);
}

void PeerTrack::take_start(const Seen& seen, const event::Start& start) {
  ended_ = shown_.usage;
  leaves_ = false;
  called_ = 0;
  standing.started_s = seen.at_s;
  standing.stopped_s.reset();
  shown_.notice.reset();
  shown_.wait.reset();
  shown_.gpu.reset();
  shown_.ended.clear();
  if (!start.site.empty()) shown_.site = start.site;
  if (!start.hardware.empty()) shown_.hardware = start.hardware;
  shown_.anchor = start.anchor;
  if (start.usd_per_h) shown_.usd_per_h = start.usd_per_h;
  doing_ = PeerState::starting;
  lane.enter(doing_, shown_.round, seen.at_s);
}

void PeerTrack::take_bytes(const event::Count& sent, const event::Count& received) {
  if (sent) shown_.usage.bytes_sent = ended_.bytes_sent + *sent;
  if (received) shown_.usage.bytes_received = ended_.bytes_received + *received;
}

void PeerTrack::take_use(const event::Use& use) {
  BoardUsage& usage = shown_.usage;
  if (const auto cpu_s = event::finite(use.cpu_s)) usage.cpu_s = ended_.cpu_s + *cpu_s;
  if (use.peak_memory) usage.peak_memory = std::max(ended_.peak_memory, *use.peak_memory);
  if (use.gpu_memory_total)
    shown_.gpu = BoardGpu{event::finite(use.gpu_busy), use.gpu_memory.value_or(0), *use.gpu_memory_total};
  take_bytes(use.bytes_sent, use.bytes_received);
}

void PeerTrack::take_bandwidth(const event::Bandwidth& bandwidth) {
  if (const auto up = event::finite(bandwidth.up_mbit_s)) shown_.up_mbit_s = *up;
  if (const auto down = event::finite(bandwidth.down_mbit_s)) shown_.down_mbit_s = *down;
}

void PeerTrack::take_notice(const Seen& seen, const event::Notice& told) {
  BoardNotice notice{
      .source = told.source, .kind = std::string(name_of(told.cause)), .told_s = seen.at_s, .deadline_s = {}};
  if (told.deadline_s) notice.deadline_s = seen.at_s + *told.deadline_s;
  shown_.notice = std::move(notice);
  if (!told.goes() || is_gone()) return;
  leaves_ = true;
  lane.enter(PeerState::leaving, shown_.round, seen.at_s);
}

void PeerTrack::take_wait(const Seen& seen, const event::Wait& told) {
  constexpr double kTellAgainS = 4;  // train/session/waits.h: after that, or half of what it lasted
  constexpr double kLateS = 2;
  const world::Event& event = seen.event();
  const double lasted_s = told.seconds.value_or(0);
  const auto is_other = [&](PeerId peer) { return peer != seen.writer(); };
  if (called_ == event.round && std::ranges::any_of(told.peers, is_other))
    begin_averaging(seen.at_s - lasted_s);
  BoardWait wait{.text = event.why, .since_s = seen.at_s - lasted_s, .peers = told.peers};
  if (wait.peers.empty() && event.peer) wait.peers = {*event.peer};
  shown_.wait = std::move(wait);
  wait_ends_s_ = seen.at_s + std::max(kTellAgainS, lasted_s / 2) + kLateS;
  if (!is_gone()) lane.wait(event.why);
}

void PeerTrack::take(const Seen& seen) {
  const world::Event& event = seen.event();
  shown_.heard_s = std::max(shown_.heard_s, seen.at_s);
  uptime.note(seen.at_s, event.as<event::Start>() != nullptr, event.as<event::Stop>() != nullptr);
  if (const event::Use* use = world::use_in(event)) take_use(*use);
  if (const event::Bandwidth* bandwidth = world::bandwidth_in(event)) take_bandwidth(*bandwidth);
  stages.take(seen);
  if (const auto* start = event.as<event::Start>()) return take_start(seen, *start);
  if (event.as<event::Accumulate>()) return enter(PeerState::computing, seen);
  if (event.as<event::Call>()) return take_call(seen);
  if (event.as<event::Scatter>()) return begin_averaging(seen.at_s);
  if (const auto* commit = event.as<event::Commit>()) return take_commit(seen, *commit);
  if (const auto* restored = event.as<event::Restore>()) return take_restored(seen, *restored);
  if (const auto* applied = event.as<event::Apply>())
    return take_parameters(seen, applied->digest, event::finite(applied->took_s).value_or(0));
  if (const auto* notice = event.as<event::Notice>()) return take_notice(seen, *notice);
  if (const auto* wait = event.as<event::Wait>()) return take_wait(seen, *wait);
  if (event.as<event::Handover>()) {
    leaves_ = true;
    return enter(PeerState::leaving, seen);
  }
  if (const auto* stop = event.as<event::Stop>()) {
    take_bytes(stop->bytes_sent, stop->bytes_received);
    standing.stopped_s = seen.at_s;
    gone(PeerState::left, event.why, event.round, seen.at_s);
  }
}

void PeerTrack::take_dropped(const Seen& seen) {
  shown_.heard_s = std::max(shown_.heard_s, seen.at_s);
  uptime.note(seen.at_s, false, false);
  const Round round = seen.event().round;
  if (!seen.event().as<event::Commit>()) return;
  if (!standing.apart) standing.apart = Standing::Apart{.first = round};
  standing.apart->last = round;
}

bool PeerTrack::is_apart(double now_s) const { return standing.apart && now_s - heard_s() <= kApartS; }

/// Its own last microbatches are under way, mostly. The second one of a round (a peer was lost) changes
/// nothing.
void PeerTrack::take_call(const Seen& seen) {
  if (std::exchange(called_, seen.event().round) == seen.event().round)
    shown_.wait.reset();
  else
    enter(PeerState::computing, seen);
}

void PeerTrack::take_commit(const Seen& seen, const event::Commit& commit) {
  if (const auto since_s = only_averaged_since(seen, commit)) averages_since(seen.event().round, *since_s);
  enter(PeerState::applying, seen);
  if (!works_ahead(commit)) return;
  doing_ = PeerState::computing;
  if (lane.state() == PeerState::applying) lane.enter(doing_, seen.event().round + 1, seen.at_s);
}

/// As far as is known before the commit.
void PeerTrack::begin_averaging(double at_s) {
  if (doing_ != PeerState::computing) return;
  doing_ = PeerState::averaging;
  if (lane.state() == PeerState::computing) lane.enter(doing_, shown_.round, at_s);
}

/// In the round under way, of which it computed until then.
void PeerTrack::averages_since(Round round, double at_s) {
  if (lane.round() != round) return;
  if (lane.state() == PeerState::averaging) lane.began_at(at_s);
  if (lane.state() == PeerState::computing) lane.enter(PeerState::averaging, round, at_s);
}

void PeerTrack::take_restored(const Seen& seen, const event::Restore& restored) {
  called_ = 0;
  if (restored.digest.empty()) return enter(PeerState::fetching, seen);
  shown_.round = seen.event().round;  // it may have given up a history with more rounds
  contributions.rewind(seen.event().round);
  take_parameters(seen, restored.digest, 0);
}

void PeerTrack::take_parameters(const Seen& seen, const std::string& digest, double took_s) {
  shown_.digest = digest;
  shown_.digest_round = seen.event().round;
  enter(PeerState::applying, {seen.entry, seen.at_s - took_s});
}

void PeerTrack::take_stages(const BoardRound& last) {
  if (last.round <= told_round_) return;
  told_round_ = last.round;
  const auto enter = [&](PeerState state, double at_s) {
    lane.enter(leaves_ ? PeerState::leaving : state, last.round, at_s);
  };
  enter(PeerState::computing, last.begun_s);
  if (lane.state() == PeerState::computing) lane.began_at(last.begun_s);
  averages_since(last.round, last.called_s.value_or(last.begun_s));
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
  const Round last = status.rounds.empty() ? 0 : status.rounds.back().round;
  contributions.set(last, shown_.rounds, shown_.samples, shown_.samples_per_s);
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
  peer.rounds = contributions.rounds(is_gone());
  peer.samples = contributions.samples(is_gone());
  peer.samples_per_s = is_gone() ? 0 : contributions.samples_per_s();
  peer.usage.hours = uptime.hours();
  if (now_s > wait_ends_s_) peer.wait.reset();
  if (!is_gone()) peer.ended.clear();
  if (!is_gone() && standing.alone) peer.ended = fmt::format("alone since round {}", standing.alone->first);
  if (!is_apart(now_s)) return peer;
  peer.ended += peer.ended.empty() ? "" : "; ";
  peer.ended += fmt::format("apart from the others since round {}", standing.apart->first);
  if (!is_gone()) peer.state = PeerState::lost;
  return peer;
}

}  // namespace tw::monitor
