// SPDX-License-Identifier: Apache-2.0
#include "explorer/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "explorer/cast.h"
#include "swarm/ballots/quorum.h"

namespace tw::explorer {
namespace {

struct State {
  std::array<LocalId, kProcesses> locals{};
  std::uint8_t started = 0;  // bits: processes that ever lived
  std::int8_t crashes = 0;
  std::int8_t restarts = 0;
  std::int8_t resyncs = 0;
  std::int8_t revisions = 0;
  std::int8_t hand_overs = 0;
  std::int8_t forgeries = 0;
  std::vector<NoteId> decided{};  // by round from 1: its commit; 0: none
  std::vector<NoteId> notes{};    // sent and still of use, in order
};

/// 64 bits: of 10^7 states two share one with a chance of 3 in a million.
std::uint64_t key_of(const State& state) {
  std::vector<std::uint32_t> words(state.locals.begin(), state.locals.end());
  words.push_back(state.started);
  for (const std::int8_t count :
       {state.crashes, state.restarts, state.resyncs, state.revisions, state.hand_overs, state.forgeries})
    words.push_back(static_cast<std::uint32_t>(count));
  words.insert(words.end(), state.decided.begin(), state.decided.end());
  words.insert(words.end(), state.notes.begin(), state.notes.end());
  return digest_of(std::as_bytes(std::span(words))).low;
}

/// Breadth first, so that what is found is found on a shortest way.
class Exploration {
 public:
  explicit Exploration(const Bounds& bounds) : bounds_(bounds), cast_(bounds) {}

  Findings run() {
    State first;
    for (std::size_t process = 0; process < kPeers; ++process) {
      const Step step = cast_.first(process);
      first.locals[process] = step.to;
      for (const NoteId note : step.sent) add(first, note);
      first.started |= static_cast<std::uint8_t>(1U << process);
    }
    first.decided.assign(bounds_.rounds + 1, 0);
    reach(std::move(first), 0, 0);
    while (!next_.empty() && findings_.broken.empty() && parents_.size() < bounds_.states) {
      const std::vector<State> level = std::exchange(next_, {});
      const std::size_t begin = parents_.size() - level.size();
      ++findings_.depth;
      for (std::size_t i = 0; i < level.size() && findings_.broken.empty(); ++i) {
        now_ = static_cast<std::uint32_t>(begin + i);
        expand(level[i]);
      }
    }
    findings_.states = parents_.size();
    findings_.complete = next_.empty() && findings_.broken.empty();
    findings_.decisions = decisions_.size();
    return findings_;
  }

 private:
  using Labelled = std::pair<std::uint32_t, LabelId>;  // state before, event

  void expand(const State& state) {
    if (decide_first(state)) return;
    for (std::size_t process = 0; process < kProcesses && findings_.broken.empty(); ++process) {
      if (state.locals[process] == 0) continue;
      listen(state, process);
      lead(state, process);
      fail(state, process);
    }
    for (std::size_t peer = 0; peer < kPeers; ++peer) restart(state, peer);
  }

  /// A decision that no revision can forestall may as well come first: it binds nobody before it arrives.
  bool decide_first(const State& state) {
    for (std::size_t process = 0; process < kProcesses; ++process) {
      const LocalId local = state.locals[process];
      if (local == 0 || !cast_.local(local).proposer) continue;
      const bool revisable = state.revisions < bounds_.revisions && cast_.may_revise(local);
      if (revisable || cast_.local(local).proposer->stage() != swarm::Proposer::Stage::proposed) continue;
      const std::vector<Step>& steps = cast_.decide(local, told<wire::Vote>(state, local));
      for (const Step& step : steps) take(state, process, step);
      if (!steps.empty()) return true;
    }
    return false;
  }

  void listen(const State& state, std::size_t process) {
    const LocalId local = state.locals[process];
    for (const NoteId note : state.notes) {
      const wire::Message& message = cast_.note(note).message;
      if (std::holds_alternative<wire::Promise>(message) || std::holds_alternative<wire::Vote>(message))
        continue;
      take(state, process, cast_.deliver(local, note));
      if (!std::holds_alternative<wire::Plan>(message)) continue;
      for (const NoteId other : state.notes) {
        if (std::holds_alternative<wire::Prepare>(cast_.note(other).message))
          take(state, process, cast_.late_vote(local, note, other));
      }
    }
  }

