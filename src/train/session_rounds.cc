// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "train/held_bytes.h"
#include "train/session_machine.h"
#include "wire/frame.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

/// Where nothing came from anybody for so long, whoever owes segments is asked to send its part again: it may
/// believe that all of it arrived.
constexpr Duration kAskAgainAfter = 8s;
constexpr Duration kStallFloor = 500ms;  // docs/protocol.md
constexpr int kStallRoundTrips = 3;
/// A peer is slow when it would take so many times what the plan should. Not judged before most of its time
/// is over: results lag behind contributions.
constexpr double kTooSlow = 1.5;
constexpr double kJudgedAfter = 0.75;
constexpr double kSlowFloor_s = 1;
/// A round that counts on a contribution beyond the norm cap under so many ballots has too few other ones.
constexpr std::size_t kMostBallotsBeyondCap = 3;

}  // namespace

void Session::Machine::open_round() {
  const std::optional<Record>& head = swarm_->head();
  if (catching_up_ || !head || head->last || round_ == head->round + 1) return;
  round_ = head->round + 1;
  if (tip_ && tip_->record.run != run_) {  // the history has begun
    tip_->record = *head;
    if (observer_ != nullptr) observer_->on_commit(*head);
    if (observer_ != nullptr) observer_->on_applied(*head, tip_->parameters, false);
  }
  reduction_ = std::make_unique<Reduction>(Reduction::Options{options_.self, round_, geometry_,
                                                              options_.run.codec, options_.run.dithers(),
                                                              options_.run.norm_cap, options_.rarely});
  ballots_beyond_cap_.clear();
  contributed_.clear();
  loss_sum_ = 0;
  loss_samples_ = 0;
  called_at_ = planned_at_ = kNever;
  told_scatter_ = told_gather_ = false;
  voted_ = {};
  began_at_ = doors_.clock.now();
  if (tip_ && updates_under_way_ == 0) emit(Phase::accumulate, round_);
  const auto early = std::exchange(early_bulk_, {});
  early_bytes_.clear();
  for (const auto& [from, message] : early) take_bulk(from, message);
}

// ---- work
// -----------------------------------------------------------------------------------------------------

void Session::Machine::start_work() {
  if (computing_ || catching_up_ || round_ == 0) return;
  const std::optional<WorkItem> item = swarm_->begin_work(doors_.clock.now());
  if (!item) return;
  begin_to_probe();
  computing_ = true;
  GradientSlot& slot = state_->slot(item->slot);
  const double samples = static_cast<double>(item->samples.count());
  compute<double>(
      {.kind = Wait::Kind::computing, .round = item->round, .done = loss_samples_}, samples,
      [item, &slot](TrainState& state) { return state.accumulate(item->round, slot, item->samples); },
      [this, item, samples](double loss, Duration took) {
        computing_ = false;
        const double speed = samples / std::max(1e-9, to_seconds(took));
        samples_per_s_ = samples_per_s_ == 0 ? speed : samples_per_s_ + (speed - samples_per_s_) / 4;
        if (item->round == round_) {
          worked_until_ = doors_.clock.now();
          loss_sum_ += loss;
          loss_samples_ += static_cast<std::uint64_t>(samples);
        }
        swarm_->finish_work(doors_.clock.now(), *item, samples_per_s_);
        contribute_what_is_done();
      });
}

void Session::Machine::contribute_what_is_done() {
  if (!reduction_ || !reduction_->plan()) return;
  for (const Contribution& c : reduction_->plan()->draft.contributors) {
    if (c.peer != options_.self || contributed_[c.slot] || !swarm_->has_done_just(c.slot, c.microbatches))
      continue;
    contributed_[c.slot] = true;
    swarm_->close_slot(c.slot);
    const auto& sum = state_->slot(c.slot).sum;
    reduction_->contribute(c.slot, {*sum, sum}, c.samples, state_->carried(c.slot));
  }
}

// ---- averaging
// ------------------------------------------------------------------------------------------------

