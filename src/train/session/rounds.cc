// SPDX-License-Identifier: Apache-2.0
#include "train/session/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "swarm/leases/batch.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

using namespace std::chrono_literals;

/// After this many ballots that count on a contribution beyond the norm cap, the round has too few other
/// ones.
constexpr std::size_t kMostBallotsBeyondCap = 3;

/// Which samples of the run the mean has, by contributor.
event::TextsOf samples_in(const wire::Record& record, const RunOptions& run) {
  const swarm::TargetBatch lease = run.target_batch();
  std::map<PeerId, RangeSet> samples;
  for (const wire::Contribution& c : record.contributors)
    if (c.samples > 0) samples[c.peer].add(samples_of(record, c.microbatches, lease));
  event::TextsOf texts;
  for (const auto& [peer, of_peer] : samples) texts.emplace_back(peer, to_string(of_peer));
  return texts;
}

event::Batch choice_in(const wire::Record& record) {
  if (!record.batch) return {};
  return {.batch = record.batch->samples,
          .next_batch = record.batch->next,
          .averaging_s = record.batch->averaging_s,
          .samples_per_s = record.batch->samples_per_s,
          .at_once = record.batch->at_once};
}

std::uint64_t samples_of_peer(const wire::Record& record, PeerId peer) {
  std::uint64_t samples = 0;
  for (const wire::Contribution& c : record.contributors)
    if (c.peer == peer) samples += c.samples;
  return samples;
}

average::Averager::Options averaging(const SessionOptions& options, const average::Fragments& fragments) {
  const RunOptions& run = options.run;
  return {options.self,
          fragments,
          run.codec,
          run.dithers(),
          run.norm_cap,
          options.averaging.probe_from,
          options.averaging.threads,
          options.rarely};
}

}  // namespace

Rounds::Rounds(Core& core, Recovery& recovery, Saving& saving)
    : core_(core),
      recovery_(recovery),
      saving_(saving),
      averager_(averaging(core.options, core.fragments())) {}

std::optional<std::vector<average::Averager::Refused>> Rounds::open() {
  const std::optional<wire::Record>& head = core_.swarm.head();
  sync::Replica& replica = recovery_.replica();
  if (replica.is_catching_up() || !head || head->last || step_.round == head->round + 1) return std::nullopt;
  step_ = {head->round + 1, digest_of(*head).high};
  core_.round = step_.round;
  hand_over_.reset();
  if (replica.found(*head) && core_.observer != nullptr) {
    core_.observer->on_commit(*head);
    core_.observer->on_applied(*head, replica.tip()->parameters, false);
  }
  core_.worker.open(step_.round);
  began_at_ = core_.clock.now();
  if (core_.worker.done().since != Instant{}) began_at_ = core_.worker.done().since;
  if (replica.tip() && !is_updating(core_.worker))
    core_.events.emit({.round = step_.round, .fact = event::Accumulate{}});
  std::vector<average::Averager::Refused> refused = averager_.open(core_.clock.now(), step_);
  report_probe();
  return refused;
}

void Rounds::abandon() {
  TW_CHECK(!core_.departure.ended());
  averager_.abandon();
  hand_over_.reset();
  step_ = {};
  core_.round = 0;
}

// ---- links and time

void Rounds::on_bytes(PeerId from, std::size_t bytes, bool chunk) {
  if (const auto bandwidth_report = averager_.on_bytes(core_.clock.now(), from, bytes, chunk))
    core_.network.send(from, encode(*bandwidth_report));
}

