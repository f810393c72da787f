// SPDX-License-Identifier: Apache-2.0
#include "swarm/lead.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"
#include "swarm/leases/batch.h"
#include "swarm/leases/batch_choice.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::Plan;
using namespace std::chrono_literals;

constexpr Duration kAskAgain = 500ms;

PeerStatus::Word word_of(const wire::Progress& told) { return {told.parameters, told.seats, told.gave_seat}; }

bool is_participant(const Plan& plan, PeerId peer) {
  return std::ranges::find(plan.participants, peer) != plan.participants.end();
}

// The peer is in the plan under way, or a member.
bool has_a_part(const Proposer& proposer, const PeerStatus& status, PeerId peer) {
  return proposer.stage() == Proposer::Stage::proposed &&
         (is_member(status.members(), peer) || is_participant(*proposer.plan(), peer));
}

// This peer works, and its progress is that of this ballot.
bool is_working(const Proposer& proposer, const PeerStatus& status, PeerId peer) {
  if (!status.is_seated(peer)) return status.of(peer) == PeerStatus::Status::early;
  return proposer.stage() != Proposer::Stage::preparing;
}

// All peers that could go on with the run leave.
bool nobody_stays(const Proposer& proposer, const PeerStatus& status, PeerId self) {
  return proposer.stage() == Proposer::Stage::open && status.word(self) != nullptr &&
         status.next_members().empty();
}

// Microbatches are left, and all peers that could compute them or reduce a share are out of this round or do
// no work in it.
bool nobody_works(const PeerStatus& status, const Leasing& leasing) {
  const auto would = [&](PeerId peer) { return !status.leaves(peer); };
  const bool all_given = !leasing.has_free() || std::ranges::any_of(status.eligible(), would);
  if (all_given && !status.owners().empty()) return false;
  return std::ranges::any_of(status.members(), [&](const wire::Member& m) {
    const bool idles = !status.counts(m.peer) || status.of(m.peer) == PeerStatus::Status::refused;
    return status.is_seated(m.peer) && would(m.peer) && idles;
  });
}

// Most peers here are refused, and microbatches are left: the others would compute for a multiple of the
// round.
bool few_work(const PeerStatus& status, const Leasing& leasing) {
  const auto refused = [&](PeerId peer) { return status.of(peer) == PeerStatus::Status::refused; };
  return leasing.has_free() &&
         2 * std::ranges::count_if(status.present(), refused) > std::ssize(status.present());
}

// The first bid of this leader for this round.
bool is_first_bid(const Proposer& proposer, const wire::Record& head) {
  return proposer.ballot() < head.members.size();
}

// A majority is here, and so is the mean that this ballot may have to finish.
bool most_can_decide(const PeerStatus& status, const Proposer& proposer) {
  return status.has_quorum() && !proposer.lacks_mean();
}

std::vector<PeerId> without(PeerId self, auto&& among) {
  std::vector<PeerId> peers(among.begin(), among.end());
  std::erase(peers, self);
  return peers;
}

Wait wait_for_work(const Lead::Options& options, Round round, const PeerStatus& status,
                   const Leasing& leasing, bool none_stays) {
  const std::size_t here = status.present().size() + status.candidates().size();
  const auto others = [&](auto&& among) { return without(options.self.peer, among); };
  Wait wait{Wait::Kind::gradients, leasing.holders(), round};
  if (none_stays) {
    wait.peers = status.uncounted();
    wait.kind = Wait::Kind::successor;
    if (!wait.peers.empty()) return wait;
    wait.kind = Wait::Kind::newcomer;
    std::ranges::copy_if(status.present(), std::back_inserter(wait.peers),
                         [&](PeerId peer) { return status.leaves(peer); });
  } else if (!leasing.has_company(status)) {
    wait.kind = Wait::Kind::company;
    wait.peers = others(status.present());
    wait.done = here;
    wait.total = options.wait_for;
    return wait;  // those who are not here have no names yet
  } else if (!leasing.held_back_for().empty() && leasing.has_free()) {
    wait.kind = Wait::Kind::held_back;
    wait.peers = leasing.held_back_for();
  } else if (wait.peers.empty()) {
    wait.peers = others(status.eligible());
    wait.kind = leasing.has_free() && !wait.peers.empty() ? Wait::Kind::requests : Wait::Kind::readiness;
    if (wait.peers.empty()) wait.peers = others(status.present());
  }
  if (wait.peers.empty()) wait.peers = {options.self.peer};
  return wait;
}

