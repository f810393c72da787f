// SPDX-License-Identifier: Apache-2.0
#include "swarm/lead.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"
#include "swarm/leases/batch.h"
#include "swarm/shares/shares.h"
#include "swarm/shares/sites.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::Plan;
using namespace std::chrono_literals;

constexpr Duration kAskAgain = 500ms;

PeerStatus::Word word_of(const wire::Progress& told) { return {told.parameters, told.seats, told.gave_seat}; }

}  // namespace

Lead::Lead(Options options, const wire::Record& head, Ballot ballot, Instant now)
    : options_(std::move(options)),
      head_(head),
      proposer_(head, ballot),
      now_(now),
      began_at_(now),
      leasing_(rules_of(options_.lease), {head.round + 1, ballot, options_.wait_for, options_.rarely}),
      status_(options_.self, head.members, ballot > 0),
      stragglers_(options_.segments),
      hand_overs_(head.round + 1, ballot, options_.sum_bytes) {
  TW_CHECK(ballot_owner(head_.members, ballot).is(options_.self));
  status_.set_stances(std::exchange(options_.stances, {}));
  proposer_.set_here(status_.counted());
  if (head_.round + 1 >= options_.rounds) end_run();
}

void Lead::end_run() {
  last_ = true;
  leasing_.end_run();
}

void Lead::set_live(Instant now, const Live& live) {
  now_ = now;
  const std::vector<PeerId> gone = status_.set_live(live, [&](PeerId peer) { return has_a_part(peer); });
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
  if (progress.round != head_.round + 1 || !status_.is_reachable(peer) || stage() == Stage::decided) return;
  if (progress.ballot > ballot()) return proposer_.outbid_by(progress.ballot);
  if (!status_.has_room_for(peer)) return;
  status_.hear(peer, progress);
  const bool newcomer = status_.told(from, word_of(progress));
  note_settings(peer, progress);
  hand_overs_.on_progress(now_, peer, progress);
  if (progress.gave_seat) proposer_.expect_no_vote(peer);
  const bool missed_call = stage() == Stage::proposed && !progress.called && counts(peer) &&
                           std::find(proposed()->participants.begin(), proposed()->participants.end(),
                                     peer) != proposed()->participants.end();
  if (missed_call) send(peer, *proposed());  // the plan reached it before this round's head
  if (newcomer && stage() == Stage::proposed) take_in(peer);
  if (may_follow_work_of(peer)) {
    follow_work(peer, progress);
  } else if (status_.is_seated(peer)) {
    proposer_.refresh(peer, progress);
  }
  let_leavers_go();
  advance();
}

void Lead::note_settings(PeerId peer, const wire::Progress& told) {
  const auto is_done = [](const wire::SlotProgress& slot) { return !slot.done.empty(); };
  if (std::ranges::any_of(told.slots, is_done)) {
    settings_[peer] = told.settings;
  } else if (!told.settings.empty()) {
    settings_.try_emplace(peer);
  }
}

// One peer decides, since values that differ have no mean that all would accept: the first one of the mean
// that has handed in something, so that its program is at this round. It need not be the leader, whose
// program may do something else.
std::string Lead::settings_for(const std::vector<wire::Contribution>& contributors) const {
  for (const wire::Contribution& c : contributors) {
    const auto told = settings_.find(c.peer);
    if (told != settings_.end() && told->second) return *told->second;
  }
  return {};
}

// A call may come before any gradient of the round, so before any program said what it wants. It waits for
// the first one where programs wanted something in the round before, and in the first round.
bool Lead::knows_settings() const {
  const auto is_known = [](const auto& told) { return told.second.has_value(); };
  return (settings_.empty() && head_.round > 0) || std::ranges::any_of(settings_, is_known);
}

bool Lead::may_follow_work_of(PeerId peer) const {
  if (!status_.is_seated(peer)) return status_.of(peer) == PeerStatus::Status::early;
  return stage() != Stage::preparing;
}

// A joiner that reaches the head while the round is averaged gets this mean, too. If it had to fetch the mean
// afterwards, it might come too late for every round.
void Lead::take_in(PeerId joiner) {
  if (finishes() || resigned() || !counts(joiner) || status_.leaves(joiner)) return;
  if (status_.word(joiner)->parameters != proposed()->draft.parameters) return;
  if (rarely(options_.rarely, "lead.take_nobody_in")) return;
  Plan plan = *proposed();
  plan.participants.push_back(joiner);
  mend_sites(plan, options_.segments, participants(plan));
  plan.draft.members = status_.next_members();
  propose_again(std::move(plan));
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
  note_settings(from, told);
  if (told.gave_seat) proposer_.expect_no_vote(from);
  if (heard == Proposer::Heard::late) return;
  status_.promised(from);
  advance();
}