bool Rounds::on_message(PeerId from, const wire::Message& message,
                        std::optional<average::Averager::Refused>& refused) {
  const Instant now = core_.clock.now();
  if (std::holds_alternative<wire::Scatter>(message) || std::holds_alternative<wire::Gather>(message)) {
    refused = averager_.on_bulk(now, from, message);
    report_probe();
  } else if (const auto* segment = std::get_if<wire::EntrustedSum>(&message)) {
    const Status taken = averager_.custody().on_segment(from, *segment);
    if (!taken.ok()) core_.refuse(event::Cause::message, from, taken.error().message);
  } else if (const auto* entrust = std::get_if<wire::Entrust>(&message)) {
    averager_.custody().on_entrust(from, *entrust);
  } else if (const auto* bandwidth_report = std::get_if<wire::BandwidthReport>(&message)) {
    if (averager_.on_bandwidth_report(now, from, *bandwidth_report,
                                      core_.swarm.view().membership.round_trip(from)))
      core_.network.pull(from);
  } else if (std::holds_alternative<wire::Padding>(message)) {
    averager_.on_padding(now, from);
  } else {
    return false;
  }
  return true;
}

// Segments go before chunks of a state, and padding only where there is nothing else.
std::optional<wire::Message> Rounds::next_bulk(PeerId to) {
  std::optional<wire::Message> message = averager_.next_segment(to);
  report_probe();
  const Instant now = core_.clock.now();
  if (!message) message = recovery_.replica().next_chunk(to, now < averager_.has_lines_until());
  if (!message) message = averager_.next_padding(now, to);
  if (message) averager_.handed(now, to);
  return message;
}

void Rounds::tick() {
  const Instant now = core_.clock.now();
  for (const PeerId target : averager_.step(now)) core_.network.pull(target);
  report_probe();
  report_stall();
  look_for_company();
  if (const std::optional<swarm::WorkItem> late = core_.worker.take_back_when_late(now)) give_back(late);
  report_presence();
}

// One that leaves does not wait for its program, either.
void Rounds::look_for_company() {
  const bool is_alone = core_.swarm.view().membership.roster().open_peers().empty();
  core_.worker.set_company(!is_alone || core_.departure.stage() != Departure::Stage::running);
}

void Rounds::report_traffic(bool at_once) {
  const Instant now = core_.clock.now();
  if (core_.stores) core_.network.asked(core_.stores());
  auto traffic = at_once ? core_.network.rest(now) : core_.network.due(now);
  if (!traffic) return;
  traffic->bandwidth = bandwidth_facts(averager_.bandwidth());
  core_.events.emit({.at = now, .round = step_.round, .fact = std::move(*traffic)});
}

// ---- work

// Once more after a hand-over that came to nothing: readers count each sample once.
void Rounds::report_skipped(Round round) {
  for (const data::MissingSample& skipped : core_.worker.done().skipped)
    core_.events.emit({.round = round, .why = skipped.why, .fact = event::Skip{.sample = skipped.sample}});
}

bool Rounds::start_work() {
  if (core_.worker.is_computing() || core_.worker.is_elsewhere() || recovery_.replica().is_catching_up() ||
      step_.round == 0)
    return false;
  const std::optional<swarm::WorkItem> item = core_.swarm.begin_work(core_.clock.now(), core_.worker.grain());
  if (!item) return collect_ahead();
  begin_to_probe();
  core_.worker.work(*item, [this, item](const WorkDone& did) {
    if (did.missing) return cannot_work(*item, *did.missing);
    if (did.microbatches == 0) return core_.swarm.give_back(core_.clock.now(), *item);
    core_.swarm.finish_work(core_.clock.now(), *item,
                            {did.microbatches, core_.worker.samples_per_s(), did.settings});
    contribute_what_is_done();
  });
  return true;
}

// The thread would wait for the averaging: the sum of the next round is ready when that one is called.
bool Rounds::collect_ahead() {
  const bool waits = core_.options.run.overlaps() && core_.worker.state() == Worker::State::idle;
  return waits && !collect(step_.round + 1);
}

// Another peer may be able to read the sample. Reported once in a round: if no sample can be read, each item
// has one.
void Rounds::cannot_work(const swarm::WorkItem& item, const data::MissingSample& missing) {
  if (core_.worker.done_of(item.round).missing == 1)
    core_.events.emit({.round = item.round,
                       .why = "gives a sample to another peer: " + missing.why,
                       .fact = event::Reissue{.cause = event::Cause::sample}});
  core_.swarm.give_back(core_.clock.now(), item,
                        swarm::FailedSample{missing.sample, missing.why, missing.skippable});
}

