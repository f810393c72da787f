// SPDX-License-Identifier: Apache-2.0
#include "train/session/recovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::train {
namespace {

sync::Replica::Options replica_options(const SessionOptions& options, const Worker& worker) {
  const codec::Codec codec = codec_of_mean(options.run.codec);
  sync::Replica::Options replica{.fetch = {.run = run_digest(options.run, worker.size().parameters)},
                                 .digest_every = options.run.mode.digest_every,
                                 .rarely = options.rarely};
  replica.fetch.state = {worker.size().state_bytes, options.chunk_bytes};
  for (const auto& [first, geometry] : worker.size().fragments.all())
    replica.fetch.means.push_back(
        {encoded_bytes(codec, geometry), encoded_bytes(codec, geometry.segment_length)});
  replica.fetch.rarely = options.rarely;
  return replica;
}

}  // namespace

Recovery::Recovery(Core& core, Checkpoints& checkpoints)
    : core_(core), checkpoints_(checkpoints), replica_(replica_options(core.options, core.worker)) {}

std::vector<PeerId> Recovery::sources() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, incarnation] : core_.swarm.view().membership.roster().following())
    peers.push_back(peer);
  return peers;
}

// It may fetch all that is decided from other members, but is none without this link.
std::optional<PeerId> Recovery::unlinked_leader() const {
  const std::optional<wire::Record>& head = core_.swarm.head();
  const bool loses_ground = replica_.progress_of_catching_up().lost_ground > 0;
  if (!loses_ground || !head || head->last || head->members.empty() || sources().empty()) return std::nullopt;
  const wire::Member& leader = swarm::ballot_owner(head->members, core_.swarm.view().acceptor.promised());
  if (leader.is(core_.self()) || core_.swarm.view().membership.roster().is_open(leader)) return std::nullopt;
  return leader.peer;
}

sync::Replica::Others Recovery::others() const {
  return {sources(), core_.swarm.view().best_told(), core_.swarm.view().anchors()};
}

// ---- taking

void Recovery::begin_from_seed() {
  core_.worker.initialise([this](const Digest& parameters) {
    replica_.begin(parameters);
    core_.swarm.fresh(core_.clock.now(), parameters);
  });
}

void Recovery::resume(sync::StateImage checkpoint) {
  checkpoints_.resumed(checkpoint.record);
  checkpoint.record = swarm::restarted(checkpoint.record, {core_.self()});
  checkpoint.record.last = false;
  TW_CHECK(core_.swarm.peer_state() == wire::PeerState::fresh);
  returning_.resume();
  replica_.resume(core_.clock.now());
  restore(std::move(checkpoint), {.cause = event::Cause::checkpoint});
}

void Recovery::catch_up(bool differs) {
  if (returning_.stage() == ReturnWait::Stage::waiting) returning_.end();
  core_.departure.catch_up();
  using Behind = sync::Replica::Behind;
  replica_.catch_up(core_.clock.now(), differs ? Behind::differs : Behind::rounds,
                    core_.worker.stands_ready(), others());
}

void Recovery::settle_when_ready() {
  if (replica_.state() == sync::Replica::State::settling && core_.worker.stands_ready())
    replica_.settled(core_.clock.now(), others());
}

// The same mean gives other parameters on this machine: fetching the state again would not help.
bool Recovery::computes_other_bits() {
  const auto rounds = replica_.differed(core_.swarm.head()->round);
  if (!rounds) return false;
  core_.departure.fail(fmt::format(
      "after the same means this peer had other parameters than the leader in rounds {}: its "
      "program changes them between rounds, or its optimizer computes other bits on this machine; "
      "use one of the engine's (sgd, adam, adamw, lamb), or the same hardware and versions everywhere",
      fmt::join(*rounds, ", ")));
  return true;
}

bool Recovery::go_on_catching_up() {
  for (const sync::BadSource& refusal : replica_.take_refusals()) {
    core_.refuse(event::Cause::message, refusal.peer, refusal.why);
  }
  if (!replica_.is_catching_up()) return false;
  settle_when_ready();  // a late update (Worker::move_on) may have ended since
  const Instant now = core_.clock.now();
  sync::Replica::Next next = replica_.next(now, others());
  if (auto* taken = std::get_if<sync::Replica::TakeState>(&next)) {
    restore(std::move(taken->image),
            {.offer_s = to_seconds(taken->offer), .transfer_s = to_seconds(taken->transfer)});
  } else if (auto* missed = std::get_if<sync::Replica::TakeMean>(&next)) {
    replay(std::move(missed->mean));
  } else if (std::holds_alternative<sync::Replica::GoOn>(next)) {
    go_on_from(*replica_.tip());
  }
  core_.swarm.announcing().catching_up(now, replica_.progress_of_catching_up());
  if (!replica_.is_too_slow(now, unlinked_leader().has_value()))
    return !std::holds_alternative<std::monostate>(next);
  core_.departure.fail(
      "this peer's line is too slow for the run: " + std::to_string(sync::Replica::kLostForGood) +
      " times, over 10 minutes or more, the others went on faster than what they decided came here");
  return false;
}

