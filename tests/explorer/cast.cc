// SPDX-License-Identifier: Apache-2.0
#include "explorer/cast.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/check.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "wire/frame.h"

namespace tw::explorer {
namespace {

using swarm::Acceptor;
using swarm::History;
using swarm::Proposer;
using wire::Member;
using wire::Plan;
using wire::Record;

constexpr std::uint64_t kSamples = 8;
constexpr std::uint32_t kVersions = 2;  // of the plans of one ballot

Digest content_of(Record draft) {
  draft.mean = {};
  return digest_of(draft);
}

/// The mean depends on the contributions alone.
Digest mean_of(const Record& draft) { return digest_of(fmt::format("mean of {}", contribution_set(draft))); }

std::string name_of(std::size_t process) {
  const char letter = static_cast<char>('A' + process % kPeers);
  return process < kPeers ? std::string(1, letter) : std::string(1, letter) + "'";
}

std::string text_of(const Plan& plan) {
  return fmt::format("({},{})", plan.ballot, plan.version) + to_string(content_of(plan.draft));
}

std::string text_of(const std::optional<wire::Accepted>& accepted) {
  return accepted ? text_of(accepted->plan) + to_string(accepted->mean) : "-";
}

std::string text_of(const std::vector<PeerId>& seats) {
  std::string text;
  for (const PeerId seat : seats) text += fmt::format(" seat {}", seat.value);
  return text;
}

/// The vote that it gives once the mean is here.
std::optional<wire::Vote> vote_of(Acceptor acceptor) {
  if (acceptor.averages()) acceptor.complete(mean_of(acceptor.plan()->draft));
  return acceptor.vote();
}

/// All that the future of a process depends on. A plan that it will not vote for, because it has promised a
/// higher ballot, is none of it.
std::string key_of(const Local& local) {
  const Acceptor& acceptor = local.acceptor;
  std::string key =
      fmt::format("{} {} {} ", local.process, to_string(local.history.digest()), acceptor.promised());
  key += text_of(acceptor.accepted());
  if (acceptor.accepted() && !acceptor.word(0, {}).progress.called) key += " has lost its mean";
  key += text_of(acceptor.seats());
  if (local.gave_seat) key += " gave its seat";
  const bool is_over = acceptor.plan() && acceptor.plan()->ballot < acceptor.promised() && !vote_of(acceptor);
  if (acceptor.plan() && !is_over)
    key += fmt::format(" {} ", static_cast<int>(acceptor.stage())) + text_of(*acceptor.plan());
  const std::vector<Member>& members = local.history.head()->members;
  const Member self = process_member(local.process);
  if (swarm::names(members, self)) {
    Acceptor asked = acceptor;
    key += fmt::format(" bids {}", asked.bid(members, self, members.front().is(self)));
  }
  if (!local.proposer) return key;
  const Proposer& proposer = *local.proposer;
  key += fmt::format(" leads {} {} {} {} ", proposer.ballot(), static_cast<int>(proposer.stage()),
                     proposer.votes(), text_of(proposer.bound()));
  return key + (proposer.plan() ? text_of(*proposer.plan()) : "-");
}

std::string text_of(const Note& note) {
  const auto number = fmt::format("{}.{}", note.ballot, note.version);
  const std::string round = fmt::format(" of round {} by {}", note.round, name_of(note.from));
  if (std::holds_alternative<wire::Prepare>(note.message)) return "prepare " + number + round;
  if (std::holds_alternative<Plan>(note.message)) return "plan " + number + round;
  if (std::holds_alternative<wire::Promise>(note.message)) return "promise " + number + round;
  if (std::holds_alternative<wire::Vote>(note.message)) return "vote " + number + round;
  if (std::holds_alternative<wire::Entrust>(note.message)) return "seat" + round;
  return "commit" + round;
}

/// For each list one of its elements, or for none of those that may be left out, in all ways.
std::vector<std::vector<NoteId>> choices(const std::vector<std::vector<NoteId>>& lists) {
  std::vector<std::vector<NoteId>> all = {{}};
  for (const std::vector<NoteId>& list : lists) {
    std::vector<std::vector<NoteId>> more = all;  // none of this list
    for (const NoteId note : list) {
      for (std::vector<NoteId> chosen : all) {
        chosen.push_back(note);
        more.push_back(std::move(chosen));
      }
    }
    all = std::move(more);
  }
  return all;
}

Proposer::Processes processes_of(const std::vector<std::size_t>& here) {
  Proposer::Processes processes;
  for (const std::size_t process : here) {
    const Member member = process_member(process);
    processes.emplace(member.peer, member.incarnation);
  }
  return processes;
}

}  // namespace

Member process_member(std::size_t process) {
  return {PeerId{1 + process % kPeers}, {}, 1 + process / kPeers, {}};
}

// ---- what is kept once

LocalId Cast::intern(Local local) {
  const auto [entry, fresh] = local_ids_.try_emplace(key_of(local), locals_.size());
  if (fresh) locals_.push_back(std::move(local));
  return entry->second;
}

LabelId Cast::intern(const std::string& label) {
  const auto [entry, fresh] = label_ids_.try_emplace(label, labels_.size());
  if (fresh) labels_.push_back(label);
  return entry->second;
}

LabelId Cast::label_of(std::size_t process, const std::string& what) {
  return intern(name_of(process) + " " + what);
}

void Cast::remember(const Record& record) { records_.emplace(digest_of(record), record); }

NoteId Cast::intern(std::size_t from, wire::Message message, std::size_t keeper) {
  Note note{from, message, {}, {}, {}, {}, {}, keeper};
  std::string key = fmt::format("{} {} ", from, message.index());
  if (const auto* prepare = std::get_if<wire::Prepare>(&message)) {
    note.round = prepare->round, note.ballot = prepare->ballot;
  } else if (const auto* plan = std::get_if<Plan>(&message)) {
    note.round = plan->draft.round, note.ballot = plan->ballot, note.version = plan->version;
    note.content = content_of(plan->draft), note.parent = plan->draft.parent;
  } else if (const auto* promise = std::get_if<wire::Promise>(&message)) {
    note.round = promise->progress.round, note.ballot = promise->ballot;
    key += text_of(promise->accepted);  // no proposer asks for the plan
    key += promise->progress.called ? " " : " lost ";
    key += text_of(promise->progress.seats);
  } else if (const auto* vote = std::get_if<wire::Vote>(&message)) {
    note.round = vote->step.round, note.ballot = vote->ballot, note.version = vote->version;
    note.content = vote->mean;
    key += text_of(vote->seats);
  } else if (const auto* entrust = std::get_if<wire::Entrust>(&message)) {
    note.round = entrust->round;
    key += fmt::format("{}", entrust->promised) + text_of(entrust->seats);
  } else if (const auto* commit = std::get_if<wire::Commit>(&message)) {
    note.round = commit->record.round, note.content = digest_of(commit->record);
    note.parent = commit->record.parent;
    remember(commit->record);
  }
  key += fmt::format(" {} {} {} {} {} {}", keeper, note.round, note.ballot, note.version,
                     to_string(note.content), to_string(note.parent));
  const auto [entry, fresh] = note_ids_.try_emplace(key, notes_.size());
  TW_CHECK(notes_.size() < std::numeric_limits<NoteId>::max());
  if (fresh) notes_.push_back(std::move(note));
  return entry->second;
}

Step Cast::done(Local local, const std::string& label, std::vector<NoteId> sent) {
  return {intern(std::move(local)), std::move(sent), intern(label), {}, false};
}

// ---- beginnings

// A bid that needs promises binds nobody before its Prepare arrives, so it may as well come first. Not so
// where a process may take its state anew, after which it bids again.
std::vector<NoteId> Cast::bid_early(Local& local) {
  if (bounds_.resyncs > 0 || !may_lead(local)) return {};
  const Record& head = *local.history.head();
  const Member self = process_member(local.process);
  if (head.members.front().is(self)) return {};
  Acceptor acceptor = local.acceptor;
  const Ballot ballot = acceptor.bid(head.members, self, false);
  if (ballot >= bounds_.ballots.at(head.round)) return {};
  local.acceptor = acceptor;
  local.proposer.emplace(head, ballot);
  return {intern(local.process, wire::Prepare{head.round + 1, ballot})};
}

Step Cast::first(std::size_t process) {
  Record record;
  record.run = digest_of(std::string("run"));
  for (std::size_t i = 0; i < kPeers; ++i) record.members.push_back(process_member(i));
  record.had_company = true;
  remember(record);
  Local local{process, {}, {}, {}};
  local.history.begin(record);
  const std::vector<NoteId> sent = bid_early(local);
  return done(std::move(local), name_of(process) + " begins", sent);
}

Step Cast::started(std::size_t process, LocalId donor) {
  Local local{process, {}, {}, {}};
  local.history.begin(*locals_[donor].history.head());
  const std::vector<NoteId> sent = bid_early(local);
  return done(std::move(local), name_of(process) + " is started", sent);
}

// ---- a member

const Step& Cast::deliver(LocalId local, NoteId note) {
  const std::uint64_t key = std::uint64_t{local} << 16 | note;
  const auto found = delivered_.find(key);
  if (found != delivered_.end()) return found->second;
  const Local before = locals_[local];
  const Note delivered = notes_[note];
  return delivered_.emplace(key, receive(before, delivered)).first->second;
}

// As Swarm does it.
Step Cast::take_seats(const Local& local, const Note& note) {
  Local next = local;
  const auto& entrust = std::get<wire::Entrust>(note.message);
  const std::vector<Member>& members = local.history.head()->members;
  const bool takes = note.keeper == local.process && local.history.is_next(entrust.round) &&
                     swarm::names(members, process_member(local.process)) &&
                     swarm::names(members, process_member(note.from));
  const std::string label = name_of(local.process) + " takes the " + text_of(note);
  if (!takes) return done(next, label);
  for (const PeerId seat : entrust.seats) next.acceptor.take_seat(seat, entrust.promised);
  if (next.proposer && next.acceptor.promised() > next.proposer->ballot()) next.proposer.reset();
  return done(next, label);
}

// As Swarm does it.
Step Cast::receive(const Local& local, const Note& note) {
  if (std::holds_alternative<wire::Entrust>(note.message)) return take_seats(local, note);
  Local next = local;
  const std::string label = name_of(local.process) + " gets " + text_of(note);
  const Member from = process_member(note.from);
  const std::vector<Member>& members = local.history.head()->members;
  const auto follows = [&](Ballot ballot) {
    return local.acceptor.answer(members, from, ballot) == Acceptor::Answer::follow;
  };
  if (const auto* prepare = std::get_if<wire::Prepare>(&note.message)) {
    if (local.gave_seat || !local.history.is_next(prepare->round) || !follows(prepare->ballot))
      return done(next, label);
    next.acceptor.promise(prepare->ballot);
    const bool overtaken = next.proposer && next.acceptor.promised() > next.proposer->ballot();
    if (overtaken) next.proposer.reset();
    wire::Progress progress;
    progress.round = prepare->round;
    progress.seats = next.acceptor.seats();
    return done(next, label, {intern(local.process, next.acceptor.word(prepare->ballot, progress))});
  }
  if (const auto* plan = std::get_if<Plan>(&note.message)) {
    const bool takes = !local.gave_seat && local.history.continues(plan->draft) && follows(plan->ballot) &&
                       next.acceptor.take(*plan);
    if (!takes) return done(next, label);
    next.acceptor.complete(mean_of(plan->draft));
    const std::optional<wire::Vote> vote = next.acceptor.vote();
    return done(next, label + " and votes",
                vote ? std::vector{intern(next.process, *vote)} : std::vector<NoteId>{});
  }
  const Record record = std::get<wire::Commit>(note.message).record;
  const std::optional<Record> expected = local.acceptor.expected();
  const History::News news = local.history.judge(record, expected);
  if (news == History::News::old) return done(next, label);
  bool again = false;
  if (news == History::News::next) {
    next.history.extend(record);
  } else {
    again = next.history.begin(record);
  }
  next.acceptor.begin_round(again);
  next.proposer.reset();
  next.gave_seat = next.gave_seat && again;
  const std::vector<NoteId> sent = bid_early(next);
  Step step =
      done(next, label + (news == History::News::next ? " and applies it" : " and takes the state"), sent);
  step.adopted = digest_of(record);
  step.other_mean = news == History::News::next && !(expected && expected->mean == record.mean);
  return step;
}

// Nothing comes of it where the promise is kept.
const Step& Cast::late_vote(LocalId local, NoteId plan, NoteId prepare) {
  const auto [entry, fresh] = late_votes_.try_emplace({local, plan, prepare});
  if (!fresh) return entry->second;
  Local next = locals_[local];
  entry->second.to = local;
  const Note& wanted = notes_[plan];
  const Note& overtaking = notes_[prepare];
  const std::vector<Member> members = next.history.head()->members;
  const auto follows = [&](const Note& note) {
    return next.acceptor.answer(members, process_member(note.from), note.ballot) == Acceptor::Answer::follow;
  };
  const Plan& draft = std::get<Plan>(wanted.message);
  const bool possible = !next.gave_seat && next.history.continues(draft.draft) &&
                        overtaking.round == wanted.round && overtaking.ballot > wanted.ballot &&
                        follows(wanted) && next.acceptor.take(draft) && follows(overtaking);
  if (!possible) return entry->second;
  next.acceptor.promise(overtaking.ballot);
  next.acceptor.complete(mean_of(draft.draft));
  const std::optional<wire::Vote> vote = next.acceptor.vote();
  if (!vote) return entry->second;
  const std::string label =
      name_of(next.process) + " promises " + text_of(overtaking) + ", then votes for " + text_of(wanted);
  wire::Progress progress;
  progress.round = overtaking.round;
  progress.seats = next.acceptor.seats();
  const NoteId promise = intern(next.process, locals_[local].acceptor.word(overtaking.ballot, progress));
  const NoteId sent = intern(next.process, *vote);
  return late_votes_[{local, plan, prepare}] = done(std::move(next), label, {promise, sent});
}

const Step& Cast::resync(LocalId local) {
  const auto found = resynced_.find(local);
  if (found != resynced_.end()) return found->second;
  Local next = locals_[local];
  const Record head = *next.history.head();
  next.acceptor.begin_round(next.history.begin(head));
  next.proposer.reset();
  return resynced_.emplace(local, done(next, name_of(next.process) + " takes the state of its head anew"))
      .first->second;
}

// A seat goes with what its member computed, which ends with the plan: a member that has voted keeps it.
const Step& Cast::hand_over(LocalId local, std::size_t keeper) {
  const auto [entry, fresh] = handed_over_.try_emplace({local, keeper});
  if (!fresh) return entry->second;
  Local next = locals_[local];
  entry->second.to = local;
  const Record& head = *next.history.head();
  const Member self = process_member(next.process);
  const bool may = !next.gave_seat && next.acceptor.may_give_seat() && head.round < bounds_.rounds &&
                   swarm::names(head.members, self) && keeper % kPeers != next.process % kPeers;
  if (!may) return entry->second;
  wire::Entrust entrust{head.round + 1, next.acceptor.promised(), {}, next.acceptor.seats()};
  entrust.seats.push_back(self.peer);
  next.gave_seat = true;
  next.proposer.reset();
  const NoteId sent = intern(next.process, entrust, keeper);
  const std::string label = name_of(next.process) + " leaves and gives its seat to " + name_of(keeper);
  return entry->second = done(std::move(next), label, {sent});
}

Step Cast::forge(LocalId local, NoteId plan) {
  const std::size_t process = locals_[local].process;
  Note forged = notes_[plan];
  forged.from = process;
  ++forged.ballot;
  if (!is_forged(forged)) return {local};
  Plan message = std::get<Plan>(forged.message);
  ++message.ballot;
  return {local, {intern(process, message)}, label_of(process, "forges a plan of the next ballot")};
}

bool Cast::is_forged(const Note& plan) const {
  return !swarm::ballot_owner(record(plan.parent).members, plan.ballot).is(process_member(plan.from));
}

// ---- a leader

bool Cast::may_lead(const Local& local) const {
  const Record& head = *local.history.head();
  return !local.gave_seat && head.round < bounds_.rounds &&
         swarm::names(head.members, process_member(local.process));
}

// The process that was started last, of each peer.
Cast::Here Cast::newest(unsigned started) const {
  Here here;
  for (std::size_t peer = 0; peer < kPeers; ++peer)
    here.push_back((started >> (peer + kPeers) & 1U) != 0 ? peer + kPeers : peer);
  return here;
}

// All sets of processes with the leader in which members are a majority.
std::vector<Cast::Here> Cast::choices_of_here(const Local& leader, unsigned started) const {
  std::vector<Here> all = {{}};
  for (std::size_t peer = 0; peer < kPeers; ++peer) {
    std::vector<Here> more;
    for (const Here& here : all) {
      const bool own = leader.process % kPeers == peer;
      if (!own) more.push_back(here);
      for (std::size_t process = peer; process < kProcesses; process += kPeers) {
        if ((started >> process & 1U) == 0 || (own && process != leader.process)) continue;
        more.push_back(here);
        more.back().push_back(process);
      }
    }
    all = std::move(more);
  }
  const std::vector<Member>& members = leader.history.head()->members;
  std::erase_if(all, [&](const Here& here) {
    std::set<PeerId> seated;
    for (const std::size_t process : here) {
      if (swarm::names(members, process_member(process))) seated.insert(process_member(process).peer);
    }
    return !swarm::is_quorum(members, seated);
  });
  return all;
}

// Members first, in their order; then newcomers.
Plan Cast::fresh_plan(const Local& leader, const Here& here, std::uint64_t contributions) const {
  const Record& head = *leader.history.head();
  Plan plan;
  Record& draft = plan.draft;
  draft.run = head.run;
  draft.round = head.round + 1;
  draft.parent = leader.history.digest();
  draft.first_sample = head.first_sample + head.samples;
  draft.samples = kSamples;
  draft.contributors = {{process_member(leader.process).peer, static_cast<std::uint32_t>(contributions),
                         kSamples, RangeSet(Range{0, 1}), 0}};
  draft.ahead = draft.contributors;  // as with overlap: no two drafts have the same
  const auto is_here = [&](const Member& m) {
    return std::ranges::any_of(here, [&](std::size_t process) { return process_member(process).is(m); });
  };
  for (const Member& m : head.members) {
    if (is_here(m)) draft.members.push_back(m);
  }
  for (const std::size_t process : here) {
    if (!swarm::names(head.members, process_member(process)))
      draft.members.push_back(process_member(process));
  }
  for (std::size_t peer = 0; peer < kPeers; ++peer) plan.participants.push_back(process_member(peer).peer);
  swarm::continue_lineage(draft, head);
  return plan;
}

Step Cast::propose(Local local, Plan plan, const std::string& how) {
  const Plan& numbered = local.proposer->propose(std::move(plan));
  const std::string label = fmt::format("{} {} {}.{} of round {}", name_of(local.process), how,
                                        numbered.ballot, numbered.version, numbered.draft.round);
  const NoteId sent = intern(local.process, numbered);
  return done(std::move(local), label, {sent});
}

bool Cast::may_revise(LocalId id) const {
  const auto& proposer = locals_[id].proposer;
  return proposer && proposer->plan() && proposer->plan()->version < kVersions;
}

const std::vector<Step>& Cast::bid(LocalId id, unsigned started) {
  const auto [entry, fresh] = bids_.try_emplace({id, started});
  if (!fresh || !may_lead(locals_[id])) return entry->second;
  Local local = locals_[id];
  const Record head = *local.history.head();
  const Member self = process_member(local.process);
  const Ballot ballot = local.acceptor.bid(head.members, self, head.members.front().is(self));
  if (ballot >= bounds_.ballots.at(head.round)) return entry->second;
  local.proposer.emplace(head, ballot);
  std::vector<Step> steps;
  if (ballot > 0) {
    const NoteId prepare = intern(local.process, wire::Prepare{head.round + 1, ballot});
    steps.push_back(done(local, fmt::format("{} bids {}", name_of(local.process), ballot), {prepare}));
  } else {
    steps.push_back(propose(local, fresh_plan(local, newest(started), ballot), "proposes"));
  }
  return bids_.at({id, started}) = std::move(steps);
}

const std::vector<Step>& Cast::begin(LocalId id, unsigned started, const std::vector<NoteId>& promises) {
  std::vector<NoteId> key = promises;
  key.push_back(static_cast<NoteId>(started));
  const auto [entry, fresh] = begun_.try_emplace({id, key});
  if (!fresh) return entry->second;
  std::vector<std::vector<NoteId>> by_process(kProcesses);
  for (const NoteId promise : promises) by_process[notes_[promise].from].push_back(promise);
  std::map<std::pair<LocalId, std::vector<NoteId>>, Step> steps;
  for (const std::vector<NoteId>& chosen : choices(by_process)) {
    Local local = locals_[id];
    Here here;
    for (const NoteId promise : chosen) here.push_back(notes_[promise].from);
    local.proposer->set_here(processes_of(here));
    for (const NoteId promise : chosen) {
      const Note& note = notes_[promise];
      local.proposer->on_promise(process_member(note.from), std::get<wire::Promise>(note.message));
    }
    const Proposer::Start start = local.proposer->begin(false);
    if (start != Proposer::Start::open && start != Proposer::Start::bound) continue;
    const bool bound = start == Proposer::Start::bound;
    Plan plan =
        bound ? local.proposer->bound()->plan : fresh_plan(local, newest(started), local.proposer->ballot());
    Step step = propose(local, std::move(plan), bound ? "finishes as" : "proposes");
    steps.emplace(std::pair(step.to, step.sent), step);
  }
  std::vector<Step>& all = begun_.at({id, key});
  for (auto& [result, step] : steps) all.push_back(std::move(step));
  return all;
}

const std::vector<Step>& Cast::revise(LocalId id, unsigned started, const std::vector<NoteId>& votes) {
  std::vector<NoteId> key = votes;
  key.push_back(static_cast<NoteId>(started));
  const auto [entry, fresh] = revised_.try_emplace({id, key});
  if (!fresh) return entry->second;
  Local local = locals_[id];
  Here voters;
  for (const NoteId vote : votes) voters.push_back(notes_[vote].from);
  local.proposer->set_here(processes_of(voters));
  hear(local, votes);
  const Plan plan = *local.proposer->plan();
  std::vector<Step> steps;
  if (plan.version < kVersions && local.proposer->bound()) {
    steps.push_back(propose(local, plan, "sends again as"));
  } else if (plan.version < kVersions) {
    const std::uint64_t contributions = plan.draft.contributors.front().slot;
    for (const Here& here : choices_of_here(local, started)) {
      Plan other = fresh_plan(local, here, contributions);
      if (other.draft.members != plan.draft.members)
        steps.push_back(propose(local, std::move(other), "takes others in with"));
    }
    Local reopened = local;
    reopened.proposer->reopen();
    Plan other = plan;
    other.draft.contributors.front().slot =
        static_cast<std::uint32_t>(contributions + std::uint64_t{10} * plan.version);
    other.draft.ahead = other.draft.contributors;
    steps.push_back(propose(reopened, std::move(other), "calls again with"));
  }
  return revised_.at({id, key}) = std::move(steps);
}

void Cast::hear(Local& local, const std::vector<NoteId>& votes) const {
  for (const NoteId vote : votes)
    local.proposer->on_vote(process_member(notes_[vote].from), std::get<wire::Vote>(notes_[vote].message));
}

const std::vector<Step>& Cast::decide(LocalId id, const std::vector<NoteId>& votes) {
  const auto [entry, fresh] = decided_.try_emplace({id, votes});
  if (!fresh) return entry->second;
  std::vector<std::vector<NoteId>> by_process(kProcesses);
  for (const NoteId vote : votes) by_process[notes_[vote].from].push_back(vote);
  std::map<std::vector<NoteId>, Step> steps;
  for (const std::vector<NoteId>& chosen : choices(by_process)) {
    Local local = locals_[id];
    Here here;
    for (const NoteId vote : chosen) here.push_back(notes_[vote].from);
    local.proposer->set_here(processes_of(here));
    hear(local, chosen);
    if (local.proposer->count().outcome != Proposer::Count::Outcome::agreed) continue;
    local.proposer->decide();
    const NoteId commit = intern(local.process, wire::Commit{*local.proposer->decision()});
    local.proposer.reset();
    steps.emplace(std::vector{commit}, done(local, name_of(local.process) + " decides", {commit}));
  }
  std::vector<Step>& all = decided_.at({id, votes});
  for (auto& [sent, step] : steps) all.push_back(std::move(step));
  return all;
}

}  // namespace tw::explorer
