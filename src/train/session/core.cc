// SPDX-License-Identifier: Apache-2.0
#include "train/session/core.h"

#include "swarm/shares/division.h"

namespace tw::train {
namespace {

std::vector<swarm::Averaged> averaged(const RunOptions& run, const average::Fragments& fragments) {
  std::vector<swarm::Averaged> all;
  for (const auto& [first, geometry] : fragments.all()) {
    const swarm::WireBytes bytes{.contribution = encoded_bytes(run.codec, geometry.length),
                                 .mean = encoded_bytes(codec_of_mean(run.codec), geometry.length)};
    all.push_back({geometry.segments(), bytes, geometry.length * sizeof(float)});
  }
  return all;
}

/// Without the address, which is known once the network is open: Swarm::listens_at.
swarm::SwarmOptions swarm_options(const SessionOptions& options, const RunFacts& facts,
                                  const Worker& worker) {
  const RunOptions& run = options.run;
  swarm::SwarmOptions swarm;
  swarm.self = {options.self, {}, options.incarnation, options.site};
  swarm.run = facts.digest();
  swarm.founder = options.founds();
  swarm.anchor = options.anchor;
  swarm.founders_parameters = run.has_own_model();
  swarm.returns = options.past == Past::begun;
  swarm.wait_for = options.wait_for;
  swarm.bootstrap = options.join;
  swarm.bootstrap.insert(swarm.bootstrap.end(), options.found.begin(), options.found.end());
  swarm.lease = run.target_batch();
  swarm.averaged = averaged(run, worker.size().fragments);
  swarm.grain = worker.grain();
  swarm.rounds = run.rounds;
  swarm.patience = run.patience;
  swarm.sites = run.sites;
  swarm.rarely = options.rarely;
  return swarm;
}

}  // namespace

Core::Core(const Doors& doors, SessionOptions of_session, std::unique_ptr<Learner> learner,
           SessionObserver* sees_decisions, const Calls& calls)
    : clock(doors.clock),
      network(doors.network),
      events(doors.clock, doors.events),
      stores(doors.stores),
      options(std::move(of_session)),
      observer(sees_decisions),
      worker(std::move(learner), {clock, waits, calls.then, calls.back}),
      facts(options.run, worker.size().parameters),
      unasked(options.meeting.unasked),
      swarm(swarm_options(options, facts, worker), clock.now()),
      departure(calls.ends) {}

void Core::goes_on_from(Round rounds) {
  begun = rounds;
  swarm.leading().ends_with(last_round());
}

std::uint64_t Core::written_bytes() const {
  std::uint64_t bytes = 0;
  if (stores)
    for (const auto& [store, use] : stores()) bytes += use.written_bytes;
  return bytes;
}

void Core::refuse(event::Cause cause, std::optional<PeerId> peer, std::string why) {
  events.emit({.round = round, .peer = peer, .why = std::move(why), .fact = event::Refuse{.cause = cause}});
}

event::Bandwidth bandwidth_facts(const wire::Bandwidth& bandwidth) {
  event::Bandwidth facts;
  if (bandwidth.up_bytes_per_s > 0) facts.up_mbit_s = bandwidth.up_bytes_per_s * 8e-6;
  if (bandwidth.down_bytes_per_s > 0) facts.down_mbit_s = bandwidth.down_bytes_per_s * 8e-6;
  return facts;
}

}  // namespace tw::train
