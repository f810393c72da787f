// SPDX-License-Identifier: Apache-2.0
#include "train/session/core.h"

#include "swarm/shares/division.h"

namespace tw::train {
namespace {

/// Without the address, which is known once the network is open: Swarm::listens_at.
swarm::SwarmOptions swarm_options(const SessionOptions& options, const RunFacts& facts,
                                  const average::Geometry& geometry, std::uint64_t grain) {
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
  swarm.lease = {run.target_batch_size, run.microbatch, run.exact_batches, run.overlaps()};
  swarm.segments = geometry.segments();
  swarm.grain = grain;
  swarm.rounds = run.rounds;
  swarm.patience = run.patience;
  swarm.division = {{.contribution = encoded_bytes(run.codec, geometry.length),
                     .mean = encoded_bytes(codec_of_mean(run.codec), geometry.length)},
                    run.sites};
  swarm.sum_bytes = geometry.length * sizeof(float);
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
      geometry(geometry_of(worker.size().parameters, options.segment_length)),
      facts(options.run, worker.size().parameters),
      swarm(swarm_options(options, facts, geometry, worker.grain()), clock.now()),
      departure(calls.ends) {}

void Core::refuse(world::Cause cause, std::optional<PeerId> peer, std::string why) {
  events.emit(
      {.phase = world::Phase::refuse, .round = round, .peer = peer, .why = std::move(why), .cause = cause});
}

std::vector<std::pair<std::string, std::string>> texts_of_record(const wire::Record& record, bool begins) {
  std::vector<std::pair<std::string, std::string>> texts = {{"record", to_string(digest_of(record))}};
  if (begins) texts.emplace_back("parent", to_string(record.parent));
  return texts;
}

average::Geometry geometry_of(std::uint64_t parameters, std::uint64_t segment_length) {
  return {parameters, segment_length != 0 ? segment_length : average::usual_segment_length(parameters)};
}

}  // namespace tw::train