// The peer is in the plan under way, or a member.
bool Lead::has_a_part(PeerId peer) const {
  if (stage() != Stage::proposed) return false;
  return status_.has_seat(peer) ||
         std::ranges::find(proposed()->participants, peer) != proposed()->participants.end();
}

std::size_t Lead::notes() const {
  return status_.notes() + leasing_.notes() + promises().size() + stragglers_.notes() + hand_overs_.notes() +
         settings_.size();
}

void Lead::ask_for_promises() {
  if (now_ < next_ask_) return;
  next_ask_ = now_ + kAskAgain;
  for (PeerId peer : status_.present()) {
    if (!proposer_.has_promised(peer)) send(peer, wire::Prepare{head_.round + 1, ballot()});
  }
}

void Lead::begin_when_promised() {
  const Proposer::Start start = proposer_.begin(minority_);
  if (start == Proposer::Start::bound) finish();
  if (start != Proposer::Start::open) return;
  bool was_called = false;
  for (const auto& [peer, promise] : promises()) was_called = was_called || promise.plan.has_value();
  // Contributions sent by the former leader's plan stay useful.
  if (const auto own = promises().find(options_.self.peer); own != promises().end() && own->second.plan)
    called_ = own->second.plan->sites.empty() ? std::make_shared<const Plan>(*own->second.plan) : nullptr;
  if (leasing_.take_over(status_, promises(), was_called)) tell_of_reissue(leasing_.free(), {});
}

void Lead::finish() {
  Plan plan = proposer_.bound()->plan;
  for (PeerId peer : status_.present()) {
    const bool named =
        std::find(plan.participants.begin(), plan.participants.end(), peer) != plan.participants.end();
    if (!named) plan.participants.push_back(peer);
  }
  serve_sealed(std::move(plan), proposer_.keepers());
}

void Lead::serve_sealed(Plan plan, const std::set<PeerId>& keepers) {
  TW_CHECK(!keepers.empty());
  auto keeper = keepers.begin();
  for (wire::Share& share : plan.shares) {
    const bool has_it = !finishes() && !relieved_ && counts(share.owner);
    if (keepers.contains(share.owner) || has_it) continue;
    share.owner = *keeper;
    share.sealed = true;
    if (++keeper == keepers.end()) keeper = keepers.begin();
  }
  std::erase_if(plan.participants, [&](PeerId peer) { return !counts(peer); });
  mend_sites(plan, options_.segments, participants(plan));
  propose(std::move(plan));
}

// The first bid of this leader for this round.
bool Lead::is_first_bid() const { return ballot() < head_.members.size(); }

void Lead::advance() {
  if (resigned()) return;
  if (stage() == Stage::preparing) begin_when_promised();
  if (stage() == Stage::open) {
    // While the call waits for settings alone, nobody's last work moves to others.
    const bool waits = leasing_.is_complete() && !knows_settings();
    if (!waits && leasing_.advance(now_, status_)) tell_of_reissue(leasing_.free(), {});
    send_leases();
    give_up_on_hopeless_work();
    if (resigned()) return;
    const bool is_complete = leasing_.is_complete() && knows_settings();
    if (is_complete && may_decide() && !leasing_.contributions(status_).empty()) call();
  }
  if (stage() == Stage::proposed && !resigned()) commit_when_agreed();
}

void Lead::send_leases() {
  for (wire::Envelope& envelope : leasing_.take_messages()) messages_.push_back(std::move(envelope));
}

// A majority is here, and so is the mean that this ballot may have to finish.
bool Lead::most_can_decide() const { return status_.has_quorum() && !proposer_.lacks_mean(); }

bool Lead::may_decide() const { return (minority_ || status_.has_quorum()) && !status_.owners().empty(); }

bool Lead::nobody_stays() const {
  return stage() == Stage::open && status_.word(options_.self.peer) != nullptr &&
         status_.next_members().empty();
}

/// Microbatches are left, and all peers that could compute them or reduce a share are out of this round or do
/// no work in it.
bool Lead::nobody_works() const {
  if (stage() != Stage::open) return false;
  const auto would = [&](PeerId peer) { return !status_.leaves(peer); };
  const bool all_given = !leasing_.has_free() || std::ranges::any_of(status_.eligible(), would);
  if (all_given && !status_.owners().empty()) return false;
  return std::ranges::any_of(head_.members, [&](const wire::Member& m) {
    const bool idles = !counts(m.peer) || status_.of(m.peer) == PeerStatus::Status::refused;
    return status_.is_seated(m.peer) && would(m.peer) && idles;
  });
}

