// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/peer_name.h"
#include "base/range_text.h"

namespace tw::monitor {
namespace {

Interruption told(Interruption::Kind kind, const Seen& seen, PeerId peer, std::string detail) {
  return {.kind = kind,
          .at_s = seen.at_s,
          .round = seen.event().round,
          .peer = peer,
          .detail = std::move(detail)};
}

/// gave_up: rounds of another history; nothing: it had none.
std::string back_after(const std::optional<Standing::Apart>& gave_up) {
  if (!gave_up) return "is back";
  const auto [first, last] = *gave_up;
  return first == last ? fmt::format("is back, gave up its round {}", first)
                       : fmt::format("is back, gave up its rounds {} to {}", first, last);
}

std::string words_of(const event::Notice& notice) {
  return fmt::format("{}: {}{}", notice.source, name_of(notice.cause),
                     notice.deadline_s ? fmt::format(" in {:.0f} s", *notice.deadline_s) : "");
}

}  // namespace

bool Peers::is_lost(PeerId peer) const {
  const auto found = tracks_.find(peer);
  return found != tracks_.end() && found->second.standing.lost_round;
}

bool Peers::ended_itself(const Interruption& loss, Round last) const {
  const auto found = tracks_.find(loss.peer);
  if (loss.kind != Interruption::Kind::lost || found == tracks_.end()) return false;
  return found->second.standing.ended_itself(loss.round, last);
}

bool Peers::stayed(const Standing& standing, Round last) {
  const bool lost = standing.lost_round && !standing.ended_itself(*standing.lost_round, last);
  return standing.first_round && !lost && !standing.left && !standing.superseded;
}

/// A peer goes on from a checkpoint, or from the beginning (to: 0): those of which nothing was heard since
/// then were lost, but for processes that have started since the last round.
void Peers::rewind(Round to, double since_s, const Seen& seen, News& news) {
  news.rewound = to;
  std::erase_if(named_, [to](const auto& named) { return named.second > to; });
  const auto last = std::exchange(last_commit_, std::nullopt);
  std::vector<std::string> lost;
  for (auto& [id, peer] : tracks_) {
    Standing& standing = peer.standing;
    peer.contributions.rewind(to);
    if (standing.lost_round) standing.lost_round = std::min(*standing.lost_round, to);
    if (standing.alone && standing.alone->first > to) standing.alone.reset();
    standing.apart.reset();
    standing.gave_up.reset();
    const bool is_new = standing.resumed || (last && standing.started_s > last->at_s);
    standing.superseded = !is_new;
    if (is_new && to == 0) peer.stands_at(to);
    if (is_new || !standing.first_round || peer.is_gone() || peer.heard_s() >= since_s) continue;
    standing.lost_round = std::min(peer.lane.round(), to);
    peer.gone(PeerState::lost, "lost with all other peers", peer.lane.round(), peer.heard_s());
    lost.push_back(peer_name(id));
  }
  if (!last && lost.empty()) return;
  std::string why = to == 0 ? "begins again" : "goes on from a checkpoint";
  if (last) why += fmt::format(", {:.1f} s after round {} was done", seen.at_s - last->at_s, last->round);
  if (!lost.empty()) why += fmt::format("; lost: {}", fmt::join(lost, ", "));
  news.interruption = told(Interruption::Kind::resumed, seen, seen.writer(), std::move(why));
  news.interruption->round = to;
}

void Peers::take_driver(const Seen& seen, News& news) {
  if (!seen.event().peer || !seen.event().as<event::Kill>()) return;
  PeerTrack& peer = track(*seen.event().peer);
  const bool counted = peer.standing.lost_round.has_value();
  peer.standing.killed = true;
  peer.standing.lost_round = seen.event().round;
  peer.gone(PeerState::lost, "killed", seen.event().round, seen.at_s);
  if (!counted) news.interruption = told(Interruption::Kind::lost, seen, *seen.event().peer, "killed");
}

void Peers::take_accumulate(const Seen& seen, News& news) {
  const Round round = seen.event().round;
  PeerTrack& peer = track(seen.writer());
  Standing& standing = peer.standing;
  const bool goes_on = standing.resumed && *standing.resumed + 1 == round;
  if (goes_on) rewind(*standing.resumed, standing.resumed_s, seen, news);
  standing.resumed.reset();

  standing.apart.reset();
  const auto gave_up = std::exchange(standing.gave_up, std::nullopt);
  const bool was_lost = standing.lost_round && round > *standing.lost_round;
  const bool returns = was_lost || gave_up;
  if (!first_round_) first_round_ = round;
  const auto named = named_.find(seen.writer());  // where the begin of its log is gone
  const Round first = named == named_.end() ? round : std::min(round, named->second);
  const bool comes = !standing.first_round && *first_round_ < first && !goes_on;
  if (!news.interruption && (returns || comes))
    news.interruption =
        told(Interruption::Kind::joined, seen, seen.writer(), returns ? back_after(gave_up) : "");
  if (was_lost) {
    standing.lost_round.reset();
    peer.back(round, seen.at_s);
  }
  if (!standing.first_round) standing.first_round = first;
}

/// A first round with another record belongs to another history. The run begins again with it where the
/// writer started after the last commit of the history before, and no process of that one was heard of since.
/// Else the history before stays: the start of another writer may yet show that the run begins again.
Peers::History Peers::history_of(const event::Commit& commit, Round round, double started_s) const {
  const bool goes_on = round != 1 || !last_commit_ || commit.digest == first_record_;
  if (goes_on) return History::goes_on;
  const bool is_alive = std::ranges::any_of(tracks_, [&](const auto& entry) {
    const PeerTrack& peer = entry.second;
    return peer.standing.started_s <= last_commit_->at_s && !peer.is_gone() && peer.heard_s() >= started_s;
  });
  return started_s > last_commit_->at_s && !is_alive ? History::begins_again : History::other;
}

void Peers::take_commit(const Seen& seen, const event::Commit& commit, News& news) {
  const Round round = seen.event().round;
  PeerTrack& writer = track(seen.writer());
  const double started_s = writer.standing.started_s;
  const History history = history_of(commit, round, started_s);
  if (history == History::begins_again) rewind(0, started_s, seen, news);
  if (history != History::other) {
    if (!last_commit_ || last_commit_->round < round) credit(round, commit);
    if (round == 1) first_record_ = commit.digest;
    last_commit_ = {round, seen.at_s};
  }
  note_alone(round, commit, writer);
  if (commit.samples > 0) writer.contributions.add(round, commit.samples, seen.at_s);
}

/// A lone peer is the majority of its own last record: only the first of its rounds is marked.
void Peers::note_alone(Round round, const event::Commit& commit, PeerTrack& peer) {
  Standing& standing = peer.standing;
  if (commit.members > 1) standing.alone.reset();
  if (commit.members == 1 && commit.cause == event::Cause::minority && !standing.alone) {
    standing.alone = Standing::Apart{.first = round};
    standing.before_alone = peer.contributions;
  }
  if (standing.alone) standing.alone->last = round;
}

/// What a lone peer decided does not count once it takes the state of others.
void Peers::take_restore(const Seen& seen, const event::Restore& restored) {
  PeerTrack& peer = track(seen.writer());
  Standing& standing = peer.standing;
  const bool resumes = restored.cause == event::Cause::checkpoint;
  standing.resumed = resumes ? std::optional(seen.event().round) : std::nullopt;
  standing.resumed_s = seen.at_s;
  if (restored.cause != event::Cause::none || restored.digest.empty()) return;
  if (standing.alone) peer.contributions = std::move(standing.before_alone);
  const auto before = standing.apart ? standing.apart : standing.alone;
  // A run that begins again has no word of them.
  if (before && before->first <= seen.event().round) standing.gave_up = before;
  standing.apart.reset();
  standing.alone.reset();
}

/// A peer that was killed after others took its samples has not told of them. The first line of a round names
/// the same samples as the others.
void Peers::credit(Round round, const event::Commit& commit) {
  for (const PeerId peer : commit.peers) named_.try_emplace(peer, round);
  for (const auto& [peer, samples] : commit.samples_of) {
    const auto found = tracks_.find(peer);
    if (found == tracks_.end()) continue;
    if (const auto ranges = ranges_in(samples)) found->second.contributions.credit(round, ranges->count());
  }
}

/// Peers that have a log tell of it themselves, when they begin to compute; the first word counts.
void Peers::take_join(const Seen& seen, News& news) {
  if (!seen.event().peer || *seen.event().peer == seen.writer()) return;
  PeerTrack& peer = track(*seen.event().peer);
  Standing& standing = peer.standing;
  const bool returns = standing.lost_round && seen.event().round >= *standing.lost_round;
  if (!returns && (standing.first_round || !first_round_)) return;
  if (returns && peer.is_gone()) peer.back(seen.event().round, seen.at_s);
  standing.lost_round.reset();
  standing.first_round = standing.first_round.value_or(seen.event().round);
  news.interruption = told(Interruption::Kind::joined, seen, *seen.event().peer, returns ? "is back" : "");
}

void Peers::take_leave(const Seen& seen, News& news) {
  const PeerId who = seen.event().peer.value_or(seen.writer());
  PeerTrack& peer = track(who);
  if (peer.standing.left) return;
  peer.standing.left = true;
  news.interruption = told(Interruption::Kind::left, seen, who, seen.event().why);
  peer.gone(PeerState::left, "left the run", seen.event().round, seen.at_s);
}

void Peers::take_lost(const Seen& seen, const event::Lost& lost, News& news) {
  const world::Event& event = seen.event();
  if (!event.peer || is_lost(seen.writer())) return;
  PeerTrack& victim = track(*event.peer);
  if (victim.standing.left || victim.standing.lost_round) return;
  victim.standing.lost_round = event.round;
  news.interruption = told(Interruption::Kind::lost, seen, *event.peer, event.why);
  const bool stays = lost.cause == event::Cause::verdict || victim.standing.stopped_s;
  if (!stays) victim.gone(PeerState::lost, event.why, event.round, seen.at_s);
}

Peers::News Peers::take(PeerId from, const wire::Status& status, double at_s) {
  News news;
  PeerTrack& peer = track(from);
  Standing& standing = peer.standing;
  if (!standing.first_round && status.peer.round > 0) standing.first_round = status.peer.round;
  if (standing.lost_round && status.peer.round > *standing.lost_round) {
    standing.lost_round.reset();
    peer.back(status.peer.round, at_s);
    news.interruption = {.kind = Interruption::Kind::joined,
                         .at_s = at_s,
                         .round = status.peer.round,
                         .peer = from,
                         .detail = "is back"};
  }
  peer.take(status, at_s);
  return news;
}

Peers::News Peers::take(const Seen& seen) {
  News news;
  if (seen.writer() == PeerId{}) {
    take_driver(seen, news);
    return news;
  }
  const world::Event& event = seen.event();
  if (event.as<event::Accumulate>()) {
    take_accumulate(seen, news);
  } else if (const auto* commit = event.as<event::Commit>()) {
    take_commit(seen, *commit, news);
  } else if (const auto* restored = event.as<event::Restore>()) {
    take_restore(seen, *restored);
  } else if (event.as<event::Join>()) {
    take_join(seen, news);
  } else if (event.as<event::Leave>()) {
    take_leave(seen, news);
  } else if (const auto* lost = event.as<event::Lost>()) {
    take_lost(seen, *lost, news);
  } else if (const auto* notice = event.as<event::Notice>()) {
    news.interruption = told(Interruption::Kind::notice, seen, seen.writer(), words_of(*notice));
  } else if (const auto* handover = event.as<event::Handover>(); handover && event.peer) {
    news.interruption =
        told(Interruption::Kind::handed_over, seen, seen.writer(),
             fmt::format("{} samples to peer {}", handover->samples.value_or(0), peer_name(*event.peer)));
  }
  track(seen.writer()).take(seen);
  return news;
}

}  // namespace tw::monitor