void Session::Machine::act(const Reduce& reduce) {
  open_round();
  if (!reduction_ || !reduction_->adopt(reduce.plan)) return;
  planned_at_ = doors_.clock.now();
  if (called_at_ == kNever) called_at_ = planned_at_;
  give_way_to_averaging();
  emit(Phase::call, round_, {},
       {{"calc_s", to_seconds(planned_at_ - began_at_)},
        {"members", static_cast<double>(reduce.plan.participants.size())},
        {"contributions", static_cast<double>(reduce.plan.draft.contributors.size())},
        {"ballot", reduce.plan.ballot},
        {"version", reduce.plan.version}});
  contribute_what_is_done();
}

void Session::Machine::act(const SendAgain& again) {
  if (reduction_) reduction_->on_new_link(again.peer);
}

// A peer that comes later, or resumes, is measured by its usual traffic.
void Session::Machine::begin_to_probe() {
  const Codec codec = codec_of_mean(options_.run.codec);
  const Probe::Sizes sizes{encoded_bytes(codec, geometry_), encoded_bytes(codec, geometry_.segment_length)};
  if (std::exchange(probed_, true) || round_ != 1 || sizes.vector_bytes < options_.probe_from) return;
  const std::vector<PeerId> targets = Probe::targets(options_.self, swarm_->head()->members);
  probe_.begin(doors_.clock.now(), targets, sizes);
  for (const PeerId target : targets) doors_.network.pull(target);
}

void Session::Machine::end_probe() {
  if (!probe_.is_under_way()) return;
  probe_.end();
  const Line line = meter_.line();
  emit(Phase::probe, round_, {},
       {{"up_mbit_s", line.up_bytes_per_s * 8e-6}, {"down_mbit_s", line.down_bytes_per_s * 8e-6}});
}

void Session::Machine::take_bulk(PeerId from, const Message& message) {
  const auto* scatter = std::get_if<Scatter>(&message);
  const auto* gather = std::get_if<Gather>(&message);
  const Round round = scatter != nullptr ? scatter->round : gather->round;
  if (round == round_ + 1) {  // before its record, that of round 0 too, is here
    return keep_early(from, message, scatter != nullptr ? scatter->payload : gather->payload);
  }
  if (round != round_ || !reduction_) return;  // late: that round is decided
  end_probe();
  const Status fits = scatter != nullptr ? reduction_->fits(*scatter) : reduction_->fits(*gather);
  if (!fits.ok()) return hang_up_on(from, fits.error().message);
  const Status taken =
      scatter != nullptr ? reduction_->on_scatter(from, *scatter) : reduction_->on_gather(from, *gather);
  if (taken.ok()) {
    last_bulk_[from] = doors_.clock.now();
  } else {
    refuse(Cause::message, from, taken.error().message);
  }
}

void Session::Machine::keep_early(PeerId from, const Message& message, const Blob& payload) {
  const std::uint64_t vector = encoded_bytes(codec_of_mean(options_.run.codec), geometry_);
  const std::uint64_t bound = kEarlyBulkVectors * (vector + geometry_.segments() * kEarlyBulkOverhead);
  std::uint64_t& kept = early_bytes_[from];
  const std::uint64_t bytes = kEarlyBulkOverhead + payload.size();
  if (kept + bytes > bound) return;
  kept += bytes;
  last_bulk_[from] = doors_.clock.now();
  early_bulk_.emplace_back(from, message);
}

void Session::Machine::report_averaging() {
  if (!reduction_ || !reduction_->plan()) return;
  for (const Reduction::Unfit& unfit : reduction_->take_unfit()) {
    if (unfit.peer == options_.self) own_contribution_is_unfit(unfit);
    if (finished()) return;
    swarm_->complain(doors_.clock.now(), unfit.peer, unfit.why);
  }
  const Instant now = doors_.clock.now();
  if (!told_scatter_ && reduction_->scattered()) {
    told_scatter_ = true;
    emit(Phase::scatter, round_, {}, {{"since_call_s", to_seconds(now - called_at_)}});
  }
  if (!reduction_->complete()) return;
  const std::pair<Ballot, std::uint32_t> plan = {reduction_->plan()->ballot, reduction_->plan()->version};
  if (plan == voted_) return;
  voted_ = plan;
  if (!told_gather_) emit(Phase::gather, round_, {}, {{"since_call_s", to_seconds(now - called_at_)}});
  told_gather_ = true;
  swarm_->completed(now, reduction_->mean_digest());
  pump();
}