/// Most peers here are refused, and microbatches are left: the others would compute for a multiple of the
/// round. Only in its first bid a leader asks everybody again: work may be refused for good reasons.
bool Lead::few_work() const {
  if (stage() != Stage::open || !is_first_bid() || !leasing_.has_free()) return false;
  const auto refused = [&](PeerId peer) { return status_.of(peer) == PeerStatus::Status::refused; };
  return 2 * std::ranges::count_if(status_.present(), refused) > std::ssize(status_.present());
}

wire::Record Lead::draft() const {
  wire::Record record = record_after(head_, options_.lease);
  record.parent = digest_of(head_);
  record.members = status_.next_members();
  record.contributors = leasing_.contributions(status_);
  for (const wire::Contribution& c : record.contributors) record.samples += c.samples;
  record.parameters = status_.word(options_.self.peer)->parameters;
  record.minority = minority_;
  record.last = last_;
  record.settings = settings_for(record.contributors);
  return record;
}

void Lead::call() {
  Plan plan;
  plan.draft = draft();
  if (plan.draft.members.empty()) return;  // step() sees who could go on
  plan.participants = status_.participants();
  if (proposed()) called_ = proposed();
  if (!called_) {
    divide(plan, options_.segments, participants(plan), options_.shares_before, options_.division);
  } else if (called_->sites.empty()) {
    plan.shares = reowned(called_->shares, plan);
  } else {
    divide_as_before(plan, *called_, participants(plan));
  }
  for (wire::Share& share : plan.shares) share.sealed = false;
  relieved_ = false;
  propose(std::move(plan));
  if (is_first_bid() && rarely(options_.rarely, "lead.resign_at_call")) proposer_.resign();
}

std::vector<Participant> Lead::participants(const Plan& plan) const {
  const std::vector<PeerId> owning = status_.owners();
  std::vector<Participant> participants;
  for (PeerId peer : plan.participants) {
    Participant participant{peer, std::find(owning.begin(), owning.end(), peer) != owning.end(), 0};
    for (const wire::Contribution& c : plan.draft.contributors)
      participant.contributions += c.peer == peer ? 1 : 0;
    participant.bandwidth = status_.stance(peer).bandwidth;
    if (const wire::Member* process = status_.process(peer)) participant.site = process->site;
    participants.push_back(std::move(participant));
  }
  return participants;
}

// The previous shares, with new owners for the shares of peers that may reduce no more.
std::vector<wire::Share> Lead::reowned(const std::vector<wire::Share>& before, const Plan& plan) const {
  const std::vector<PeerId> owning = status_.owners();
  RangeSet gone;
  for (const wire::Share& share : before) {
    if (std::find(owning.begin(), owning.end(), share.owner) == owning.end())
      gone.add(Range{share.first, share.count});
  }
  return moved(before, gone, participants(plan));
}

void Lead::propose(Plan plan, bool again) {
  continue_lineage(plan.draft, head_);
  plan.expected_s = to_seconds(expected_reduce(plan));
  stragglers_.planned(now_, again);
  const Plan& numbered = proposer_.propose(std::move(plan));
  for (PeerId peer : numbered.participants) send(peer, numbered);
}

// Debts keep their due times.
void Lead::propose_again(Plan plan) { propose(std::move(plan), true); }

void Lead::on_vote(PeerId from, const wire::Vote& vote) {
  if (!status_.is_reachable(from)) return;
  if (!proposer_.on_vote({from, {}, status_.incarnation(from), {}}, vote)) return;
  if (proposer_.votes() == 1 && rarely(options_.rarely, "lead.propose_again"))
    return propose_again(Plan(*proposed()));
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
      return mark_plan_of_few();
    case Outcome::agreed:
      break;
  }
  if (is_first_bid() && rarely(options_.rarely, "lead.resign_at_commit")) return proposer_.resign();
  proposer_.decide();
}

void Lead::mark_plan_of_few() {
  if (status_.would_have_quorum()) proposer_.resign();  // there are enough, but this plan does not name them
  if (minority_ && !resigned()) propose_without_majority();
}