/// The newest plan of this round; called: that of a former leader.
const SharedPlan& plan_before(const Proposer& proposer, const SharedPlan& called) {
  return proposer.plan() ? proposer.plan() : called;
}

wire::BatchChoice choice_of_batch(const Plan& plan, const Lead::Options& options, const Leasing& leasing,
                                  const Planning& planning) {
  wire::BatchChoice choice = leasing.measured(plan.draft.members, to_seconds(options.shortest_reduce));
  choice.samples = plan.draft.batch->samples;
  choice.averaging_s = std::max(choice.averaging_s, planning.least_reduce_s(plan));
  choice.next = next_batch_size(choice, options.lease);
  return choice;
}

/// With overlap the work of a round may be done before the last update. A call right then would leave all of
/// the averaging to the leader.
bool have_updated(const std::vector<wire::Contribution>& contributions, const PeerStatus& peers,
                  bool overlap) {
  const auto updates = [&](const wire::Contribution& c) { return is_updating(peers, c.peer); };
  return !contributions.empty() && !(overlap && std::ranges::any_of(contributions, updates));
}

}  // namespace

Lead::Lead(Options options, const wire::Record& head, Ballot ballot, Instant now)
    : options_(std::move(options)),
      head_(head),
      proposer_(head, ballot),
      now_(now),
      leasing_(rules_of(options_.lease.after(head)),
               {head.round + 1, ballot, options_.wait_for, options_.rarely}),
      status_(options_.self, head.members, ballot > 0, std::exchange(options_.stances, {})),
      planning_({options_.segments, options_.division, options_.shares_before}, status_),
      stragglers_(options_.segments),
      hand_overs_(head.round + 1, ballot, options_.sum_bytes) {
  TW_CHECK(ballot_owner(head_.members, ballot).is(options_.self));
  proposer_.set_here(status_.counted());
  if (head_.round + 1 >= options_.rounds) end_run();
}

// With overlap, peers that were called compute for a round after this one.
void Lead::end_run() {
  const bool may_have_called =
      proposer_.stage() == Stage::preparing || called_ || proposer_.plan() || leasing_.has_moved_on();
  if (options_.lease.overlap && may_have_called && head_.round + 1 < options_.rounds) return;
  last_ = true;
  leasing_.end_run();
}

void Lead::set_live(Instant now, const Live& live, std::set<PeerId> anchors) {
  now_ = now;
  status_.set_anchors(std::move(anchors));
  const std::vector<PeerId> gone =
      status_.set_live(live, [&](PeerId peer) { return has_a_part(proposer_, status_, peer); });
  proposer_.set_here(status_.counted());
  for (PeerId peer : gone) {
    stragglers_.forget(peer);
    hand_overs_.forget(peer);
    out(peer);
  }
  advance();
}

void Lead::on_progress(const wire::Member& from, const wire::Progress& progress) {
  const PeerId peer = from.peer;
  if (progress.round != head_.round + 1 || !status_.is_reachable(peer) || proposer_.stage() == Stage::decided)
    return;
  if (progress.ballot > ballot()) return proposer_.outbid_by(progress.ballot);
  if (!status_.has_room_for(peer)) return;
  status_.hear(peer, progress);
  const bool newcomer = status_.told(from, word_of(progress));
  settings_.hear(peer, progress);
  hand_overs_.on_progress(now_, peer, progress);
  if (progress.gave_seat) proposer_.expect_no_vote(peer);
  const bool is_called = proposer_.stage() == Stage::proposed;
  const bool missed_call =
      is_called && !progress.called && status_.counts(peer) && is_participant(*proposer_.plan(), peer);
  if (missed_call)
    messages_.push_back({peer, *proposer_.plan()});  // the plan reached it before this round's head
  if (newcomer && is_called) take_in(peer);
  if (is_working(proposer_, status_, peer)) {
    if (progress.moved_on && proposer_.stage() == Stage::open && !leasing_.has_moved_on()) leasing_.close();
    leasing_.on_progress(now_, status_, peer, progress, proposer_.stage() != Stage::open);
    send_leases();
  } else if (status_.is_seated(peer)) {
    proposer_.refresh(peer, progress);
  }
  let_leavers_go();
  advance();
}