void Session::Machine::own_contribution_is_unfit(const Reduction::Unfit& unfit) {
  if (unfit.why == Complaint::not_finite) {
    return end(fmt::format("the gradient of round {} is not finite: the training has diverged (a lower "
                           "learning rate?) or the data holds such values",
                           round_),
               true);
  }
  const std::string what = fmt::format(
      "the gradient of round {} has a norm of at least {:.6g} per sample, beyond training.norm_cap {:g}",
      round_, unfit.norm, options_.run.norm_cap);
  ballots_beyond_cap_.insert(reduction_->plan()->ballot);
  if (ballots_beyond_cap_.size() < kMostBallotsBeyondCap) {
    return emit(Phase::refuse, round_, what + ": the round goes on without it");
  }
  end(what +
          ", and too few other peers remain for the round to go on without it: the training has diverged "
          "(a lower learning rate?), or the cap is too small for this model",
      true);
}

void Session::Machine::complain_about_stalls() {
  if (!reduction_ || !reduction_->plan() || reduction_->complete()) return;
  const Instant now = doors_.clock.now();
  // As long as anything comes, the line is busy, and whose segments come later has not stalled.
  Instant since = planned_at_;
  for (const auto& [peer, last] : last_bulk_) since = std::max(since, last);
  for (const auto& [peer, complaint] : reduction_->owing()) {
    const Duration limit = std::max<Duration>(kStallFloor, kStallRoundTrips * swarm_->round_trip(peer));
    if (now - since < limit || now - complained_[peer] < kStallFloor) continue;
    complained_[peer] = now;
    swarm_->complain(now, peer, complaint);
    if (now - since >= kAskAgainAfter)
      doors_.network.send(peer, encode(Report{round_, peer, Complaint::send_again}));
  }
}

// Names peers that still send, but so slowly that they would hold up the round: others can reduce the rest.
void Session::Machine::complain_about_slowness() {
  if (!reduction_ || !reduction_->plan() || reduction_->complete()) return;
  const Instant now = doors_.clock.now();
  const double expected_s = reduction_->plan()->expected_s;
  const double elapsed_s = to_seconds(now - planned_at_);
  const bool early = expected_s <= 0 || elapsed_s < std::max(kSlowFloor_s, kJudgedAfter * expected_s);
  if (early || now - slowness_told_at_ < kStallFloor) return;
  slowness_told_at_ = now;
  for (const Reduction::Debt& debt : reduction_->debts()) {
    const double part = static_cast<double>(debt.here) / static_cast<double>(debt.all);
    if (debt.here == debt.all || elapsed_s <= kTooSlow * expected_s * part) continue;
    const Complaint complaint = debt.contributes ? Complaint::slow_contribution : Complaint::slow_mean;
    swarm_->complain(now, debt.peer, complaint, reduction_->missing_of(debt.peer));
  }
}

// ---- updates
// --------------------------------------------------------------------------------------------------

void Session::Machine::act(const Committed& committed) {
  const Record& record = committed.record;
  TW_CHECK(reduction_ && reduction_->complete());
  // A leader that is alone decides as soon as it has told what it leaves over.
  for (const Event& event : swarm_->take_events_until(record.round)) doors_.events.emit(event);
  const Instant now = doors_.clock.now();
  const double own = own_samples(record);
  // The call comes while the last microbatches are under way: until they are done it is calculation.
  const Instant averaging_since =
      std::max({called_at_ == kNever ? now : called_at_, worked_until_, began_at_});
  std::vector<std::pair<std::string, double>> numbers = {
      {"samples", own},
      {"samples_total", static_cast<double>(record.samples_total())},
      {"carried", static_cast<double>(record.carried.count())},
      {"members", static_cast<double>(record.members.size())},
      {"calc_s", to_seconds(averaging_since - began_at_)},
      {"comm_s", to_seconds(now - averaging_since)}};
  if (record.last) numbers.emplace_back("last", 1);
  if (loss_samples_ > 0) numbers.emplace_back("loss", loss_sum_ / static_cast<double>(loss_samples_));
  Event event{now, Phase::commit, record.round};
  event.why = record.minority ? "without a majority" : "";
  event.numbers = std::move(numbers);
  event.digest = to_string(digest_of(record));
  doors_.events.emit(event);
  if (observer_ != nullptr) observer_->on_commit(record);

  const std::vector<Blob> mean = reduction_->mean_segments();
  donor_.keep_mean(record, mean);
  std::vector<Contribution> made = record.contributors;
  std::erase_if(made, [&](const Contribution& c) { return !reduction_->made(c); });
  reduction_.reset();
  meter_.end_round();
  swarm_->measured(meter_.line());
  tip_ = Tip{record, {}};
  ++updates_under_way_;
  compute<Digest>(
      {.kind = Wait::Kind::applying, .round = record.round}, 0,
      [made, mean, round = record.round, geometry = geometry_](TrainState& state) {
        state.keep_losses(round, geometry, made);
        return state.apply(round, geometry, mean);
      },
      [this, record](Digest parameters, Duration took) { on_update(record, parameters, took); });
  after_update(record);
}