  void lead(const State& state, std::size_t process) {
    const LocalId local = state.locals[process];
    if (cast_.local(local).history.head()->round >= bounds_.rounds) return;
    for (const Step& step : cast_.bid(local, state.started)) take(state, process, step);
    const auto& proposer = cast_.local(local).proposer;
    if (!proposer) return;
    if (proposer->stage() == swarm::Proposer::Stage::preparing) {
      const std::vector<NoteId> promises = told<wire::Promise>(state, local);
      for (const Step& step : cast_.begin(local, state.started, promises)) take(state, process, step);
    }
    if (proposer->stage() != swarm::Proposer::Stage::proposed) return;
    for (const Step& step : cast_.decide(local, told<wire::Vote>(state, local))) take(state, process, step);
    if (state.revisions >= bounds_.revisions) return;
    State revised = state;
    ++revised.revisions;
    for (const Step& step : cast_.revise(local, state.started, told<wire::Vote>(state, local)))
      take(revised, process, step);
  }

  void fail(const State& state, std::size_t process) {
    const LocalId local = state.locals[process];
    if (state.resyncs < bounds_.resyncs) {
      State resynced = state;
      ++resynced.resyncs;
      take(resynced, process, cast_.resync(local));
    }
    leave(state, process);
    forge(state, process);
    if (state.crashes >= bounds_.restarts) return;
    State crashed = state;
    ++crashed.crashes;
    crashed.locals[process] = 0;
    drop_what_is_over(crashed);
    reach(std::move(crashed), now_, cast_.label_of(process, "crashes"));
  }

  void leave(const State& state, std::size_t process) {
    if (state.hand_overs >= bounds_.hand_overs) return;
    State handed = state;
    ++handed.hand_overs;
    for (std::size_t keeper = 0; keeper < kProcesses; ++keeper) {
      if (state.locals[keeper] != 0) take(handed, process, cast_.hand_over(state.locals[process], keeper));
    }
  }

  void forge(const State& state, std::size_t process) {
    if (state.forgeries >= bounds_.forgeries) return;
    State forged = state;
    ++forged.forgeries;
    for (const NoteId note : state.notes) {
      if (std::holds_alternative<wire::Plan>(cast_.note(note).message))
        take(forged, process, cast_.forge(state.locals[process], note));
    }
  }

  /// Under the id of a process that crashed, with the state of one that lives.
  void restart(const State& state, std::size_t peer) {
    const std::size_t process = peer + kPeers;
    const bool may = state.locals[peer] == 0 && (state.started >> process & 1U) == 0;
    if (!may || state.restarts >= bounds_.restarts) return;
    for (const LocalId donor : state.locals) {
      if (donor == 0) continue;
      State next = state;
      ++next.restarts;
      const Step step = cast_.started(process, donor);
      next.locals[process] = step.to;
      next.started |= static_cast<std::uint8_t>(1U << process);
      for (const NoteId note : step.sent) add(next, note);
      reach(std::move(next), now_, step.label);
    }
  }

  /// What was sent to this leader in its round.
  template <class T>
  std::vector<NoteId> told(const State& state, LocalId local) const {
    const Local& leader = cast_.local(local);
    const wire::Member self = process_member(leader.process);
    std::vector<NoteId> all;
    for (const NoteId id : state.notes) {
      const Note& note = cast_.note(id);
      if (!std::holds_alternative<T>(note.message) || !leader.history.is_next(note.round)) continue;
      if (std::is_same_v<T, wire::Promise> && note.ballot != leader.proposer->ballot()) continue;
      if (swarm::ballot_owner(leader.history.head()->members, note.ballot).is(self)) all.push_back(id);
    }
    return all;
  }

  void take(const State& state, std::size_t process, const Step& step) {
    ++findings_.steps;
    const auto is_known = [&](NoteId note) { return std::ranges::binary_search(state.notes, note); };
    if (step.to == state.locals[process] && std::ranges::all_of(step.sent, is_known)) return;
    State next = state;
    next.locals[process] = step.to;
    for (const NoteId note : step.sent) add(next, note);
    for (const NoteId note : step.sent) judge(next, note);
    if (step.adopted) judge_adoption(next, step);
    drop_what_is_over(next);
    reach(std::move(next), now_, step.label);
  }

  static void add(State& state, NoteId note) {
    const auto place = std::ranges::lower_bound(state.notes, note);
    if (place == state.notes.end() || *place != note) state.notes.insert(place, note);
  }