// The leader that made this plan counted on members that are not here. If its record named them, the next
// round would wait for a majority of them again, and processes restarted in their place would be turned away.
void Lead::propose_without_majority() {
  Plan plan = *proposed();
  plan.draft.minority = true;
  const bool knows_the_state = status_.word(options_.self.peer) != nullptr;
  if (std::vector<wire::Member> here = knows_the_state ? status_.next_members() : std::vector<wire::Member>{};
      !here.empty()) {
    for (const wire::Member& m : here) {
      if (std::ranges::find(plan.participants, m.peer) == plan.participants.end())
        plan.participants.push_back(m.peer);
    }
    plan.draft.members = std::move(here);
    mend_sites(plan, options_.segments, participants(plan));
  }
  propose(std::move(plan));
}

void Lead::step(Instant now) {
  now_ = now;
  if (stage() == Stage::decided) return;
  if (stage() == Stage::preparing) ask_for_promises();
  if (most_can_decide()) {
    no_quorum_since_ = kNever;
  } else if (no_quorum_since_ == kNever) {
    no_quorum_since_ = now;
  }
  if (!status_.has_quorum() && status_.would_have_quorum()) {
    proposer_.resign();
  }  // they are back: a new ballot asks what they have
  if (nobody_stays() && !status_.uncounted().empty())
    proposer_.resign();  // the run is theirs: a new ballot counts them
  if (nobody_works() || few_work()) {
    proposer_.resign();
  }  // a new ballot asks everybody once more
  const bool is_of_few = stage() == Stage::proposed && proposed()->draft.minority && !finishes();
  if (is_of_few && most_can_decide()) proposer_.resign();  // a majority is back, and decides without a mark
  minority_ = no_quorum_since_ != kNever && now - no_quorum_since_ >= options_.patience;
  if (const auto verdict = stragglers_.judge(now, status_, proposer_)) carry_out(*verdict);
  give_up_on_hung_peers();
  let_leavers_go();
  advance();
}

Wait Lead::wait_for_majority() const {
  Wait wait{Wait::Kind::majority};
  for (const wire::Member& m : head_.members) {
    if (!counts(m.peer) || !status_.is_seated(m.peer)) wait.peers.push_back(m.peer);
  }
  if (wait.peers.empty()) wait.peers = {options_.self.peer};
  wait.round = head_.round;
  const Duration waited = no_quorum_since_ == kNever ? Duration{} : now_ - no_quorum_since_;
  wait.left = options_.patience - waited;
  return wait;
}

Wait Lead::wait_for_work() const {
  const std::size_t here = status_.present().size() + status_.candidates().size();
  const auto others = [&](auto&& among) {
    std::vector<PeerId> peers(among.begin(), among.end());
    std::erase(peers, options_.self.peer);
    return peers;
  };
  Wait wait{Wait::Kind::gradients, leasing_.holders(), head_.round + 1};
  if (nobody_stays()) {
    wait.peers = status_.uncounted();
    wait.kind = Wait::Kind::successor;
    if (!wait.peers.empty()) return wait;
    wait.kind = Wait::Kind::newcomer;
    std::ranges::copy_if(status_.present(), std::back_inserter(wait.peers),
                         [&](PeerId peer) { return status_.leaves(peer); });
  } else if (!leasing_.has_company(status_)) {
    wait.kind = Wait::Kind::company;
    wait.peers = others(status_.present());
    wait.done = here;
    wait.total = options_.wait_for;
    return wait;  // those who are not here have no names yet
  } else if (!leasing_.held_back_for().empty() && leasing_.has_free()) {
    wait.kind = Wait::Kind::held_back;
    wait.peers = leasing_.held_back_for();
  } else if (wait.peers.empty()) {
    wait.peers = others(status_.eligible());
    wait.kind = leasing_.has_free() && !wait.peers.empty() ? Wait::Kind::requests : Wait::Kind::readiness;
    if (wait.peers.empty()) wait.peers = others(status_.present());
  }
  if (wait.peers.empty()) wait.peers = {options_.self.peer};
  return wait;
}

Wait Lead::waiting() const {
  if (resigned() || stage() == Stage::decided) return {};
  if (!most_can_decide() && !minority_) return wait_for_majority();
  if (stage() == Stage::open) return wait_for_work();
  Wait wait{Wait::Kind::votes, {}, head_.round + 1, ballot()};
  if (stage() == Stage::preparing) {
    wait.kind = Wait::Kind::promises;
    std::ranges::copy_if(status_.present(), std::back_inserter(wait.peers),
                         [&](PeerId peer) { return !proposer_.has_promised(peer); });
  } else {
    std::ranges::copy_if(proposed()->participants, std::back_inserter(wait.peers),
                         [&](PeerId peer) { return counts(peer) && !proposer_.has_vote(peer); });
  }
  if (wait.peers.empty()) wait.peers = {options_.self.peer};
  return wait;
}

}  // namespace tw::swarm
