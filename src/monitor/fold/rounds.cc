// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>

#include "base/peer_name.h"

namespace tw::monitor {

Rounds::Track& Rounds::track(Round round) {
  Track& found = tracks_[round];
  found.shown.round = round;
  return found;
}

void Rounds::rewind(Round to) {
  tracks_.erase(tracks_.upper_bound(to), tracks_.end());
  given_up_.clear();
  if (to == 0) begun_s_ = 0;
  last_ = std::min(last_, to);
  if (differing_ && differing_->round > to) differing_.reset();
  if (differed_ && differed_->round > to) differed_.reset();
  complete_ = false;
  for (auto& [peer, told] : told_) told = std::min(told, to);
}

/// The peer took a history whose last round is `after`: it had made later ones alone, if nobody else has
/// them.
void Rounds::gives_up(PeerId peer, Round after) {
  for (auto later = tracks_.upper_bound(after); later != tracks_.end();) {
    std::set<PeerId>& holders = later->second.committed_by;
    const bool is_last = holders.erase(peer) > 0 && holders.empty();
    if (is_last) given_up_[later->first] = std::move(later->second);
    later = is_last ? tracks_.erase(later) : std::next(later);
  }
  const auto committed = std::find_if(tracks_.rbegin(), tracks_.rend(),
                                      [](const auto& t) { return t.second.shown.committed_s.has_value(); });
  if (committed != tracks_.rend()) last_ = std::min(last_, committed->first);
}

void Rounds::take_up_again(Track& round) {
  const auto former = given_up_.extract(round.shown.round);
  if (former.empty() || round.record.empty() || former.mapped().record != round.record) return;
  const Track& known = former.mapped();
  round.own_samples += known.own_samples;
  round.loss_sum += known.loss_sum;
  round.loss_samples += known.loss_samples;
  if (!round.shown.loss) round.shown.loss = known.shown.loss;
}

void Rounds::take_commit(const Seen& seen, const event::Commit& commit) {
  const Round number = seen.event().round;
  Track& round = track(number);
  if (round.record.empty()) {
    round.record = commit.digest;
    take_up_again(round);
  }
  if (!commit.digest.empty() && commit.digest != round.record) ++forks_;
  const bool is_new = round.committed_by.insert(seen.writer()).second;  // a copy of a log has it once more
  if (!round.shown.committed_s) round.shown.committed_s = seen.at_s;
  last_ = std::max(last_, number);
  if (number >= last_) complete_ = commit.last;  // a run that ended may go on later
  round.shown.samples_total = std::max(round.shown.samples_total, commit.samples_total);
  round.shown.carried = std::max(round.shown.carried, commit.carried);
  if (commit.samples > 0) take_times(round, event::finite(commit.calc_s), event::finite(commit.comm_s));
  take_hidden(round, commit);
  if (is_new) round.own_samples += commit.samples;
  if (is_new && commit.loss) take_loss(round, *commit.loss, commit.samples);
  std::vector<PeerId>& contributors = round.shown.contributors;
  if (!commit.peers.empty()) {
    contributors = commit.peers;
  } else if (commit.samples > 0 && std::ranges::find(contributors, seen.writer()) == contributors.end()) {
    contributors.push_back(seen.writer());
  }
}

void Rounds::take_hidden(Track& round, const event::Commit& commit) {
  const auto hidden_s = event::finite(commit.hidden_s), comm_s = event::finite(commit.comm_s);
  if (!hidden_s || !comm_s || (round.hidden && round.hidden->comm_s <= *comm_s)) return;
  round.hidden = Hidden{*hidden_s, *comm_s};
}

/// These are the times of a peer with a part in the round. What others call averaging begins with a wait for
/// the work of the one that is ready last, so that one's times are those of the round.
void Rounds::take_times(Track& round, std::optional<double> calc_s, std::optional<double> comm_s) {
  if (!calc_s || !comm_s || (round.shown.comm_s && *round.shown.comm_s <= *comm_s)) return;
  round.shown.calc_s = calc_s;
  round.shown.comm_s = comm_s;
}

void Rounds::take_loss(Track& round, double loss, std::uint64_t samples) {
  if (samples == 0) return;
  knows_losses_ = true;
  round.loss_sum += loss * static_cast<double>(samples);
  round.loss_samples += samples;
  round.shown.loss = round.loss_sum / static_cast<double>(round.loss_samples);
}

/// Two histories have rounds of one number, so parameters are compared after one record.
void Rounds::take_digest(PeerId peer, Round number, const std::string& record, const std::string& digest) {
  if (digest.empty()) return;
  applied_ = true;
  const Parameters came{peer, digest};
  const Parameters& known = track(number).digests.try_emplace(record, came).first->second;
  if (known.digest != digest) differ({number, known, came});
}

/// A status does not tell the record: the parameters are those after one of the records of this round.
void Rounds::take_told_digest(PeerId peer, Round number, const std::string& digest) {
  applied_ = true;
  auto& digests = track(number).digests;
  const Parameters came{peer, digest};
  if (digests.empty()) digests.emplace("", came);
  const bool known =
      std::ranges::any_of(digests, [&](const auto& after) { return after.second.digest == digest; });
  if (!known) differ({number, digests.begin()->second, came});
}

void Rounds::differ(const Difference& difference) {
  if (!differing_) differing_ = difference;
  if (!differed_) differed_ = difference;
}

/// The peer takes the state of others: what it had is of no run any more.
void Rounds::falls_behind(PeerId peer) {
  if (differing_ && differing_->came.peer == peer) differing_.reset();
}

void Rounds::take(PeerId from, const wire::Status& status) {
  const BoardPeer& peer = status.peer;
  const bool fetches = peer.state == PeerState::fetching;
  if (fetches) falls_behind(from);
  if (!fetches && !peer.digest.empty() && is_known(peer.digest_round))
    take_told_digest(from, peer.digest_round, peer.digest);
  const Round last = status.rounds.empty() ? 0 : status.rounds.back().round;
  if (last < told_[from]) {  // it does rounds once more
    told_[from] = last;
    gives_up(from, last);
  }
  for (const BoardRound& part : status.rounds) take_part(from, part);
  if (!is_known(last)) return;
  const BoardRound& part = status.rounds.back();
  Track& round = track(last);
  if (round.shown.begun_s == 0) round.shown.begun_s = part.begun_s;
  round.shown.samples_total = std::max(round.shown.samples_total, part.samples_total);
}

void Rounds::take_part(PeerId from, const BoardRound& part) {
  const bool is_next = part.round > 0 && (last_ == 0 || part.round == last_ + 1);
  if (!is_known(part.round) && !is_next) return;
  Track& round = track(part.round);
  if (!round.shown.committed_s) round.shown.committed_s = part.committed_s;
  last_ = std::max(last_, part.round);
  for (const LeftOut& out : part.left_out) take_lost(part.round, out.peer, out.why);
  take_times(round, part.calc_s, part.comm_s);
  if (part.round <= told_[from]) return;
  told_[from] = part.round;
  round.committed_by.insert(from);
  round.own_samples += part.samples;
  if (part.loss) take_loss(round, *part.loss, part.samples);
  std::vector<PeerId>& contributors = round.shown.contributors;
  if (part.samples > 0 && std::ranges::find(contributors, from) == contributors.end())
    contributors.push_back(from);
}

void Rounds::take_lost(Round round, PeerId peer, const std::string& why) {
  std::vector<LeftOut>& out = track(round).shown.left_out;
  if (std::ranges::find(out, peer, &LeftOut::peer) == out.end()) out.push_back({peer, why});
}

void Rounds::take_call(const Seen& seen, const event::Call& call) {
  Track& round = track(seen.event().round);
  if (!round.shown.called_s) round.shown.called_s = seen.at_s;
  if (const auto bound_s = event::finite(call.bound_s)) round.bound_s = bound_s;
}

void Rounds::take(const Seen& seen, bool from_lost) {
  const world::Event& event = seen.event();
  if (event.as<event::Accumulate>()) {
    if (BoardRound& shown = track(event.round).shown; shown.begun_s == 0) shown.begun_s = seen.at_s;
  } else if (const auto* call = event.as<event::Call>()) {
    take_call(seen, *call);
  } else if (const auto* commit = event.as<event::Commit>()) {
    take_commit(seen, *commit);
  } else if (const auto* restored = event.as<event::Restore>()) {
    if (restored->digest.empty()) falls_behind(seen.writer());
    if (restored->cause == event::Cause::none && !restored->digest.empty())
      gives_up(seen.writer(), event.round);
    take_digest(seen.writer(), event.round, restored->record, restored->digest);
  } else if (const auto* applied = event.as<event::Apply>()) {
    take_digest(seen.writer(), event.round, applied->record, applied->digest);
  } else if (event.as<event::Lost>()) {
    if (event.peer && !from_lost) take_lost(event.round, *event.peer, event.why);
  }
  while (tracks_.size() > most_) {
    begun_s_ = begun_s();
    tracks_.erase(tracks_.begin());
  }
  while (given_up_.size() > most_) given_up_.erase(given_up_.begin());
}

std::optional<std::uint64_t> Rounds::batch_of(const Track& track) const {
  const Round number = track.shown.round;
  const auto before = tracks_.find(number - 1);
  const std::uint64_t sum_before = before == tracks_.end() ? 0 : before->second.shown.samples_total;
  const bool known = number == 1 || sum_before > 0;
  if (!known || track.shown.samples_total <= sum_before) return std::nullopt;
  return track.shown.samples_total - sum_before;
}

double Rounds::begun_s() const {
  if (begun_s_ > 0) return begun_s_;
  for (const auto& [number, track] : tracks_) {
    const double begun_s =
        track.shown.begun_s > 0 ? track.shown.begun_s : track.shown.committed_s.value_or(0);
    if (begun_s > 0) return begun_s;
  }
  return 0;
}

std::vector<BoardRound> Rounds::board() const {
  std::vector<BoardRound> rounds;
  for (const auto& [number, track] : tracks_) {
    if (track.shown.begun_s == 0 && !track.shown.committed_s) continue;
    BoardRound& round = rounds.emplace_back(track.shown);
    round.samples = batch_of(track).value_or(track.own_samples);
    if (track.bound_s && round.comm_s.value_or(0) > 0) round.bound_share = *track.bound_s / *round.comm_s;
    std::ranges::sort(round.contributors);
    std::erase_if(round.left_out, [&](const LeftOut& out) {
      return std::ranges::binary_search(round.contributors, out.peer);
    });
    if (round.begun_s == 0) round.begun_s = *round.committed_s;
  }
  return rounds;
}

std::uint64_t Rounds::samples() const {
  const auto found = tracks_.find(last_);
  return found == tracks_.end() ? 0 : found->second.shown.samples_total;
}

std::optional<double> Rounds::loss() const {
  if (!knows_losses_) return std::nullopt;
  for (auto at = tracks_.rbegin(); at != tracks_.rend(); ++at) {
    const Track& round = at->second;
    if (round.shown.loss && round.own_samples >= batch_of(round).value_or(~std::uint64_t{0}))
      return round.shown.loss;
  }
  return std::nullopt;
}

std::optional<double> Rounds::hidden(std::size_t rounds) const {
  double hidden_s = 0, comm_s = 0;
  for (auto at = tracks_.rbegin(); at != tracks_.rend() && rounds > 0; ++at, --rounds) {
    if (!at->second.hidden) continue;
    hidden_s += at->second.hidden->hidden_s;
    comm_s += at->second.hidden->comm_s;
  }
  return comm_s > 0 ? std::optional(std::min(1.0, hidden_s / comm_s)) : std::nullopt;
}

std::vector<const BoardRound*> Rounds::recent() const {
  std::vector<const BoardRound*> recent;
  for (auto at = tracks_.rbegin(); at != tracks_.rend() && recent.size() <= kSpeedRounds; ++at)
    if (const BoardRound& round = at->second.shown; round.committed_s && round.samples_total > 0)
      recent.push_back(&round);
  return recent;
}

BoardSpeed Rounds::speed() const {
  BoardSpeed speed;
  speed.hidden = hidden(kSpeedRounds);
  const std::vector<const BoardRound*> rounds = recent();
  double calc_s = 0, comm_s = 0;
  for (const BoardRound* round : rounds | std::views::take(kSpeedRounds)) {
    if (!round->calc_s || !round->comm_s) continue;
    calc_s += *round->calc_s;
    comm_s += *round->comm_s;
  }
  if (comm_s > 0) speed.granularity = calc_s / comm_s;
  if (rounds.size() < 2) return speed;
  const BoardRound& newest = *rounds.front();
  const BoardRound& oldest = *rounds.back();
  const double seconds = *newest.committed_s - *oldest.committed_s;
  const auto samples = static_cast<double>(newest.samples_total - oldest.samples_total);
  if (seconds > 0 && samples > 0) speed.samples_per_s = samples / seconds;
  return speed;
}

std::optional<bool> Rounds::identical() const { return applied_ ? std::optional(!differing_) : std::nullopt; }

bool Rounds::holds(Round round, const std::string& record) const {
  const auto found = tracks_.find(round);
  return found != tracks_.end() && found->second.record == record;
}

std::string Rounds::difference() const {
  if (!differed_) return {};
  const auto& [round, known, came] = *differed_;
  return fmt::format("after round {}, peer {} has {} and peer {} has {}", round, peer_name(known.peer),
                     known.digest, peer_name(came.peer), came.digest);
}

}  // namespace tw::monitor