  // ---- laws

  void judge(State& state, NoteId id) {
    const Note& note = cast_.note(id);
    if (std::holds_alternative<wire::Commit>(note.message)) {
      decisions_.insert(id);
      NoteId& decided = state.decided.at(note.round);
      if (decided != 0 && cast_.note(decided).content != note.content)
        broken_ = fmt::format("round {} has two decisions", note.round);
      decided = id;
    }
    if (std::holds_alternative<wire::Vote>(note.message)) judge_vote(state, note);
    if (std::holds_alternative<wire::Plan>(note.message) || std::holds_alternative<wire::Vote>(note.message))
      judge_majority(state, note.round);
  }

  bool is_plan(const Note& note, Round round) const {
    return std::holds_alternative<wire::Plan>(note.message) && note.round == round && !cast_.is_forged(note);
  }

  void judge_vote(const State& state, const Note& vote) {
    const bool has_plan = std::ranges::any_of(state.notes, [&](NoteId id) {
      const Note& plan = cast_.note(id);
      return is_plan(plan, vote.round) && plan.ballot == vote.ballot && plan.version == vote.version;
    });
    if (!has_plan) broken_ = fmt::format("a vote in round {} is for a plan that was forged", vote.round);
  }

  void judge_majority(const State& state, Round round) {
    for (const NoteId id : state.notes) {
      const Note& plan = cast_.note(id);
      if (!is_plan(plan, round)) continue;
      for (const NoteId other : state.notes) {
        const Note& later = cast_.note(other);
        const bool contradicts =
            is_plan(later, round) && later.ballot > plan.ballot && later.content != plan.content;
        if (!contradicts || !is_newest(state, plan) || !has_majority(state, plan)) continue;
        broken_ = fmt::format("a majority voted for plan {}.{} of round {}, and plan {}.{} is another one",
                              plan.ballot, plan.version, round, later.ballot, later.version);
      }
    }
  }

  bool is_newest(const State& state, const Note& plan) const {
    return std::ranges::none_of(state.notes, [&](NoteId id) {
      const Note& other = cast_.note(id);
      return is_plan(other, plan.round) && other.ballot == plan.ballot && other.version > plan.version;
    });
  }

  bool has_majority(const State& state, const Note& plan) const {
    const std::vector<wire::Member>& members = cast_.record(plan.parent).members;
    std::set<PeerId> voters;
    for (const NoteId id : state.notes) {
      const Note& vote = cast_.note(id);
      const bool for_it = std::holds_alternative<wire::Vote>(vote.message) && vote.round == plan.round &&
                          vote.ballot == plan.ballot && vote.version == plan.version;
      const wire::Member voter = process_member(vote.from);
      if (!for_it || !swarm::names(members, voter)) continue;
      voters.insert(voter.peer);
      const std::vector<PeerId>& seats = std::get<wire::Vote>(vote.message).seats;
      voters.insert(seats.begin(), seats.end());
    }
    return swarm::is_quorum(members, voters);
  }

  void judge_adoption(const State& state, const Step& step) {
    const wire::Record& record = cast_.record(*step.adopted);
    const NoteId decided = state.decided.at(record.round);
    const NoteId before = state.decided.at(record.round - 1);
    if (decided == 0 || cast_.note(decided).content != *step.adopted)
      broken_ = fmt::format("a record of round {} is applied that was not decided", record.round);
    else if (before != 0 && cast_.note(before).content != record.parent)
      broken_ = fmt::format("the record of round {} does not follow that of the round before", record.round);
    else if (step.other_mean)
      broken_ = fmt::format("the record of round {} is applied with another mean than its own", record.round);
  }

  // ---- states

  /// Messages of rounds that nobody can be in any more, and promises to a leader that has begun.
  void drop_what_is_over(State& state) const {
    Round first = bounds_.rounds + 1;
    for (const LocalId local : state.locals) {
      if (local != 0) first = std::min(first, cast_.local(local).history.head()->round + 1);
    }
    std::erase_if(state.notes, [&](NoteId id) {
      const Note& note = cast_.note(id);
      return note.round < first ||
             (std::holds_alternative<wire::Promise>(note.message) && !is_awaited(state, note));
    });
  }