// A joiner that reaches the head while the round is averaged gets this mean, too. If it had to fetch the mean
// afterwards, it might come too late for every round.
void Lead::take_in(PeerId joiner) {
  if (finishes() || resigned() || !status_.counts(joiner) || status_.leaves(joiner)) return;
  if (status_.word(joiner)->parameters != proposer_.plan()->draft.parameters) return;
  if (rarely(options_.rarely, "lead.take_nobody_in")) return;
  Plan plan = *proposer_.plan();
  plan.participants.push_back(joiner);
  planning_.mend(plan);
  plan.draft.members = status_.next_members();
  propose(std::move(plan), true);
}

void Lead::on_promise(PeerId from, const wire::Promise& promise) {
  if (!status_.is_reachable(from)) return;
  const Proposer::Heard heard = proposer_.on_promise({from, {}, status_.incarnation(from), {}}, promise);
  if (heard == Proposer::Heard::nothing || heard == Proposer::Heard::outbid) return;
  const wire::Progress& told = promise.progress;
  if (told.parameters != Digest{}) {
    status_.hear(from, told);
    status_.note(from, word_of(told));
  }
  settings_.hear(from, told);
  if (told.gave_seat) proposer_.expect_no_vote(from);
  if (heard == Proposer::Heard::late) return;
  status_.promised(from);
  advance();
}

std::size_t Lead::notes() const {
  return status_.notes() + leasing_.notes() + proposer_.promises().size() + stragglers_.notes() +
         hand_overs_.notes() + settings_.size();
}

void Lead::begin_when_promised() {
  const Proposer::Start start = proposer_.begin(minority_);
  if (start == Proposer::Start::bound) {
    Plan plan = proposer_.bound()->plan;
    for (PeerId peer : status_.present())
      if (!is_participant(plan, peer)) plan.participants.push_back(peer);
    return serve_sealed(std::move(plan), proposer_.keepers());
  }
  if (start != Proposer::Start::open) return;
  const std::map<PeerId, wire::Promise>& promises = proposer_.promises();
  bool was_called = false;
  for (const auto& [peer, promise] : promises) {
    was_called = was_called || promise.plan || promise.progress.moved_on;
    if (!promise.plan) continue;
    const auto order = [](const Plan& plan) { return std::pair(plan.ballot, plan.version); };
    if (!called_ || order(*called_) < order(*promise.plan))
      called_ = std::make_shared<const Plan>(*promise.plan);
  }
  if (const auto own = promises.find(options_.self.peer); own != promises.end() && own->second.plan)
    planning_.go_on_after(*own->second.plan);
  if (leasing_.take_over(status_, promises, was_called)) report_reissue(leasing_.free(), {});
}

void Lead::serve_sealed(Plan plan, const std::set<PeerId>& keepers) {
  planning_.serve_sealed(plan, keepers, !finishes());
  propose(std::move(plan));
}

void Lead::advance() {
  if (resigned()) return;
  if (proposer_.stage() == Stage::preparing) begin_when_promised();
  if (proposer_.stage() == Stage::open) {
    const bool knows_settings = settings_.are_known(head_.round == 0);
    // While the call waits for settings alone, nobody's last work moves to others.
    const bool waits = leasing_.is_complete() && !knows_settings;
    if (ballot() == 0 && !std::exchange(began_, true)) leasing_.begin_with(now_, status_, head_.ahead);
    if (!waits && leasing_.advance(now_, status_)) report_reissue(leasing_.free(), {});
    send_leases();
    give_up_on_hopeless_work();
    if (resigned()) return;
    if (leasing_.is_complete() && knows_settings && may_decide() &&
        have_updated(leasing_.contributions(status_), status_, options_.lease.overlap))
      call();
  }
  if (proposer_.stage() == Stage::proposed && !resigned()) commit_when_agreed();
}

void Lead::send_leases() {
  for (wire::Envelope& envelope : leasing_.take_messages()) messages_.push_back(std::move(envelope));
}

