// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/durability_checkers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "sim/virtual/events.h"
#include "sync/checkpoint.h"
#include "wire/frame.h"

namespace tw::sim {
namespace {

using world::Phase;
using namespace std::chrono_literals;

/// After other faults: until everybody has noticed. The round they struck may go on for longer.
constexpr Duration kAftermath = 15s;

/// With overlap, a state that has moved on says which parameters it had after its record (LateMean).
std::optional<Digest> parameters_before(std::span<const std::byte> bytes, const Rules& rules) {
  if (!rules.overlaps()) return std::nullopt;
  Digest before;
  const std::size_t mean = encoded_bytes(codec_of_mean(rules.codec), rules.fragments.largest());
  const std::size_t words = (std::max(mean, 2 * sizeof(before)) + sizeof(float) - 1) / sizeof(float);
  const auto late = bytes.last((1 + words) * sizeof(float));
  float stage = 0;
  std::memcpy(&stage, late.data(), sizeof(stage));
  std::memcpy(static_cast<void*>(&before), late.data() + sizeof(stage), sizeof(before));
  return stage == 2 ? std::optional(before) : std::nullopt;
}

/// Digest of the parameters in an image after its record, from its bytes; nothing when it holds fewer.
std::optional<Digest> parameters_in(const sync::StateImage& image, const Rules& rules) {
  const std::uint64_t length = rules.fragments.length();
  std::vector<std::byte> bytes;
  for (const Blob& chunk : image.chunks) {
    bytes.insert(bytes.end(), chunk.bytes().begin(), chunk.bytes().end());
  }
  std::vector<float> parameters(length);
  if (bytes.size() < length * sizeof(float)) return std::nullopt;
  std::memcpy(parameters.data(), bytes.data(), length * sizeof(float));
  if (const std::optional<Digest> before = parameters_before(bytes, rules)) return before;
  return digest_of_parameters(parameters);
}

/// The order of histories. The product has its own (wire/rank.h), which is judged by this one.
bool is_ahead(const wire::Rank& one, const wire::Rank& other) {
  if (one.record == Digest{} || other.record == Digest{}) return one.record != Digest{};
  if (one.had_company != other.had_company) return one.had_company;
  if (one.majority_samples != other.majority_samples) return one.majority_samples > other.majority_samples;
  if (one.samples != other.samples) return one.samples > other.samples;
  if (one.restarts != other.restarts) return one.restarts > other.restarts;
  return one.record < other.record;
}

}  // namespace

void CheckpointsLast::on_applied(const Sighting& s) {
  states_[s.digest].insert(s.parameters);
  ranks_[to_string(s.digest)] = rank_of(s.record);
  if (s.restored && resumes_.erase(s.peer) > 0) judge_resumed(s);
}

/// The record of a new beginning is that of the checkpoint in all but its members and mark; its parent is
/// that of the checkpoint.
void CheckpointsLast::judge_resumed(const Sighting& s) {
  const auto best = best_.find(s.peer);
  const auto taken = ranks_.find(to_string(s.record.parent));
  if (taken != ranks_.end()) judge_resumed_by_all(s, taken->second);
  if (best == best_.end() || damaged_.contains(s.peer) || best->second.record == s.record.parent) return;
  if (taken != ranks_.end() && is_ahead(taken->second, best->second)) return;  // a copy
  violated(
      fmt::format("peer {} resumes from {} of round {}, though its disk holds {} of round {}, which goes "
                  "before",
                  s.peer.value, to_string(s.record.parent), s.record.round, to_string(best->second.record),
                  best->second.round));
}

void CheckpointsLast::judge_resumed_by_all(const Sighting& s, const wire::Rank& taken) {
  if (!lost_together_.contains(s.peer)) return;
  std::set<Digest> origins;
  for (const PeerId peer : lost_together_)
    origins.insert(disks_[peer].origins.begin(), disks_[peer].origins.end());
  for (const PeerId peer : std::exchange(lost_together_, {})) {
    if (damaged_.contains(peer)) continue;
    for (const auto& [record, rank] : disks_[peer].sound) {
      if (!is_ahead(rank, taken) || origins.contains(record)) continue;
      violated(
          fmt::format("after the loss of all, peer {} resumes from round {}, though the disk of peer {} "
                      "holds round {}, which goes before",
                      s.peer.value, taken.round, peer.value, rank.round));
    }
  }
}

void CheckpointsLast::on_event(PeerId peer, const world::Event& event) {
  judge();
  using event::Cause;
  const auto* saved = event.as<event::Checkpoint>();
  const auto* copied = event.as<event::Copy>();
  const auto* restored = event.as<event::Restore>();
  if (saved && saved->cause == Cause::none) durable_[peer] = ranks_[saved->digest];
  if (copied && copied->cause == Cause::none) copied_ = ranks_[copied->digest];
  if (restored && restored->cause == Cause::checkpoint) resumes_.insert(peer);
}

void CheckpointsLast::on_strike(const Strike& strike) {
  if (!row_of(strike.kind).ends_process()) window_.on_strike(strike);
  lost_together_.clear();
  if (strike.kind == FaultKind::loss_of_all && window_.quiet_from() <= strike.at)
    lost_together_.insert(strike.victims.begin(), strike.victims.end());
  if (row_of(strike.kind).loses_files()) damaged_.insert(strike.victims.begin(), strike.victims.end());
}

CheckpointsLast::Finding CheckpointsLast::newest_in(world::Files& files, const std::string& folder,
                                                    const std::string& where) {
  sync::CheckpointStore store(files, {folder, rules_.checkpoint_keep, "checker"});
  const auto newest = store.load_newest(rules_.run);
  if (!newest) return {.error = newest.error().message};
  if (!newest.value()) return {.error = "there is none"};
  const sync::StateImage& image = newest.value()->image;
  const auto states = states_.find(digest_of(image.record));
  const auto found = parameters_in(image, rules_);
  const bool is_held =
      states != states_.end() && found && (rules_.digest_every > 1 || states->second.contains(*found));
  if (!is_held) {
    violated(fmt::format("the checkpoint of round {} {} holds a state that nobody had", image.record.round,
                         where));
  }
  return {.loaded = rank_of(image.record), .origin = newest.value()->origin};
}

/// The newest checkpoint of the run on a disk, found without the store. One that was resumed from may be what
/// members still had, and so ahead of what was made from it; yet that is newer.
void CheckpointsLast::find_best(PeerId peer, world::Files& files) {
  best_.erase(peer);
  Disk& disk = disks_[peer] = {};
  const auto names = files.list(rules_.checkpoint_folder);
  if (!names) return;
  for (const std::string& name : names.value()) {
    const auto loaded = sync::read_checkpoint(files, rules_.checkpoint_folder + "/" + name);
    if (!loaded || loaded.value().image.record.run != rules_.run) continue;
    const wire::Record& record = loaded.value().image.record;
    disk.sound[digest_of(record)] = rank_of(record);
    disk.origins.insert(loaded.value().origin);
  }
  for (const auto& [record, rank] : disk.sound) {
    if (!disk.origins.contains(record) && is_ahead(rank, best_[peer])) best_[peer] = rank;
  }
}

bool CheckpointsLast::is_lost(const wire::Rank& durable, const Finding& found) {
  return is_ahead(durable, found.loaded) && found.origin != durable.record;
}

void CheckpointsLast::on_disk(PeerId peer, world::Files& files) {
  if (rules_.checkpoint_folder.empty()) return;
  Finding finding =
      newest_in(files, rules_.checkpoint_folder, fmt::format("on the disk of peer {}", peer.value));
  finding.peer = peer;
  finding.durable = durable_[peer];
  findings_.push_back(std::move(finding));
  find_best(peer, files);
}

void CheckpointsLast::on_store(world::Files& store) {
  if (rules_.checkpoint_copies.empty()) return;
  const Finding found = newest_in(store, rules_.checkpoint_copies, "in the store");
  if (!is_lost(copied_, found)) return;
  violated(fmt::format(
      "the checkpoint of round {} was copied to the store, but {}", copied_.round,
      found.error.empty() ? fmt::format("that of round {} loads", found.loaded.round) : found.error));
}

void CheckpointsLast::on_look(const Survivor&) { judge(); }

void CheckpointsLast::on_end(std::span<const Survivor>) { judge(); }

void CheckpointsLast::judge() {
  for (const Finding& finding : findings_) {
    if (!is_lost(finding.durable, finding) || damaged_.contains(finding.peer)) continue;
    violated(fmt::format(
        "the checkpoint of round {} was durable on the disk of peer {}, but {}", finding.durable.round,
        finding.peer.value,
        finding.error.empty() ? fmt::format("that of round {} loads", finding.loaded.round) : finding.error));
  }
  findings_.clear();
}

bool CheapPreemption::disturbed(Instant at) const {
  const Instant quiet = window_.quiet_from();
  return quiet == kNever || (quiet != Instant{} && at < quiet + kAftermath);
}

void CheapPreemption::mark_struck_round() {
  const wire::Record* newest = ledger_.newest();
  const Instant quiet = window_.quiet_from();
  if (quiet != Instant{} && now_ <= quiet) struck_round_ = newest == nullptr ? 1 : newest->round + 1;
}

void CheapPreemption::on_strike(const Strike& strike) {
  now_ = strike.at;
  for (Notice& notice : notices_) {
    notice.disturbed = notice.disturbed || strike.kind != FaultKind::join;
  }
  const Duration lasts = row_of(strike.kind).notice;
  if (lasts > Duration{}) {
    for (const PeerId peer : strike.victims) {
      const bool too_slow = 2 * rules_.round_time > lasts && rules_.handover_time > lasts;
      notices_.push_back({peer, strike.at + lasts, too_slow || disturbed(strike.at) || gone_.contains(peer)});
    }
  } else if (row_of(strike.kind).ends_process() || strike.kind == FaultKind::leave) {
    gone_.insert(strike.victims.begin(), strike.victims.end());
  } else if (strike.kind != FaultKind::join) {
    window_.on_strike(strike);
    mark_struck_round();
  }
}

void CheapPreemption::on_calm(Instant at) {
  if (window_.quiet_from() != Instant{}) window_.on_calm(at);
}

void CheapPreemption::on_look(const Survivor& survivor) {
  now_ = survivor.now;
  mark_struck_round();
  const bool over = survivor.view.finished || !survivor.view.failure.empty();
  if (over) gone_.insert(survivor.peer);
  std::erase_if(notices_, [&](const Notice& notice) {
    if (survivor.now < notice.ends && !(over && notice.peer == survivor.peer)) return false;
    if (!notice.disturbed && !gone_.contains(notice.peer)) {
      violated(fmt::format("peer {} had notice and has not gone when it ended", notice.peer.value));
    }
    return true;
  });
}

// With overlap a peer that misses a decision has leases of the next round.
void CheapPreemption::note_missed(PeerId writer, const world::Event& event) {
  if (rules_.overlaps() && event.as<event::Restore>()) missed_.insert({writer, event.round});
}

void CheapPreemption::on_event(PeerId writer, const world::Event& event) {
  // Left out because of what it sent: nothing is taken from it, and that is right.
  const auto* lost = event.as<event::Lost>();
  if (lost && lost->cause == event::Cause::verdict && event.peer) gone_.insert(*event.peer);
  note_missed(writer, event);
  if (!event.as<event::Reissue>() || !event.peer) return;
  const PeerId payer = *event.peer;
  const bool noticed = std::any_of(notices_.begin(), notices_.end(), [&](const Notice& notice) {
    return notice.peer == payer && !notice.disturbed;
  });
  const std::string what = fmt::format("round {}: microbatches {} of peer {} are given out again",
                                       event.round, event.why, payer.value);
  if (noticed) violated(what + ", though it had notice");
  // A leader that was struck itself knows nothing of the others.
  if (disturbed(now_) || event.round <= struck_round_ || gone_.contains(writer)) return;
  if (missed_.contains({payer, event.round - 1})) return;
  if (!noticed && !gone_.contains(payer)) violated(what + ", though nothing struck it");
  const wire::Record* newest = ledger_.newest();
  if (newest != nullptr && event.round <= newest->round) violated(what + ", though the round is decided");
}

namespace {

/// The digest of what a peer decided or took.
std::optional<std::string> decided(const world::Event& event) {
  if (const auto* commit = event.as<event::Commit>()) return commit->digest;
  if (const auto* applied = event.as<event::Apply>()) return applied->digest;
  if (const auto* restored = event.as<event::Restore>()) return restored->digest;
  return std::nullopt;
}

}  // namespace

void LogReplays::on_event(PeerId peer, const world::Event& event) {
  Log& log = logs_[peer];
  if (event.as<event::Start>()) log = {};
  // The record that lets a leaver go is its last word: it applies no more.
  if (event.as<event::Leave>() && event.peer == peer) log.head = event.round;
  if (event.as<event::Accumulate>()) log.catching_up = false;
  const auto* restored = event.as<event::Restore>();
  if (restored && restored->digest.empty()) {
    log.catching_up = true;
    return;
  }
  const std::optional<std::string> digest = decided(event);
  if (!digest) return;
  log.unseen.push_back({event.phase(), event.round, *digest});
  // The updates of a busy program come after the commits of later rounds.
  log.head = event.as<event::Apply>() ? std::max(log.head, event.round) : event.round;
}

void LogReplays::on_commit(const Sighting& s) {
  if (s.record.round > 0) match(s.peer, {Phase::commit, s.record.round, to_string(s.digest)});
}

void LogReplays::on_applied(const Sighting& s) {
  if (s.record.round == 0 && !s.restored) return;
  match(s.peer, {s.restored ? Phase::restore : Phase::apply, s.record.round, to_string(s.parameters)});
}

void LogReplays::match(PeerId peer, const Bandwidth& seen) {
  const auto line = [](const Bandwidth& l) {
    return fmt::format("{} of round {}, {}", name_of(l.phase), l.round, l.digest);
  };
  std::deque<Bandwidth>& unseen = logs_[peer].unseen;
  if (unseen.empty() || unseen.front() != seen) {
    violated(fmt::format("the log of peer {} says: {}; it was: {}", peer.value,
                         unseen.empty() ? "nothing" : line(unseen.front()), line(seen)));
  }
  if (!unseen.empty()) unseen.pop_front();
}

void LogReplays::on_end(std::span<const Survivor> survivors) {
  for (const auto& [peer, log] : logs_) {
    if (log.unseen.empty()) continue;
    violated(fmt::format("the log of peer {} says that it did {} of round {}, which it did not", peer.value,
                         name_of(log.unseen.front().phase), log.unseen.front().round));
  }
  for (const Survivor& survivor : survivors) {
    const auto& [unseen, head, catching_up] = logs_[survivor.peer];
    const Round shown = survivor.view.round;
    if (!survivor.view.finished || head == shown || catching_up) continue;
    violated(fmt::format("peer {} ended at round {}, its log at round {}", survivor.peer.value, shown, head));
  }
}

void BoundedMemory::on_look(const Survivor& survivor) {
  const std::size_t updates = survivor.view.waiting_updates;
  if (updates > train::SessionView::kMostWaitingUpdates && told_.insert(survivor.peer).second)
    violated(fmt::format("peer {} keeps {} means that wait to be applied", survivor.peer.value, updates));
  if (survivor.held_bytes_limit == 0 || survivor.held_bytes <= survivor.held_bytes_limit) return;
  if (!told_.insert(survivor.peer).second) return;
  violated(fmt::format("peer {} holds {} bytes for others, its bound is {}", survivor.peer.value,
                       survivor.held_bytes, survivor.held_bytes_limit));
}

}  // namespace tw::sim
