// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/held_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

HeldHistory::HeldHistory(const std::vector<LogEntry>& entries) : dropped_(entries.size(), false) {
  gather(entries);
  if (const auto tip = find_tip()) hold(*tip);
  mark(entries);
  mark_false_losses(entries);
  sum_up_dropped(entries);
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

void HeldHistory::gather(const std::vector<LogEntry>& entries) {
  for (const LogEntry& entry : entries) {
    const world::Event& event = entry.event;
    const std::string record = record_in(event);
    if (record.empty()) continue;
    const auto* commit = event.as<event::Commit>();
    const auto* restored = event.as<event::Restore>();
    Node& node = note(record, entry, commit ? commit->parent : restored ? restored->parent : "");
    tips_[entry.writer] = record;
    if (restored && !restored->parent.empty()) node.begins = true;
    if (commit == nullptr) continue;
    node.own_samples += static_cast<double>(commit->samples);
    if (node.commit != nullptr) continue;
    node.commit = &event;
    node.samples_total = static_cast<double>(commit->samples_total);
    node.majority_samples = static_cast<double>(commit->majority_samples);
  }
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
    if (at->second.commit != nullptr) commits_.push_back(at->second.commit);
  }
  std::ranges::reverse(commits_);
}

// A round of which no held record is known, because logs are missing, is held.
bool HeldHistory::is_dropped(const std::string& record) const {
  const auto node = nodes_.find(record);
  if (node == nodes_.end() || held_.empty()) return false;
  const auto [from, to] = held_.equal_range(node->second.round);
  if (from == to) return node->second.round > held_.rbegin()->first;
  return std::none_of(from, to, [&](const auto& held) { return held.second == record; });
}

// What a peer tells of a round before its commit is of the history of that commit. After a dropped commit,
// the next round belongs to the same history, decided or not. A launcher, which writes as peer 0, tells of
// the history of the peer that it killed, or of the next commit where that one had not decided any round.
void HeldHistory::mark(const std::vector<LogEntry>& entries) {
  std::map<PeerId, Round> decided, begun;  // of dropped histories; 0: none
  bool drops_next = false;                 // the next commit of any peer is dropped
  for (std::size_t i = entries.size(); i-- > 0;) {
    const world::Event& event = entries[i].event;
    const std::string record = record_in(event);
    Round& round = decided[entries[i].writer];
    if (!record.empty()) dropped_[i] = is_dropped(record);
    if (event.phase() == Phase::commit) drops_next = dropped_[i];
    if (event.phase() == Phase::kill) dropped_[i] = drops_next;
    if (!record.empty()) round = dropped_[i] && event.phase() == Phase::commit ? event.round : 0;
    if (record.empty() && round != 0 && leads_to_commit(event.phase())) dropped_[i] = event.round == round;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const world::Event& event = entries[i].event;
    const PeerId writer = entries[i].writer;
    if (event.phase() == Phase::kill && event.peer)
      if (const auto of = begun.find(*event.peer); of != begun.end()) dropped_[i] = of->second != 0;
    if (event.phase() == Phase::start) begun.erase(writer);
    if (const std::string record = record_in(event); !record.empty())
      begun[writer] = dropped_[i] ? event.round + 1 : 0;
    else if (const auto of = begun.find(writer); of != begun.end() && of->second != 0)
      dropped_[i] = dropped_[i] || (leads_to_commit(event.phase()) && event.round == of->second);
  }
}

void HeldHistory::mark_false_losses(const std::vector<LogEntry>& entries) {
  std::set<std::pair<PeerId, Round>> contributed;
  std::map<PeerId, Round>
      went_on;  // last round that its present process decided, from the entry under way on
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (const auto* commit = entries[i].event.as<event::Commit>(); commit != nullptr && !dropped_[i])
      if (commit->samples > 0) contributed.emplace(entries[i].writer, entries[i].event.round);
  for (std::size_t i = entries.size(); i-- > 0;) {
    const world::Event& event = entries[i].event;
    if (event.phase() == Phase::start) went_on.erase(entries[i].writer);
    if (event.phase() == Phase::commit && !dropped_[i]) went_on.try_emplace(entries[i].writer, event.round);
    if (event.phase() != Phase::lost || !event.peer) continue;
    const auto later = went_on.find(*event.peer);
    const bool goes_on = later != went_on.end() && later->second > event.round;
    if (goes_on && contributed.contains({*event.peer, event.round})) dropped_[i] = true;
  }
}

// Samples of the record; where the record before is in no log, as many as its contributors report.
double HeldHistory::samples_of(const Node& node) const {
  auto before = nodes_.find(node.parent);
  while (before != nodes_.end() && before->second.begins) before = nodes_.find(before->second.parent);
  if (before == nodes_.end() || before->second.commit == nullptr) return node.own_samples;
  return std::max(0.0, node.samples_total - before->second.samples_total);
}

void HeldHistory::sum_up_dropped(const std::vector<LogEntry>& entries) {
  std::map<std::string, std::size_t> places;  // by record, in dropped_rounds_
  std::map<PeerId, Instant> since;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LogEntry& entry = entries[i];
    const world::Event& event = entry.event;
    if (event.phase() == Phase::accumulate) since[entry.writer] = event.at;
    const auto* commit = event.as<event::Commit>();
    if (commit == nullptr || !dropped_[i]) continue;
    const Node& node = nodes_.at(commit->digest);
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
  }
}

}  // namespace tw::monitor
