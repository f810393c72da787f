// SPDX-License-Identifier: Apache-2.0
#include "swarm/following.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "swarm/ballots/validation.h"
#include "swarm/leases/batch.h"

namespace tw::swarm {
namespace {

bool lacks_of(const wire::Plan& plan, PeerId peer, const Work& work) {
  return std::ranges::any_of(plan.draft.contributors, [&](const wire::Contribution& c) {
    return c.peer == peer && !work.does_all_of(c.slot, c.microbatches);
  });
}

/// The microbatch among these, of the record's round, that holds the sample.
std::optional<std::uint64_t> microbatch_of(std::uint64_t sample, RangeSet among, const wire::Record& record,
                                           const LeaseBook::Options& lease) {
  while (!among.empty()) {
    const RangeSet one = among.take(1);
    if (samples_of(record, one, lease).contains(sample)) return one.ranges().front().first;
  }
  return std::nullopt;
}

}  // namespace

// ---- from a leader

bool Following::may_follow(PeerId from, Ballot ballot) {
  if (!core_.takes_part()) return false;
  const Acceptor::Answer answer =
      core_.acceptor.answer(core_.members(), core_.membership.process(from), ballot);
  if (answer == Acceptor::Answer::bid_higher) {
    core_.send(from,
               wire::Promise{core_.acceptor.promised(), announcing_.progress(), std::nullopt, std::nullopt});
  }
  return answer == Acceptor::Answer::follow;
}

std::optional<CatchUp> Following::take(PeerId from, const wire::Lease& lease) {
  if (!core_.of_this_round(lease.round) || !may_follow(from, lease.ballot) || core_.part.leaves())
    return std::nullopt;
  if (!core_.work.is_news(lease.ballot, lease.number)) return std::nullopt;
  const RangeSet all(Range{0, core_.batch().microbatches()});
  const bool sound = lease.slot < wire::kLeaseSlots && !lease.microbatches.empty();
  if (!sound || !all.contains(lease.microbatches)) return std::nullopt;
  if (!core_.work.lease(lease.slot, lease.microbatches, lease.moved_on))
    return CatchUp{"the leader does not know what this peer has sent"};
  if (core_.has_moved_on() && !lease.moved_on) {
    give_back_queued();  // the leader does not know that the round was called
    return std::nullopt;
  }
  if (announcing_.own().is_here() || core_.acceptor.stage() != Acceptor::Stage::idle) return std::nullopt;
  core_.work.drop_queued();  // the lease came after this peer became busy: others get it
  announcing_.send_progress(true);
  return std::nullopt;
}

void Following::take(PeerId from, const wire::Recall& recall) {
  if (!core_.of_this_round(recall.round) || !may_follow(from, recall.ballot)) return;
  if (!core_.work.is_news(recall.ballot, recall.number)) return;
  core_.work.drop_queued();
  announcing_.send_progress(true);
}

std::optional<CatchUp> Following::take(PeerId from, const wire::Plan& plan) {
  const History& history = core_.history;
  if (!history.continues(plan.draft) || !may_follow(from, plan.ballot)) return std::nullopt;
  if (history.parameters() && plan.draft.parameters != *history.parameters())
    return CatchUp{"its parameters differ from those of the leader", true};
  if (!fault_of(plan.draft, *core_.head(), core_.options.lease).empty() || !core_.acceptor.take(plan))
    return std::nullopt;
  core_.last_round.called(core_.now);
  core_.farewell.call_off();
  core_.outputs.ask_owner(Reduce{core_.acceptor.plan()});
  look_ahead(plan.draft);
  for (const wire::Contribution& c : plan.draft.contributors) {
    if (c.peer == core_.options.self.peer) do_what_counts(from, c);
  }
  return std::nullopt;
}

// What it computed under leases that the record will not name is dropped.
void Following::look_ahead(const wire::Record& draft) {
  RangeSet own;
  for (const wire::Contribution& c : draft.ahead)
    if (c.peer == core_.options.self.peer) own = c.microbatches;
  if (core_.next_work && !core_.next_work->has_other_than(0, own)) {
    core_.next_work->lease(0, own);  // again, what was dropped
    return;
  }
  core_.next_work.reset();
  if (own.empty() || core_.part.leaves()) return;
  core_.next_work.emplace(draft.round + 1);
  core_.next_work->lease(0, own);
}

// The rest was dropped on leaving, or its lease was lost. When a busy peer will compute it is unknown.
void Following::do_what_counts(PeerId leader, const wire::Contribution& own) {
  const bool must_be_there = !announcing_.own().is_here() || core_.has_moved_on() ||
                             own.slot >= wire::kLeaseSlots;  // sums of others are not made here
  const bool lacks_it = must_be_there && !core_.work.has_done_just(own.slot, own.microbatches);
  if (lacks_it || core_.work.has_other_than(own.slot, own.microbatches)) {
    core_.send(leader,
               wire::StallReport{{core_.head()->round + 1}, own.peer, wire::StallCause::owes_contribution});
  } else {
    core_.work.lease(own.slot, own.microbatches);
  }
}

void Following::take(PeerId from, const wire::Prepare& prepare) {
  if (!core_.of_this_round(prepare.round) || !may_follow(from, prepare.ballot)) return;
  core_.acceptor.promise(prepare.ballot);
  core_.work.drop_queued();
  announcing_.tell_failures(from);
  core_.send(from, core_.acceptor.word(prepare.ballot, announcing_.progress()));
}

// ---- from the owner

// What is leased of the round under way comes first, also where it was leased once more after the call.
std::optional<WorkItem> Following::begin_work(std::uint64_t most) {
  announcing_.computes_at_once(most);
  if (!core_.takes_part() || !core_.history.parameters() || !announcing_.own().is_here()) return std::nullopt;
  if (core_.work.queued() > 0 && rarely(core_.options.rarely, "swarm.late_work")) return std::nullopt;
  const std::uint64_t at_once = most == 0 ? core_.options.lease.most_microbatches() : announcing_.own().grain;
  if (std::optional<WorkItem> item = core_.work.begin(at_once)) return with_samples(*std::move(item));
  if (!core_.next_work || !core_.work.has_nothing_to_do() || !core_.acceptor.averages()) return std::nullopt;
  std::optional<WorkItem> item = core_.next_work->begin(at_once);
  if (!item) return std::nullopt;
  item->moved_on = true;
  return with_samples(*std::move(item));
}

WorkItem Following::with_samples(WorkItem item) const {
  const LeaseBook::Options& lease = core_.options.lease;
  const Work& work = *core_.work_of(item.round);
  const wire::Record round = record_of(item.round);
  item.samples = samples_of(round, item.microbatches, lease);
  if (work.queued() > 0) item.ahead = samples_of(round, work.waiting(), lease);
  return item;
}

// With its round and batch.
wire::Record Following::record_of(Round round) const {
  wire::Record under_way = record_after(*core_.head(), core_.options.lease);
  const SharedPlan& plan = core_.acceptor.plan();
  if (plan && plan->draft.round == under_way.round) under_way.batch = plan->draft.batch;
  return round == under_way.round ? under_way : record_after(under_way, core_.options.lease);
}

bool Following::finish_work(const WorkItem& item, const Finished& finished) {
  announcing_.computed(finished.samples_per_s, finished.settings);
  Work* const work = core_.work_of(item.round);
  if (work == nullptr || !work->is_under_way(item)) return false;
  work->finish(finished.microbatches);
  if (!announcing_.own().is_here() && work->queued() > 0) {
    work == &core_.work ? give_back_queued() : work->drop_queued();
  } else if (core_.work.wants_more() || !finished.settings.empty()) {
    announcing_.send_progress(core_.part.leaves());
  }
  return true;
}

// If a plan counts on what was held, the leader has to know that it will not come.
bool Following::give_back(const WorkItem& item, const std::optional<FailedSample>& failed) {
  Work* const work = core_.work_of(item.round);
  if (work == nullptr || !work->is_under_way(item)) return false;
  work->finish(0);
  if (failed) {
    const auto microbatch =
        microbatch_of(failed->sample, item.microbatches, record_of(item.round), core_.options.lease);
    if (microbatch) {
      work->fail(*microbatch,
                 {failed->sample, failed->why.substr(0, wire::kMostFailureBytes), failed->skippable});
    }
  }
  work == &core_.work ? give_back_queued() : work->drop_queued();
  return true;
}

void Following::give_back_queued() {
  core_.work.drop_queued();
  announcing_.send_progress(true);
  const PeerId self = core_.options.self.peer;
  if (core_.acceptor.averages() && core_.leader() && lacks_of(*core_.acceptor.plan(), self, core_.work)) {
    const StepId step = core_.acceptor.plan()->step();
    core_.send(*core_.leader(), wire::StallReport{step, self, wire::StallCause::owes_contribution});
  }
}

bool Following::set_presence(wire::Presence presence) {
  if (!announcing_.set_presence(presence)) return false;
  announcing_.tell_peer_state();
  if (!announcing_.own().is_here() && core_.next_work) core_.next_work->drop_queued();
  if (!announcing_.own().is_here() && core_.work.queued() > 0) {
    give_back_queued();
  } else {
    announcing_.send_progress();
  }
  return true;
}

void Following::report_stall(PeerId suspect, wire::StallCause cause, RangeSet missing) {
  TW_CHECK(core_.takes_part());
  if (const std::optional<PeerId> leads = core_.leader())
    core_.send(*leads, wire::StallReport{{core_.head()->round + 1}, suspect, cause, std::move(missing)});
}

}  // namespace tw::swarm