bool Lead::may_decide() const { return (minority_ || status_.has_quorum()) && !status_.owners().empty(); }

void Lead::call() {
  Plan plan;
  wire::Record& draft = plan.draft;
  draft = record_after(head_, options_.lease);
  draft.parent = digest_of(head_);
  draft.members = status_.next_members();
  if (draft.members.empty()) return;  // step() sees who could go on
  draft.contributors = leasing_.contributions(status_);
  for (const wire::Contribution& c : draft.contributors) draft.samples += c.samples;
  draft.parameters = status_.word(options_.self.peer)->parameters;
  draft.minority = minority_;
  draft.last = last_;
  draft.settings = settings_.of(draft.contributors);
  plan.participants = status_.participants();
  planning_.divide(plan, proposer_.plan());
  if (options_.lease.chosen) {
    // A later plan of the round keeps the choice: the leases ahead are of the batch that it says.
    const SharedPlan& before = plan_before(proposer_, called_);
    const bool keeps = before && before->draft.batch && before->draft.parent == draft.parent;
    draft.batch = keeps ? before->draft.batch : choice_of_batch(plan, options_, leasing_, planning_);
  }
  if (options_.lease.overlap && !draft.last) draft.ahead = ahead_of(draft);
  propose(std::move(plan));
  if (is_first_bid(proposer_, head_) && rarely(options_.rarely, "lead.resign_at_call")) proposer_.resign();
}

// A peer that was called computes under the leases of its plan: a later plan of the round keeps them.
std::vector<wire::Contribution> Lead::ahead_of(const wire::Record& draft) const {
  const std::vector<wire::Member>& members = draft.members;
  const std::uint64_t microbatches = options_.lease.after(draft).microbatches();
  const auto stays = [&](PeerId peer) {
    return is_member(members, peer) && status_.counts(peer) && !status_.leaves(peer) &&
           status_.stance(peer).presence == wire::Presence::here;
  };
  if (const SharedPlan& before = plan_before(proposer_, called_)) {
    std::vector<wire::Contribution> ahead = before->draft.ahead;
    const RangeSet all(Range{0, microbatches});
    std::erase_if(ahead, [&](const wire::Contribution& c) {
      return !is_member(members, c.peer) || !all.contains(c.microbatches);
    });
    return ahead;
  }
  if (!leasing_.held_back_for().empty()) return {};
  std::vector<PeerId> peers;
  for (const wire::Member& m : members)
    if (stays(m.peer)) peers.push_back(m.peer);
  return leasing_.ahead(peers, microbatches);
}

// again: debts keep their due times.
void Lead::propose(Plan plan, bool again) {
  continue_lineage(plan.draft, head_);
  plan.expected_s = to_seconds(planning_.expected_reduce(plan, options_.expected_reduce));
  stragglers_.planned(now_, again);
  const Plan& numbered = proposer_.propose(std::move(plan));
  for (PeerId peer : numbered.participants) messages_.push_back({peer, numbered});
}

void Lead::on_vote(PeerId from, const wire::Vote& vote) {
  if (!status_.is_reachable(from)) return;
  if (!proposer_.on_vote({from, {}, status_.incarnation(from), {}}, vote)) return;
  if (proposer_.votes() == 1 && rarely(options_.rarely, "lead.propose_again"))
    return propose(Plan(*proposer_.plan()), true);
  commit_when_agreed();
}

void Lead::commit_when_agreed() {
  using Outcome = Proposer::Count::Outcome;
  const Proposer::Count count = proposer_.count();
  switch (count.outcome) {
    case Outcome::waits:
      return;
    case Outcome::differ:
      return leave_out(count.odd, "its mean differs from that of the others");
    case Outcome::too_few:
      if (status_.would_have_quorum()) proposer_.resign();  // there are enough, but this plan names others
      if (minority_ && !resigned()) propose_without_majority();
      return;
    case Outcome::agreed:
      break;
  }
  if (is_first_bid(proposer_, head_) && rarely(options_.rarely, "lead.resign_at_commit"))
    return proposer_.resign();
  proposer_.decide();
}

