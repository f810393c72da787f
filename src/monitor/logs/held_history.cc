// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/held_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/peer_name.h"

namespace tw::monitor {
namespace {

using world::Phase;

/// The record that a peer stands at from this event on; empty: the event tells none.
std::string record_in(const world::Event& event) {
  if (const auto* commit = event.as<event::Commit>()) return commit->parent.empty() ? "" : commit->digest;
  if (const auto* restored = event.as<event::Restore>()) return restored->record;
  if (const auto* applied = event.as<event::Apply>()) return applied->record;
  return {};
}

/// What a peer tells of a round before its commit.
bool leads_to_commit(Phase phase) {
  return is_stage(phase) || phase == Phase::lead || phase == Phase::lost || phase == Phase::reissue ||
         phase == Phase::join;
}

/// The phases that record_in looks at.
constexpr Phases kTellRecords = phases({Phase::commit, Phase::restore, Phase::apply});

/// Entries are known by their numbers: a pass with more or fewer than the first one would mistake them.
Status check_count(std::size_t entries, std::size_t before) {
  if (entries == before) return Unit{};
  return Error{fmt::format("the logs changed while they were read: {} entries, {} before; try again", entries,
                           before)};
}

}  // namespace

std::string to_string(const DroppedRounds& dropped) {
  std::string peers;
  for (const PeerId peer : dropped.peers) peers += (peers.empty() ? "" : ", ") + peer_name(peer);
  const std::string rounds = dropped.first == dropped.last
                                 ? fmt::format("round {} was", dropped.first)
                                 : fmt::format("rounds {} to {} were", dropped.first, dropped.last);
  return fmt::format("{} dropped ({} samples of peer{} {})", rounds, dropped.samples,
                     dropped.peers.size() == 1 ? "" : "s", peers);
}

Result<HeldHistory> HeldHistory::of(const LogSource& logs) {
  HeldHistory history;
  TW_TRY(history.gather(logs));
  if (const auto tip = history.find_tip()) history.hold(*tip);
  const bool is_forked = history.drops_any();
  if (!is_forked && history.losses_ == 0) return history;
  history.dropped_.resize(history.entries_);
  TW_TRY(const auto marks, history.marks_in(logs));
  history.mark(marks);
  history.mark_false_losses(marks);
  if (is_forked) TW_TRY(history.sum_up_dropped(logs));
  return history;
}

HeldHistory::Node& HeldHistory::note(const std::string& record, const LogEntry& entry,
                                     const std::string& parent) {
  const auto [found, is_new] = nodes_.try_emplace(record);
  Node& node = found->second;
  if (is_new) node.first = entry.event.at;
  node.round = entry.event.round;
  node.last = entry.event.at;
  if (!parent.empty()) node.parent = parent;
  return node;
}

Status HeldHistory::gather(const LogSource& logs) {
  return logs.each(kTellRecords, [&](const LogEntry& entry, std::size_t) {
    ++entries_;
    const world::Event& event = entry.event;
    if (event.phase() == Phase::lost) ++losses_;
    const std::string record = record_in(event);
    if (record.empty()) return;
    const auto* commit = event.as<event::Commit>();
    const auto* restored = event.as<event::Restore>();
    Node& node = note(record, entry, commit ? commit->parent : restored ? restored->parent : "");
    tips_[entry.writer] = record;
    if (restored && !restored->parent.empty()) node.begins = true;
    if (commit == nullptr) return;
    node.own_samples += static_cast<double>(commit->samples);
    if (std::exchange(node.is_committed, true)) return;
    node.samples_total = static_cast<double>(commit->samples_total);
    node.majority_samples = static_cast<double>(commit->majority_samples);
  });
}

HeldHistory::End HeldHistory::end_of(const std::string& record) const {
  const Node& tip = nodes_.at(record);
  End end{record, tip.first, tip.last};
  std::size_t seen = 0;
  for (auto at = nodes_.find(record); at != nodes_.end(); at = nodes_.find(at->second.parent)) {
    end.begun = at->second.first;
    if (at->second.begins || ++seen > nodes_.size()) break;
  }
  return end;
}

bool HeldHistory::follows(const std::string& record, const std::string& earlier) const {
  std::size_t seen = 0;
  for (auto at = nodes_.find(record); at != nodes_.end() && seen <= nodes_.size(); ++seen) {
    if (at->second.parent == earlier) return true;
    at = nodes_.find(at->second.parent);
  }
  return false;
}

// A peer that was late may take an early record after the others have made the last one.
bool HeldHistory::goes_before(const End& one, const End& other) const {
  if (follows(one.record, other.record)) return true;
  if (follows(other.record, one.record)) return false;
  if (one.begun > other.last) return true;
  if (other.begun > one.last) return false;
  const Node& a = nodes_.at(one.record);
  const Node& b = nodes_.at(other.record);
  return std::tie(a.majority_samples, a.samples_total, a.last) >
         std::tie(b.majority_samples, b.samples_total, b.last);
}

std::optional<std::string> HeldHistory::find_tip() const {
  std::optional<End> tip;
  for (const auto& [peer, record] : tips_) {
    const End end = end_of(record);
    if (!tip || goes_before(end, *tip)) tip = end;
  }
  return tip ? std::optional(tip->record) : std::nullopt;
}

void HeldHistory::hold(const std::string& tip) {
  for (auto at = nodes_.find(tip); at != nodes_.end() && held_.size() < nodes_.size();
       at = nodes_.find(at->second.parent)) {
    held_.emplace(at->second.round, at->first);
    if (at->second.is_committed) records_.push_back({at->second.round, at->first});
  }
  std::ranges::reverse(records_);
}

// A round of which no held record is known, because logs are missing, is held.
bool HeldHistory::is_dropped(const std::string& record) const {
  const auto node = nodes_.find(record);
  if (node == nodes_.end() || held_.empty()) return false;
  const auto [from, to] = held_.equal_range(node->second.round);
  if (from == to) return node->second.round > held_.rbegin()->first;
  return std::none_of(from, to, [&](const auto& held) { return held.second == record; });
}

bool HeldHistory::drops_any() const {
  return std::ranges::any_of(nodes_, [&](const auto& node) { return is_dropped(node.first); });
}

/// Where there is one history, only losses may be false, and few entries decide that.
Result<std::vector<HeldHistory::Mark>> HeldHistory::marks_in(const LogSource& logs) const {
  const bool is_forked = drops_any();
  std::vector<Mark> marks;
  std::size_t next = 0;
  const auto take = [&](const LogEntry& entry, std::size_t) {
    const world::Event& event = entry.event;
    const Phase phase = event.phase();
    const auto node = nodes_.find(record_in(event));
    Mark mark{.entry = next++,
              .writer = entry.writer,
              .peer = event.peer,
              .round = event.round,
              .record = node == nodes_.end() ? nullptr : &node->first,
              .phase = phase,
              .contributes = event.as<event::Commit>() && event.as<event::Commit>()->samples > 0};
    const bool is_always = phase == Phase::commit || phase == Phase::start || phase == Phase::lost;
    if (is_always || (is_forked && (mark.record || phase == Phase::kill || leads_to_commit(phase))))
      marks.push_back(std::move(mark));
  };
  TW_TRY(logs.each(kTellRecords, take));
  TW_TRY(check_count(next, entries_));
  return marks;
}

// What a peer tells of a round before its commit is of the history of that commit. After a dropped commit,
// the next round belongs to the same history, decided or not. A launcher, which writes as peer 0, tells of
// the history of the peer that it killed, or of the next commit where that one had not decided any round.
void HeldHistory::mark(const std::vector<Mark>& marks) {
  std::map<PeerId, Round> decided, begun;  // of dropped histories; 0: none
  bool drops_next = false;                 // the next commit of any peer is dropped
  for (std::size_t i = marks.size(); i-- > 0;) {
    const Mark& one = marks[i];
    std::vector<bool>::reference dropped = dropped_[one.entry];
    Round& round = decided[one.writer];
    if (one.record) dropped = is_dropped(*one.record);
    if (one.phase == Phase::commit) drops_next = dropped;
    if (one.phase == Phase::kill) dropped = drops_next;
    if (one.record) round = dropped && one.phase == Phase::commit ? one.round : 0;
    if (!one.record && round != 0 && leads_to_commit(one.phase)) dropped = one.round == round;
  }
  for (const Mark& one : marks) {
    std::vector<bool>::reference dropped = dropped_[one.entry];
    if (one.phase == Phase::kill && one.peer)
      if (const auto of = begun.find(*one.peer); of != begun.end()) dropped = of->second != 0;
    if (one.phase == Phase::start) begun.erase(one.writer);
    if (one.record)
      begun[one.writer] = dropped ? one.round + 1 : 0;
    else if (const auto of = begun.find(one.writer); of != begun.end() && of->second != 0)
      dropped = dropped || (leads_to_commit(one.phase) && one.round == of->second);
  }
  for (const auto& [writer, round] : begun)
    if (round != 0) beside_.insert(writer);
}

bool HeldHistory::drops_next(const LogEntry& entry) const {
  const world::Event& event = entry.event;
  if (event.as<event::Kill>() && event.peer) return is_beside(*event.peer);
  return is_beside(entry.writer) && (!record_in(event).empty() || leads_to_commit(event.phase()));
}

void HeldHistory::mark_false_losses(const std::vector<Mark>& marks) {
  std::set<std::pair<PeerId, Round>> contributed;
  std::map<PeerId, Round>
      went_on;  // last round that its present process decided, from the entry under way on
  for (const Mark& one : marks)
    if (one.contributes && !dropped_[one.entry]) contributed.emplace(one.writer, one.round);
  for (std::size_t i = marks.size(); i-- > 0;) {
    const Mark& one = marks[i];
    if (one.phase == Phase::start) went_on.erase(one.writer);
    if (one.phase == Phase::commit && !dropped_[one.entry]) went_on.try_emplace(one.writer, one.round);
    if (one.phase != Phase::lost || !one.peer) continue;
    const auto later = went_on.find(*one.peer);
    const bool goes_on = later != went_on.end() && later->second > one.round;
    if (goes_on && contributed.contains({*one.peer, one.round})) dropped_[one.entry] = true;
  }
}

// Samples of the record; where the record before is in no log, as many as its contributors report.
double HeldHistory::samples_of(const Node& node) const {
  auto before = nodes_.find(node.parent);
  while (before != nodes_.end() && before->second.begins) before = nodes_.find(before->second.parent);
  if (before == nodes_.end() || !before->second.is_committed) return node.own_samples;
  return std::max(0.0, node.samples_total - before->second.samples_total);
}

Status HeldHistory::sum_up_dropped(const LogSource& logs) {
  std::map<std::string, std::size_t> places;  // by record, in dropped_rounds_
  std::map<PeerId, Instant> since;
  std::size_t next = 0;
  const auto take = [&](const LogEntry& entry, std::size_t) {
    const bool is_dropped = drops(next++);
    const world::Event& event = entry.event;
    if (event.phase() == Phase::accumulate) since[entry.writer] = event.at;
    const auto* commit = event.as<event::Commit>();
    if (commit == nullptr || !is_dropped) return;
    const auto known = nodes_.find(commit->digest);
    if (known == nodes_.end()) return;  // check_count, or a commit that names no record
    const Node& node = known->second;
    auto place = places.find(commit->digest);
    if (place == places.end()) {
      const auto before = places.find(node.parent);
      if (before == places.end()) {
        DroppedRounds begun;
        begun.first = event.round;
        begun.begun = since.contains(entry.writer) ? since[entry.writer] : event.at;
        begun.begun_unix_nanos = entry.unix_nanos - (event.at - begun.begun).count();
        dropped_rounds_.push_back(std::move(begun));
      }
      const std::size_t at = before == places.end() ? dropped_rounds_.size() - 1 : before->second;
      place = places.emplace(commit->digest, at).first;
      DroppedRounds& dropped = dropped_rounds_[at];
      ++dropped.rounds;
      dropped.samples += static_cast<std::uint64_t>(samples_of(node));
      dropped.last = std::max(dropped.last, event.round);
    }
    DroppedRounds& dropped = dropped_rounds_[place->second];
    if (std::ranges::find(dropped.peers, entry.writer) == dropped.peers.end())
      dropped.peers.push_back(entry.writer);
    dropped.ended = event.at;
    dropped.ended_unix_nanos = entry.unix_nanos;
    if (since.contains(entry.writer)) dropped.spent[entry.writer] += event.at - since[entry.writer];
  };
  TW_TRY(logs.each(phases({Phase::commit}), take));
  return check_count(next, entries_);
}

}  // namespace tw::monitor