// The compute thread belongs to a program. Its work goes to other peers, and it gets no more until it is
// back.
void Rounds::give_back(const std::optional<swarm::WorkItem>& item) {
  report_presence();  // first, so that nothing is leased to this peer again
  if (item) core_.swarm.give_back(core_.clock.now(), *item);
}

void Rounds::report_presence() {
  const Instant now = core_.clock.now();
  core_.swarm.set_presence(now, core_.worker.presence(now));
}

void Rounds::on_back() {
  report_presence();
  recovery_.settle_when_ready();
}

void Rounds::pause(bool paused) {
  contribute_what_is_done();  // the program's thread has handed in what it had
  if (paused) return give_back(core_.worker.pause());
  core_.worker.resume();
  report_presence();
}

// A contribution has what the rounding of the last ones took (error feedback): collect() waits for that.
void Rounds::contribute_what_is_done() {
  if (!core_.swarm.view().history.parameters()) return;
  for (const wire::Contribution& due : averager_.due(step_)) {
    if (!core_.swarm.view().work.has_done_just(due.slot, due.microbatches)) continue;
    if (!collect(step_.round)) return;
    core_.swarm.work().close(due.slot);  // before any byte of it is sent: all owners get the same sum (I4)
    const SlotValues values = values_of(due.slot);
    averager_.contribute(step_, due, values.sum, values.residual);
  }
}

// The compute thread may still have a part.
bool Rounds::collect(Round round) {
  return core_.worker.collect(round, [this] {
    contribute_what_is_done();
    if (const auto order = std::exchange(hand_over_, {})) act(*order);
  });
}

SlotValues Rounds::values_of(std::uint32_t slot) {
  if (slot >= wire::kLeaseSlots) return {averager_.custody().sum(slot)};
  return core_.worker.contribution(step_.round, slot);
}

// ---- sums that change hands

void Rounds::act(const swarm::HandOver& order) {
  if (!collect(step_.round)) {
    hand_over_ = order;
    return;
  }
  std::vector<average::Custody::Sum> sums;
  for (const std::uint32_t slot : order.slots) sums.push_back({slot, values_of(slot).sum});
  averager_.custody().give(order.to, std::move(sums));
  report_skipped(step_.round);  // it may be gone when the round is committed
  core_.network.pull(order.to);
}

bool Rounds::go_on_handing_over() {
  if (!averager_.custody().take_given()) return false;
  core_.swarm.handed_over(core_.clock.now());
  return true;
}

bool Rounds::keep_what_came() {
  bool kept = false;
  while (const std::optional<average::Custody::Whole> whole = averager_.custody().take_whole()) {
    const std::vector<std::uint32_t> slots = core_.swarm.keep(core_.clock.now(), whole->from, whole->entrust);
    for (std::size_t i = 0; i < slots.size(); ++i)
      averager_.custody().keep(whole->from, whole->entrust.slots[i].slot, slots[i]);
    kept = true;
  }
  return kept;
}

// ---- averaging

void Rounds::act(const swarm::Reduce& reduce) {
  const Instant now = core_.clock.now();
  averager_.custody().call_off();
  if (!averager_.adopt(now, reduce.plan, began_at_)) return;
  event::Call call{.calc_s = to_seconds(now - began_at_),
                   .members = reduce.plan->participants.size(),
                   .contributions = reduce.plan->draft.contributors.size(),
                   .ballot = reduce.plan->ballot,
                   .version = reduce.plan->version};
  if (const double bound_s = core_.swarm.leading().least_reduce_s(*reduce.plan); bound_s > 0)
    call.bound_s = bound_s;
  core_.events.emit({.round = step_.round, .fact = std::move(call)});
  contribute_what_is_done();
}

