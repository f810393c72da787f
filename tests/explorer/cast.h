// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "explorer/explorer.h"
#include "swarm/ballots/acceptor.h"
#include "swarm/ballots/history.h"
#include "swarm/ballots/proposer.h"

/// What one process can do: the real objects, each distinct state of which is kept once and has a number.
namespace tw::explorer {

#ifdef TW_EXPLORER_PEERS
inline constexpr std::size_t kPeers = TW_EXPLORER_PEERS;
#else
inline constexpr std::size_t kPeers = 3;
#endif
/// Process p is peer p % kPeers; from kPeers on it was started again.
inline constexpr std::size_t kProcesses = 2 * kPeers;

using LocalId = std::uint32_t;  ///< 0: there is no such process, or it has crashed
using NoteId = std::uint16_t;
using LabelId = std::uint32_t;

/// Message that was sent, and what laws ask about it.
struct Note {
  std::size_t from = 0;
  wire::Message message;
  Round round = 0;
  Ballot ballot = 0;
  std::uint32_t version = 0;
  Digest content;          ///< of a plan, its draft; of a vote, the mean; of a commit, the record
  Digest parent;           ///< of the record that it follows
  std::size_t keeper = 0;  ///< of the seats in an Entrust
};

/// One process.
struct Local {
  std::size_t process = 0;
  swarm::History history;
  swarm::Acceptor acceptor;
  std::optional<swarm::Proposer> proposer;
  bool gave_seat = false;  ///< it left: it neither promises nor votes in this round
};

/// What a process does in one event.
struct Step {
  LocalId to = 0;
  std::vector<NoteId> sent{};
  LabelId label = 0;
  std::optional<Digest> adopted{};  ///< digest of the record that is the head from now on
  bool other_mean = false;          ///< it was applied with a mean that is not its own
};

wire::Member process_member(std::size_t process);

class Cast {
 public:
  explicit Cast(const Bounds& bounds) : bounds_(bounds), locals_(1), notes_(1) {}

  /// A member of the first record, at its beginning.
  Step first(std::size_t process);
  /// A new process with the state of this one.
  Step started(std::size_t process, LocalId donor);

  /// A plan that is taken is voted for at once: to vote later is to get it later, unless a promise comes
  /// between (late_vote).
  const Step& deliver(LocalId local, NoteId note);
  /// It takes the plan, promises the later ballot, and then has the mean of the plan.
  const Step& late_vote(LocalId local, NoteId plan, NoteId prepare);
  const Step& resync(LocalId local);
  /// It leaves, and gives its seat to this process.
  const Step& hand_over(LocalId local, std::size_t keeper);
  /// It lies: it sends the plan as one of the next ballot. Nothing comes of it where that ballot is its own.
  Step forge(LocalId local, NoteId plan);
  /// `started`: processes that ever lived; any of them may be taken to be here.
  const std::vector<Step>& bid(LocalId local, unsigned started);
  /// `promises`: all to this process.
  const std::vector<Step>& begin(LocalId local, unsigned started, const std::vector<NoteId>& promises);
  bool may_revise(LocalId local) const;
  /// `votes`: all to this process. They arrive before it revises its plan.
  const std::vector<Step>& revise(LocalId local, unsigned started, const std::vector<NoteId>& votes);
  /// `votes`: all to this process.
  const std::vector<Step>& decide(LocalId local, const std::vector<NoteId>& votes);

  const Local& local(LocalId id) const { return locals_[id]; }

  const Note& note(NoteId id) const { return notes_[id]; }

  LabelId label_of(std::size_t process, const std::string& what);

  const std::string& label(LabelId id) const { return labels_[id]; }

  /// Whether the plan comes from a process that does not own its ballot.
  bool is_forged(const Note& plan) const;

  const wire::Record& record(const Digest& digest) const { return records_.at(digest); }

 private:
  using Here = std::vector<std::size_t>;  // processes, at most one of each peer

  LocalId intern(Local local);
  NoteId intern(std::size_t from, wire::Message message, std::size_t keeper = 0);
  LabelId intern(const std::string& label);
  Step done(Local local, const std::string& label, std::vector<NoteId> sent = {});
  Step receive(const Local& local, const Note& note);
  Step take_seats(const Local& local, const Note& note);
  std::vector<NoteId> bid_early(Local& local);
  void hear(Local& local, const std::vector<NoteId>& votes) const;
  Step propose(Local local, wire::Plan plan, const std::string& how);
  Here newest(unsigned started) const;
  std::vector<Here> choices_of_here(const Local& leader, unsigned started) const;
  wire::Plan fresh_plan(const Local& leader, const Here& here, std::uint64_t contributions) const;
  bool may_lead(const Local& local) const;
  void remember(const wire::Record& record);

  Bounds bounds_;
  std::deque<Local> locals_;  // references stay good
  std::map<std::string, LocalId> local_ids_;
  std::deque<Note> notes_;
  std::map<std::string, NoteId> note_ids_;
  std::vector<std::string> labels_;
  std::map<std::string, LabelId> label_ids_;
  std::map<Digest, wire::Record> records_;
  std::unordered_map<std::uint64_t, Step> delivered_;
  std::map<std::tuple<LocalId, NoteId, NoteId>, Step> late_votes_;
  std::unordered_map<LocalId, Step> resynced_;
  std::map<std::pair<LocalId, std::size_t>, Step> handed_over_;
  std::map<std::pair<LocalId, unsigned>, std::vector<Step>> bids_;
  std::map<std::pair<LocalId, std::vector<NoteId>>, std::vector<Step>> revised_;
  std::map<std::pair<LocalId, std::vector<NoteId>>, std::vector<Step>> begun_;
  std::map<std::pair<LocalId, std::vector<NoteId>>, std::vector<Step>> decided_;
};

}  // namespace tw::explorer