void Session::Machine::on_update(const Record& record, const Digest& parameters, Duration took) {
  --updates_under_way_;
  if (tip_ && tip_->record.round == record.round) tip_->parameters = parameters;
  Event event{doors_.clock.now(), Phase::apply, record.round};
  event.numbers = {{"took_s", to_seconds(took)}};
  event.digest = to_string(parameters);
  doors_.events.emit(event);
  if (observer_ != nullptr) observer_->on_applied(record, parameters, false);
  swarm_->applied(doors_.clock.now(), record.round, parameters);
  if (record.last && !finished()) departure_.stand_at(true);
  if (round_ == record.round + 1) {
    began_at_ = doors_.clock.now();
    emit(Phase::accumulate, round_);
  }
  if (catching_up_ && updates_under_way_ == 0 && !restoring_) begin_catch_up();
  finish_when_done();
}

void Session::Machine::after_update(const Record& record) {
  const RunOptions& run = options_.run;
  const bool due = run.evaluation.every != 0 && record.round % run.evaluation.every == 0;
  const bool first =
      !record.members.empty() && record.members.front().is({options_.self, address_, options_.incarnation});
  if (first && (due || record.last)) {
    if (record.last) departure_.begin_last_job();
    swarm_->set_busy(doors_.clock.now(), true);  // the others do this peer's part meanwhile
    compute<Evaluation>(
        {.kind = Wait::Kind::evaluating, .round = record.round}, 0,
        [meter = waits_.compute().meter()](TrainState& state) { return state.evaluate(*meter); },
        [this, record](const Evaluation& evaluation, Duration took) {
          swarm_->set_busy(doors_.clock.now(), false);
          std::vector<std::pair<std::string, double>> numbers = {{"loss", evaluation.loss},
                                                                 {"took_s", to_seconds(took)}};
          if (evaluation.accuracy) numbers.emplace_back("accuracy", *evaluation.accuracy);
          const bool had_data = evaluation.accuracy || std::isfinite(evaluation.loss);
          if (had_data) emit(Phase::evaluate, record.round, {}, std::move(numbers));
          const std::optional<double> goal = options_.run.evaluation.stop_accuracy;
          if (goal && evaluation.accuracy && *evaluation.accuracy >= *goal) swarm_->end_run();
          if (record.last) departure_.finish_last_job();
          finish_when_done();
        });
  }
  const bool save = checkpoints_ &&
                    ((run.checkpoint.every != 0 && record.round % run.checkpoint.every == 0) || record.last);
  if (save) save_checkpoint(record);
}

void Session::Machine::finish_when_done() {
  if (!departure_.at_the_end() || departure_.has_last_jobs() || updates_under_way_ > 0 || catching_up_)
    return;
  // A member that missed the last decision can get it from nobody once all have gone.
  if (departure_.linger(doors_.clock.now(), !swarm_->not_at_the_end().empty()))
    end("the run is complete", false);
}

double Session::Machine::own_samples(const Record& record) const {
  double samples = 0;
  for (const Contribution& c : record.contributors) {
    if (c.peer == options_.self) samples += static_cast<double>(c.samples);
  }
  return samples;
}

}  // namespace tw