  bool is_awaited(const State& state, const Note& promise) const {
    return std::ranges::any_of(state.locals, [&](LocalId id) {
      if (id == 0 || !cast_.local(id).proposer) return false;
      const swarm::Proposer& proposer = *cast_.local(id).proposer;
      return proposer.stage() == swarm::Proposer::Stage::preparing && proposer.ballot() == promise.ballot &&
             cast_.local(id).history.is_next(promise.round);
    });
  }

  void reach(State state, std::uint32_t before, LabelId label) {
    if (!findings_.broken.empty()) return;
    if (!seen_.insert(key_of(state)).second) return;
    parents_.emplace_back(before, label);
    if (!broken_.empty()) {
      findings_.broken = broken_;
      tell_story(static_cast<std::uint32_t>(parents_.size() - 1));
    }
    next_.push_back(std::move(state));
  }

  void tell_story(std::uint32_t state) {
    for (; state != 0; state = parents_[state].first)
      findings_.story.push_back(cast_.label(parents_[state].second));
    std::ranges::reverse(findings_.story);
  }

  Bounds bounds_;
  Cast cast_;
  Findings findings_;
  std::unordered_set<std::uint64_t> seen_;
  std::vector<Labelled> parents_;  // by state, in the order in which they were reached
  std::vector<State> next_;
  std::uint32_t now_ = 0;  // the state that is expanded
  std::set<NoteId> decisions_;
  std::string broken_;
};

/// Within 8 GB: a level of the search may end beyond its most states.
std::vector<World> nightly_worlds() {
  constexpr std::uint64_t kMost = 25'000'000;
  return {{"a_state_is_taken_anew", {.rounds = 1, .ballots = {3}, .resyncs = 1, .states = kMost}},
          {"two_rounds_of_two_ballots", {.rounds = 2, .ballots = {2, 2}, .states = kMost}},
          {"one_round_of_three_ballots", {.rounds = 1, .ballots = {3}, .states = kMost}},
          {"a_plan_is_revised", {.rounds = 1, .ballots = {2}, .revisions = 1, .states = kMost}},
          {"a_process_is_replaced", {.rounds = 1, .ballots = {2}, .restarts = 1, .states = kMost}},
          {"a_seat_changes_hands", {.rounds = 1, .ballots = {3}, .hand_overs = 1, .states = kMost}},
          {"a_process_is_replaced_in_three_ballots",
           {.rounds = 1, .ballots = {3}, .restarts = 1, .states = kMost},
           false},
          {"two_rounds_of_three_ballots", {.rounds = 2, .ballots = {3, 3}, .states = kMost}, false}};
}

}  // namespace

std::vector<World> worlds() {
  if (kPeers > 3) return nightly_worlds();
  // A planted bug is searched for in this order: small ones come first, and what finds a bug soon.
  return {{"a_state_is_taken_anew", {.rounds = 1, .ballots = {3}, .resyncs = 1}},
          {"a_state_is_taken_anew_in_two_rounds", {.rounds = 2, .ballots = {2, 2}, .resyncs = 1}},
          {"a_seat_changes_hands", {.rounds = 1, .ballots = {3}, .hand_overs = 1}},
          {"two_seats_change_hands", {.rounds = 1, .ballots = {3}, .hand_overs = 2}},
          {"a_seat_changes_hands_in_two_rounds", {.rounds = 2, .ballots = {2, 2}, .hand_overs = 1}},
          {"a_seat_changes_hands_while_a_plan_is_revised",
           {.rounds = 1, .ballots = {2}, .revisions = 1, .hand_overs = 1}},
          {"a_plan_is_revised_and_a_state_taken_anew",
           {.rounds = 1, .ballots = {2}, .revisions = 1, .resyncs = 1}},
          {"a_plan_is_forged", {.rounds = 1, .ballots = {3}, .forgeries = 1}},
          {"a_process_is_replaced", {.rounds = 1, .ballots = {3}, .restarts = 1}},
          {"a_plan_of_two_rounds_is_revised", {.rounds = 2, .ballots = {2, 2}, .revisions = 1}},
          {"two_rounds_of_three_ballots", {.rounds = 2, .ballots = {3, 3}}},
          {"a_plan_is_revised", {.rounds = 1, .ballots = {3}, .revisions = 1}},
          {"a_process_is_replaced_in_two_rounds", {.rounds = 2, .ballots = {2, 2}, .restarts = 1}}};
}

Findings explore(const Bounds& bounds) { return Exploration(bounds).run(); }

}  // namespace tw::explorer