void Recovery::restore(sync::StateImage image, const event::Restore& from) {
  const auto shared =
      std::make_shared<const sync::StateImage>(std::move(image));  // owners: the job, and its `done`
  core_.worker.restore(shared, [this, shared, from](const Result<Digest>& parameters) {
    const Round round = shared->record.round;
    if (!parameters.ok()) {
      core_.events.emit({.round = round, .why = parameters.error().message, .fact = event::Refuse{}});
      if (core_.departure.ended()) return;
      if (returning_.stage() == ReturnWait::Stage::resuming)
        return core_.departure.fail(parameters.error().message);
      return replica_.take_again(core_.clock.now(), others());
    }
    const bool from_checkpoint = from.cause == event::Cause::checkpoint;
    event::Restore restored = from;
    restored.digest = to_string(parameters.value());
    restored.record = to_string(digest_of(shared->record));
    if (from_checkpoint) restored.parent = to_string(shared->record.parent);
    restored.bytes = shared->bytes();
    if (core_.last_round() != core_.told_last_round) restored.last_round = core_.last_round();
    restored.took_s = to_seconds(core_.clock.now() - replica_.since());
    core_.events.emit({.at = core_.clock.now(),
                       .round = round,
                       .why = from_checkpoint ? "from checkpoint" : "from other peers",
                       .fact = std::move(restored)});
    if (core_.observer != nullptr) core_.observer->on_applied(shared->record, parameters.value(), true);
    if (!from_checkpoint) checkpoints_.took_state(shared->record);
    go_on_from({shared->record, parameters.value()});
  });
}

void Recovery::replay(sync::FetchedMean mean) {
  core_.worker.replay(
      {.record = mean.record, .mean = std::move(mean.segments), .missed = true},
      [this, record = mean.record](const Result<Digest>& parameters) {
        if (!parameters.ok()) {
          core_.events.emit(
              {.round = record.round, .why = parameters.error().message, .fact = event::Refuse{}});
          return replica_.take_again(core_.clock.now(), others());
        }
        core_.events.emit({.at = core_.clock.now(),
                           .round = record.round,
                           .fact = event::Apply{.digest = to_string(parameters.value()),
                                                .record = to_string(digest_of(record))}});
        if (core_.observer != nullptr) core_.observer->on_applied(record, parameters.value(), false);
        go_on_from({record, parameters.value()});
      });
}

void Recovery::go_on_from(const sync::Replica::Tip& tip) {
  if (returning_.stage() == ReturnWait::Stage::resuming) {
    returning_.end();
    if (core_.swarm.peer_state() == wire::PeerState::syncing)
      return;  // others were found meanwhile: their state will arrive
  }
  const Instant now = core_.clock.now();
  if (!replica_.come_to(now, tip, others())) return;
  if (!core_.departure.ended()) core_.departure.stand_at(tip.record.last);
  core_.swarm.begin(now, tip.record, tip.parameters, core_.worker.has_moved_on());
}

// This peer has the state, and no member is left to decide the next record. It waits for the microbatch under
// way, so that it is one step: no decision of the round that it leaves comes between.
bool Recovery::can_begin_anew() const {
  const bool has_state = replica_.state() == sync::Replica::State::current && !is_updating(core_.worker);
  const bool may_settle = !core_.worker.has_moved_on() || core_.worker.state() == Worker::State::idle;
  return has_state && may_settle && !core_.worker.is_computing() &&
         !goes_before(core_.swarm.view().best_told(), rank_of(replica_.tip()->record));
}

void Recovery::begin_anew() {
  TW_CHECK(can_begin_anew() && core_.round == 0);
  // The current round has the number of the first round of the new history: drop its sums.
  core_.worker.forget_sums(replica_.tip()->record.round);
  const wire::Record record = swarm::begun_anew(replica_.tip()->record, {core_.self()});
  const sync::Replica::Tip anew{record, core_.worker.settle(record)};
  core_.events.emit({.at = core_.clock.now(),
                     .round = anew.record.round,
                     .why = "from its own state: no member of the run was reached for " +
                            std::to_string(static_cast<int>(to_seconds(core_.options.run.patience))) + " s",
                     .fact = event::Restore{.digest = to_string(anew.parameters),
                                            .cause = event::Cause::anew,
                                            .record = to_string(digest_of(anew.record)),
                                            .parent = to_string(anew.record.parent)}});
  if (core_.observer != nullptr) core_.observer->on_applied(anew.record, anew.parameters, true);
  go_on_from(anew);
}

// ---- giving

void Recovery::serve_images() {
  if (const std::optional<wire::Record> wanted = replica_.wants_image())
    core_.worker.freeze_soon(*wanted, [this](const Learner::Image& image) { replica_.give(image); });
}

void Recovery::let_chunks_go(Instant lines_are_free_at) {
  if (replica_.holds_chunks() && core_.clock.now() >= lines_are_free_at) replica_.let_chunks_go();
}

}  // namespace tw::train