void Rounds::begin_to_probe() {
  const std::vector<PeerId> targets = averager_.begin_probe(core_.clock.now(), core_.swarm.head()->members);
  for (const PeerId target : targets) core_.network.pull(target);
}

void Rounds::report_probe() {
  const std::optional<wire::Bandwidth> line = averager_.take_probed();
  if (!line) return;
  core_.events.emit({.round = step_.round,
                     .fact = event::Probe{.bandwidth = {.up_mbit_s = line->up_bytes_per_s * 8e-6,
                                                        .down_mbit_s = line->down_bytes_per_s * 8e-6}}});
}

bool Rounds::report_averaging() {
  const std::vector<average::Unfit> all_unfit = averager_.take_unfit(step_);
  for (const average::Unfit& unfit : all_unfit) {
    if (unfit.peer == core_.options.self) own_contribution_is_unfit(unfit);
    if (core_.departure.ended()) return false;
    core_.swarm.report_stall(core_.clock.now(), unfit.peer, unfit.why);
  }
  const Instant now = core_.clock.now();
  const average::Averager::News news = averager_.take_news(step_);
  const double since_call_s = to_seconds(now - averager_.called_at(step_));
  if (news.scattered)
    core_.events.emit({.round = step_.round, .fact = event::Scatter{.since_call_s = since_call_s}});
  if (news.gathered)
    core_.events.emit({.round = step_.round, .fact = event::Gather{.since_call_s = since_call_s}});
  if (news.mean) core_.swarm.completed(now, *news.mean);
  return news.scattered || news.gathered || news.mean || !all_unfit.empty();
}

void Rounds::own_contribution_is_unfit(const average::Unfit& unfit) {
  if (unfit.why == wire::StallCause::not_finite) {
    return core_.departure.fail(
        fmt::format("the gradient of round {} is not finite: the training has diverged (a lower "
                    "learning rate?) or the data holds such values",
                    step_.round));
  }
  const std::string what = fmt::format(
      "the gradient of round {} has a norm of at least {:.6g} per sample, beyond training.norm_cap {:g}",
      step_.round, unfit.norm, core_.options.run.norm_cap);
  if (averager_.ballots_beyond_cap(step_) < kMostBallotsBeyondCap) {
    return core_.events.emit(
        {.round = step_.round, .why = what + ": the round goes on without it", .fact = event::Refuse{}});
  }
  core_.departure.fail(
      what +
      ", and too few other peers remain for the round to go on without it: the training has diverged "
      "(a lower learning rate?), or the cap is too small for this model");
}

void Rounds::report_stall() {
  const Instant now = core_.clock.now();
  const auto round_trip = [this](PeerId peer) { return core_.swarm.view().membership.round_trip(peer); };
  for (const average::Averager::Objection& objection : averager_.objections(now, step_, round_trip)) {
    core_.swarm.report_stall(now, objection.suspect, objection.why, objection.missing);
    if (objection.send_again)
      core_.network.send(objection.suspect,
                         encode(wire::StallReport{step_, objection.suspect, wire::StallCause::send_again}));
  }
}

// ---- updates

void Rounds::act(const swarm::Committed& committed) {
  const wire::Record& record = committed.record;
  TW_CHECK(record.round == step_.round && averager_.complete(step_));  // I2: the mean is here
  // A leader that is alone decides as soon as it has reported the samples that it leaves over.
  for (const world::Event& event : core_.swarm.outputs().take_events_until(record.round))
    core_.events.emit(event);
  const Instant now = core_.clock.now();
  report_commit(record);
  report_traffic(false);
  const auto is_own = [&](const wire::Contribution& c) { return c.peer == core_.options.self; };
  if (std::ranges::any_of(record.contributors, is_own)) report_skipped(record.round);
  if (core_.observer != nullptr) core_.observer->on_commit(record);

  average::Averager::Mean mean = averager_.finish(step_, record.contributors);
  core_.swarm.announcing().measured(averager_.bandwidth());
  // After the last round no peer is left to fetch the state from.
  if (core_.worker.updates_under_way() >= SessionView::kMostWaitingUpdates && !record.last)
    return core_.swarm.fall_behind(now, "its updates wait for its own work");
  recovery_.replica().commit(record, mean.segments);
  std::map<std::uint32_t, average::GradientSum> kept;
  for (const wire::Contribution& c : mean.own) {
    if (c.slot >= wire::kLeaseSlots) kept[c.slot] = averager_.custody().sum(c.slot);
  }
  core_.worker.apply(
      {record, std::move(mean.segments), std::move(mean.own), false, std::move(kept)},
      [this, record](const Digest& parameters, Duration took) { on_update(record, parameters, took); });
  saving_.after_round(record);
  report_presence();
}

