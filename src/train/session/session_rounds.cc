// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "swarm/leases/batch.h"
#include "train/session/session_machine.h"
#include "wire/frame.h"
#include "world/event_table.h"

namespace tw::train {
namespace {

using world::Phase;
using namespace std::chrono_literals;

/// After this many ballots that count on a contribution beyond the norm cap, the round has too few other
/// ones.
constexpr std::size_t kMostBallotsBeyondCap = 3;

/// Which samples of the run the mean has, by contributor, and the record that comes before.
std::vector<std::pair<std::string, std::string>> samples_in(const wire::Record& record,
                                                            const RunOptions& run) {
  const swarm::TargetBatch lease = {run.target_batch_size, run.microbatch, run.exact_batches};
  std::map<PeerId, RangeSet> samples;
  for (const wire::Contribution& c : record.contributors)
    if (c.samples > 0) samples[c.peer].add(samples_of(record, c.microbatches, lease));
  std::vector<std::pair<std::string, std::string>> texts = {{"parent", to_string(record.parent)}};
  for (const auto& [peer, of_peer] : samples)
    texts.emplace_back(fmt::format("{}{}", world::kSamplesOf, peer.value), to_string(of_peer));
  return texts;
}

}  // namespace

bool Session::Machine::open_round() {
  const std::optional<wire::Record>& head = swarm_->head();
  if (replica_.is_catching_up() || !head || head->last || step_.round == head->round + 1) return false;
  step_ = {head->round + 1, 0, digest_of(*head).high};
  if (replica_.found(*head) && observer_ != nullptr) {
    observer_->on_commit(*head);
    observer_->on_applied(*head, replica_.tip()->parameters, false);
  }
  worker_.open(step_.round);
  began_at_ = doors_.clock.now();
  if (replica_.tip() && worker_.updates_under_way() == 0) emit(Phase::accumulate, step_.round);
  const std::vector<average::Averager::Refused> refused = averager_.open(began_at_, step_);
  report_probe();
  for (const average::Averager::Refused& one : refused) refuse_bulk(one);
  return true;
}

// ---- work
// -----------------------------------------------------------------------------------------------------

// Once more after a hand-over that came to nothing: readers count each sample once.
void Session::Machine::tell_of_skipped(Round round) {
  for (const data::MissingSample& skipped : worker_.done().skipped)
    emit(Phase::skip, round, skipped.why, {{"sample", static_cast<double>(skipped.sample)}});
}

bool Session::Machine::start_work() {
  if (worker_.is_computing() || worker_.is_elsewhere() || replica_.is_catching_up() || step_.round == 0)
    return false;
  const std::optional<swarm::WorkItem> item = swarm_->begin_work(doors_.clock.now(), worker_.grain());
  if (!item) return false;
  begin_to_probe();
  worker_.work(*item, [this, item](const WorkDone& did) {
    if (did.missing) return cannot_work(*item, *did.missing);
    if (did.microbatches == 0) return swarm_->give_back(doors_.clock.now(), *item);
    swarm_->finish_work(doors_.clock.now(), *item, {did.microbatches, worker_.samples_per_s(), did.settings});
    contribute_what_is_done();
  });
  return true;
}

// Another peer may be able to read the sample. Reported once in a round: if no sample can be read, each item
// has one.
void Session::Machine::cannot_work(const swarm::WorkItem& item, const data::MissingSample& missing) {
  if (worker_.done().missing == 1)
    emit({.phase = Phase::reissue,
          .round = item.round,
          .why = "gives a sample to another peer: " + missing.why,
          .cause = world::Cause::sample});
  swarm_->give_back(doors_.clock.now(), item,
                    swarm::FailedSample{missing.sample, missing.why, missing.skippable});
}

// The compute thread belongs to a program. Its work goes to other peers, and it gets no more until it is
// back.
void Session::Machine::give_back(const std::optional<swarm::WorkItem>& item) {
  tell_where_the_worker_is();  // first, so that nothing is leased to this peer again
  if (item) swarm_->give_back(doors_.clock.now(), *item);
}

void Session::Machine::tell_where_the_worker_is() {
  const Instant now = doors_.clock.now();
  swarm_->set_presence(now, worker_.presence(now));
}

void Session::Machine::settle_when_ready() {
  if (replica_.state() == sync::Replica::State::settling && worker_.stands_ready())
    replica_.settled(doors_.clock.now(), others());
}

void Session::Machine::on_back() {
  tell_where_the_worker_is();
  settle_when_ready();
}

void Session::Machine::pause(bool paused) {
  if (finished() || !swarm_) return;
  if (paused) {
    give_back(worker_.pause());
  } else {
    worker_.resume();
    tell_where_the_worker_is();
  }
  pump();
}

void Session::Machine::contribute_what_is_done() {
  for (const wire::Contribution& due : averager_.due(step_)) {
    if (!swarm_->has_done_just(due.slot, due.microbatches)) continue;
    swarm_->close_slot(due.slot);
    const SlotValues values = values_of(due.slot);
    averager_.contribute(step_, due, values.sum, values.residual);
  }
}

SlotValues Session::Machine::values_of(std::uint32_t slot) {
  if (slot >= wire::kLeaseSlots) return {averager_.custody().sum(slot)};
  return worker_.contribution(slot);
}

// ---- sums that change hands
// ------------------------------------------------------------------------------------------

void Session::Machine::act(const swarm::HandOver& order) {
  std::vector<average::Custody::Sum> sums;
  for (const std::uint32_t slot : order.slots) sums.push_back({slot, values_of(slot).sum});
  averager_.custody().give(order.to, std::move(sums));
  tell_of_skipped(step_.round);  // it may be gone when the round is committed
  doors_.network.pull(order.to);
}

bool Session::Machine::go_on_handing_over() {
  if (!averager_.custody().take_given()) return false;
  swarm_->handed_over(doors_.clock.now());
  return true;
}

bool Session::Machine::keep_what_came() {
  bool kept = false;
  while (const std::optional<average::Custody::Whole> whole = averager_.custody().take_whole()) {
    const std::vector<std::uint32_t> slots = swarm_->keep(doors_.clock.now(), whole->from, whole->entrust);
    for (std::size_t i = 0; i < slots.size(); ++i)
      averager_.custody().keep(whole->from, whole->entrust.slots[i].slot, slots[i]);
    kept = true;
  }
  return kept;
}

// ---- averaging
// ------------------------------------------------------------------------------------------------

void Session::Machine::act(const swarm::Reduce& reduce) {
  open_round();
  const Instant now = doors_.clock.now();
  averager_.custody().call_off();
  if (!averager_.adopt(now, reduce.plan, began_at_)) return;
  Numbers numbers = {{"calc_s", to_seconds(now - began_at_)},
                     {"members", static_cast<double>(reduce.plan->participants.size())},
                     {"contributions", static_cast<double>(reduce.plan->draft.contributors.size())},
                     {"ballot", reduce.plan->ballot},
                     {"version", reduce.plan->version}};
  if (const double bound_s = swarm_->least_reduce_s(*reduce.plan); bound_s > 0)
    numbers.emplace_back("bound_s", bound_s);
  emit(Phase::call, step_.round, {}, std::move(numbers));
  contribute_what_is_done();
}

void Session::Machine::act(const swarm::SendAgain& again) { averager_.on_new_link(again.peer); }

void Session::Machine::begin_to_probe() {
  const std::vector<PeerId> targets = averager_.begin_probe(doors_.clock.now(), swarm_->head()->members);
  for (const PeerId target : targets) doors_.network.pull(target);
}

void Session::Machine::report_probe() {
  const std::optional<wire::Bandwidth> line = averager_.take_probed();
  if (!line) return;
  emit(Phase::probe, step_.round, {},
       {{"up_mbit_s", line->up_bytes_per_s * 8e-6}, {"down_mbit_s", line->down_bytes_per_s * 8e-6}});
}

void Session::Machine::refuse_bulk(const average::Averager::Refused& refused) {
  if (refused.nonsense) return hang_up_on(refused.from, refused.why);
  refuse(world::Cause::message, refused.from, refused.why);
}

bool Session::Machine::report_averaging() {
  const std::vector<average::Reduction::Unfit> all_unfit = averager_.take_unfit(step_);
  for (const average::Reduction::Unfit& unfit : all_unfit) {
    if (unfit.peer == options_.self) own_contribution_is_unfit(unfit);
    if (finished()) return false;
    swarm_->report_stall(doors_.clock.now(), unfit.peer, unfit.why);
  }
  const Instant now = doors_.clock.now();
  const average::Averager::News news = averager_.take_news(step_);
  const double since_call_s = to_seconds(now - averager_.called_at(step_));
  if (news.scattered) emit(Phase::scatter, step_.round, {}, {{"since_call_s", since_call_s}});
  if (news.gathered) emit(Phase::gather, step_.round, {}, {{"since_call_s", since_call_s}});
  if (news.mean) swarm_->completed(now, *news.mean);
  return news.scattered || news.gathered || news.mean || !all_unfit.empty();
}

void Session::Machine::own_contribution_is_unfit(const average::Reduction::Unfit& unfit) {
  if (unfit.why == wire::StallCause::not_finite) {
    return end(fmt::format("the gradient of round {} is not finite: the training has diverged (a lower "
                           "learning rate?) or the data holds such values",
                           step_.round),
               true);
  }
  const std::string what = fmt::format(
      "the gradient of round {} has a norm of at least {:.6g} per sample, beyond training.norm_cap {:g}",
      step_.round, unfit.norm, options_.run.norm_cap);
  if (averager_.ballots_beyond_cap(step_) < kMostBallotsBeyondCap) {
    return emit(Phase::refuse, step_.round, what + ": the round goes on without it");
  }
  end(what +
          ", and too few other peers remain for the round to go on without it: the training has diverged "
          "(a lower learning rate?), or the cap is too small for this model",
      true);
}

void Session::Machine::report_stall() {
  const Instant now = doors_.clock.now();
  const auto round_trip = [this](PeerId peer) { return swarm_->round_trip(peer); };
  for (const average::Averager::Objection& objection : averager_.objections(now, step_, round_trip)) {
    swarm_->report_stall(now, objection.suspect, objection.why, objection.missing);
    if (objection.send_again)
      doors_.network.send(objection.suspect,
                          encode(wire::StallReport{step_, objection.suspect, wire::StallCause::send_again}));
  }
}

// ---- updates
// --------------------------------------------------------------------------------------------------

void Session::Machine::act(const swarm::Committed& committed) {
  const wire::Record& record = committed.record;
  TW_CHECK(averager_.complete(step_));
  // A leader that is alone decides as soon as it has reported the samples that it leaves over.
  for (const world::Event& event : swarm_->take_events_until(record.round)) doors_.events.emit(event);
  const Instant now = doors_.clock.now();
  const double own = own_samples(record);
  // The call comes while the last microbatches are under way: until they are done it is calculation.
  const Instant called_at = averager_.called_at(step_);
  const Instant averaging_since =
      std::max({called_at == kNever ? now : called_at, worker_.done().until, began_at_});
  std::vector<std::pair<std::string, double>> numbers = {
      {"samples", own},
      {"samples_total", static_cast<double>(record.samples_total())},
      {"majority_samples", static_cast<double>(record.majority_samples)},
      {"carried", static_cast<double>(record.carried.count())},
      {"members", static_cast<double>(record.members.size())},
      {"calc_s", to_seconds(averaging_since - began_at_)},
      {"comm_s", to_seconds(now - averaging_since)}};
  if (record.last) numbers.emplace_back("last", 1);
  if (const Worker::Done& done = worker_.done(); done.loss_samples > 0)
    numbers.emplace_back("loss", done.loss_sum / static_cast<double>(done.loss_samples));
  world::Event event{now, Phase::commit, record.round};
  if (record.minority) {
    event.why = "without a majority";
    event.cause = world::Cause::minority;
  }
  event.numbers = std::move(numbers);
  event.digest = to_string(digest_of(record));
  for (const wire::Contribution& c : record.contributors) {
    if (c.samples > 0 && std::ranges::find(event.peers, c.peer) == event.peers.end())
      event.peers.push_back(c.peer);
  }
  event.texts = samples_in(record, options_.run);
  doors_.events.emit(event);
  tell_of_traffic(false);
  const auto is_own = [&](const wire::Contribution& c) { return c.peer == options_.self; };
  if (std::ranges::any_of(record.contributors, is_own)) tell_of_skipped(record.round);
  if (observer_ != nullptr) observer_->on_commit(record);

  average::Averager::Mean mean = averager_.finish(step_, record.contributors);
  swarm_->measured(averager_.bandwidth());
  // After the last round no peer is left to fetch the state from.
  if (worker_.updates_under_way() >= SessionView::kMostWaitingUpdates && !record.last)
    return swarm_->fall_behind(now, "its updates wait for its own work");
  replica_.commit(record, mean.segments);
  std::map<std::uint32_t, average::GradientSum> kept;
  for (const wire::Contribution& c : mean.own) {
    if (c.slot >= wire::kLeaseSlots) kept[c.slot] = averager_.custody().sum(c.slot);
  }
  worker_.apply(
      {record, std::move(mean.segments), std::move(mean.own), false, std::move(kept)},
      [this, record](const Digest& parameters, Duration took) { on_update(record, parameters, took); });
  after_update(record);
  tell_where_the_worker_is();
}

void Session::Machine::on_update(const wire::Record& record, const Digest& parameters, Duration took) {
  replica_.applied(record.round, parameters);
  world::Event event{doors_.clock.now(), Phase::apply, record.round};
  event.numbers = {{"took_s", to_seconds(took)}};
  event.digest = to_string(parameters);
  event.texts = of_record(record, false);
  doors_.events.emit(event);
  if (observer_ != nullptr) observer_->on_applied(record, parameters, false);
  tell_where_the_worker_is();  // first, so that what it reports asks for work
  swarm_->applied(doors_.clock.now(), record.round, parameters);
  if (record.last && !finished()) departure_.stand_at(true);
  if (step_.round == record.round + 1) {
    began_at_ = doors_.clock.now();
    emit(Phase::accumulate, step_.round);
  }
  settle_when_ready();
  finish_when_done();
}

void Session::Machine::after_update(const wire::Record& record) {
  const bool first = !record.members.empty() && record.members.front().is(self());
  if (first && checkpoints_.is_due(record) && swarm_->anchors().empty() && checkpoints_.asks_for_anchor())
    emit({.phase = Phase::copy,
          .round = record.round,
          .why = "checkpoint.to is set, but no peer is an anchor (tw run --role anchor): nothing is copied",
          .cause = world::Cause::failed});
  copy_checkpoint(false);
  if (checkpoints_.is_due(record)) save_checkpoint(record);
}

void Session::Machine::finish_when_done() {
  if (!departure_.at_the_end() || departure_.has_last_jobs() || worker_.updates_under_way() > 0 ||
      replica_.is_catching_up())
    return;
  // A peer that missed the last decision cannot fetch it once all have left. A peer that says so may have a
  // busy thread before it asks.
  const Instant now = doors_.clock.now();
  const std::vector<PeerId> missing = swarm_->not_at_the_end();
  const bool needed =
      std::ranges::any_of(missing, [this](PeerId peer) { return swarm_->roster().fetches(peer); });
  if (departure_.linger(now, !missing.empty(), needed ? now : replica_.asked_at()))
    end(is_drained() ? "the run is over: its budget is spent" : "the run is complete", false);
}

/// Its budget is spent before its last round.
bool Session::Machine::is_drained() const {
  const RunOptions& run = options_.run;
  const bool early = swarm_->head() && swarm_->head()->round < run.rounds;
  return early && run.budget.usd && run.budget.action == BudgetAction::drain;
}

double Session::Machine::own_samples(const wire::Record& record) const {
  double samples = 0;
  for (const wire::Contribution& c : record.contributors) {
    if (c.peer == options_.self) samples += static_cast<double>(c.samples);
  }
  return samples;
}

}  // namespace tw::train