// The leader that made this plan counted on members that are not here. If its record named them, the next
// round would wait for a majority of them again, and processes restarted in their place would be turned away.
void Lead::propose_without_majority() {
  Plan plan = *proposer_.plan();
  plan.draft.minority = true;
  const bool knows_the_state = status_.word(options_.self.peer) != nullptr;
  if (std::vector<wire::Member> here = knows_the_state ? status_.next_members() : std::vector<wire::Member>{};
      !here.empty()) {
    for (const wire::Member& m : here)
      if (!is_participant(plan, m.peer)) plan.participants.push_back(m.peer);
    plan.draft.members = std::move(here);
    planning_.mend(plan);
  }
  propose(std::move(plan));
}

void Lead::step(Instant now) {
  now_ = now;
  if (proposer_.stage() == Stage::decided) return;
  if (proposer_.stage() == Stage::preparing && now >= next_ask_) {
    next_ask_ = now + kAskAgain;
    for (PeerId peer : status_.present())
      if (!proposer_.has_promised(peer))
        messages_.push_back({peer, wire::Prepare{head_.round + 1, ballot()}});
  }
  if (most_can_decide(status_, proposer_)) {
    no_quorum_since_ = kNever;
  } else if (no_quorum_since_ == kNever) {
    no_quorum_since_ = now;
  }
  if (!status_.has_quorum() && status_.would_have_quorum())
    proposer_.resign();  // they are back: a new ballot asks what they have
  if (nobody_stays(proposer_, status_, options_.self.peer) && !status_.uncounted().empty())
    proposer_.resign();  // the run is theirs: a new ballot counts them
  const bool waits_for_work = proposer_.stage() == Stage::open;
  // A new ballot asks everybody once more. Because few work, a leader does so only in its first bid: work may
  // be refused for good reasons.
  if (waits_for_work && nobody_works(status_, leasing_)) proposer_.resign();
  if (waits_for_work && is_first_bid(proposer_, head_) && few_work(status_, leasing_)) proposer_.resign();
  const bool is_called = proposer_.stage() == Stage::proposed;
  const bool is_of_few = is_called && proposer_.plan()->draft.minority && !finishes();
  if (is_of_few && most_can_decide(status_, proposer_))
    proposer_.resign();  // a majority is back, and decides without a mark
  minority_ = no_quorum_since_ != kNever && now - no_quorum_since_ >= options_.patience;
  if (const auto verdict = stragglers_.judge(now, status_, proposer_)) carry_out(*verdict);
  // Links of a hung peer answer, but its gradients do not come: the others would wait for ever.
  if (proposer_.stage() == Stage::open)
    if (const auto verdict = StragglerPolicy::judge_work(status_, leasing_.awaited(now_)))
      carry_out(*verdict);
  let_leavers_go();
  advance();
}

Wait Lead::waiting() const {
  const Stage stage = proposer_.stage();
  if (resigned() || stage == Stage::decided) return {};
  const bool waits_for_majority = !most_can_decide(status_, proposer_) && !minority_;
  if (stage == Stage::open && !waits_for_majority) {
    const bool none_stays = nobody_stays(proposer_, status_, options_.self.peer);
    return wait_for_work(options_, head_.round + 1, status_, leasing_, none_stays);
  }
  Wait wait{Wait::Kind::votes, {}, head_.round + 1, ballot()};
  if (waits_for_majority) {
    wait = {Wait::Kind::majority, {}, head_.round};
    for (const wire::Member& m : head_.members) {
      if (!status_.counts(m.peer) || !status_.is_seated(m.peer)) wait.peers.push_back(m.peer);
    }
    wait.left = options_.patience - (no_quorum_since_ == kNever ? Duration{} : now_ - no_quorum_since_);
  } else if (stage == Stage::preparing) {
    wait.kind = Wait::Kind::promises;
    std::ranges::copy_if(status_.present(), std::back_inserter(wait.peers),
                         [&](PeerId peer) { return !proposer_.has_promised(peer); });
  } else {
    std::ranges::copy_if(proposer_.plan()->participants, std::back_inserter(wait.peers),
                         [&](PeerId peer) { return status_.counts(peer) && !proposer_.has_vote(peer); });
  }
  if (wait.peers.empty()) wait.peers = {options_.self.peer};
  return wait;
}

}  // namespace tw::swarm