// With overlap: time in which this peer worked for the next round.
Duration Rounds::computed_since(Instant since) const {
  const Worker::Done& next = core_.worker.done_of(step_.round + 1);
  if (next.since == Instant{}) return {};
  const Instant until = core_.worker.is_computing() ? core_.clock.now() : next.until;
  return std::max(Duration{}, until - std::max(since, next.since));
}

void Rounds::report_commit(const wire::Record& record) {
  const Instant now = core_.clock.now();
  // The call comes while the last microbatches are under way: until they are done it is calculation.
  const Instant called_at = averager_.called_at(step_);
  const Instant averaging_since =
      std::max({called_at == kNever ? now : called_at, core_.worker.done().until, began_at_});
  // With overlap, the call may have to wait for the averaging of the round before.
  const bool overlaps = core_.options.run.overlaps();
  const Instant worked_until = overlaps ? std::max(began_at_, core_.worker.done().until) : averaging_since;
  event::Commit commit{.digest = to_string(digest_of(record)),
                       .parent = to_string(record.parent),
                       .samples_of = samples_in(record, core_.options.run),
                       .samples = samples_of_peer(record, core_.options.self),
                       .samples_total = record.samples_total(),
                       .majority_samples = record.majority_samples,
                       .carried = (overlaps ? record.left : record.carried).count(),
                       .members = record.members.size(),
                       .calc_s = to_seconds(worked_until - began_at_),
                       .comm_s = to_seconds(now - averaging_since),
                       .last = record.last,
                       .batch = choice_in(record)};
  if (record.minority) commit.cause = event::Cause::minority;
  for (const wire::Contribution& c : record.contributors) {
    if (c.samples > 0 && std::ranges::find(commit.peers, c.peer) == commit.peers.end())
      commit.peers.push_back(c.peer);
  }
  if (overlaps) commit.hidden_s = to_seconds(computed_since(averaging_since));
  if (const Worker::Done& done = core_.worker.done(); done.loss_samples > 0)
    commit.loss = done.loss_sum / static_cast<double>(done.loss_samples);
  core_.events.emit({.at = now,
                     .round = record.round,
                     .why = record.minority ? "without a majority" : "",
                     .fact = std::move(commit)});
}

void Rounds::on_update(const wire::Record& record, const Digest& parameters, Duration took) {
  recovery_.replica().applied(record.round, parameters);
  core_.events.emit({.round = record.round,
                     .fact = event::Apply{.digest = to_string(parameters),
                                          .record = to_string(digest_of(record)),
                                          .took_s = to_seconds(took)}});
  if (core_.observer != nullptr) core_.observer->on_applied(record, parameters, false);
  report_presence();  // first, so that what it reports asks for work
  core_.swarm.applied(core_.clock.now(), record.round, parameters);
  contribute_what_is_done();
  if (record.last && !core_.departure.ended()) core_.departure.stand_at(true);
  if (step_.round == record.round + 1) {
    if (core_.worker.done().since == Instant{}) began_at_ = core_.clock.now();
    core_.events.emit({.round = step_.round, .fact = event::Accumulate{}});
  }
  recovery_.settle_when_ready();
}

}  // namespace tw::train
