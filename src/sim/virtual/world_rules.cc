// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/world_rules.h"

#include <algorithm>

#include "sim/checkers/held_bytes.h"
#include "train/run/run_facts.h"
#include "wire/limits.h"

namespace tw::sim {
namespace {

/// Until a new leader knows who leaves, and has said to whom.
constexpr Duration kOrders = std::chrono::seconds(2);

/// Jobs of the compute thread from the end of one round to work for the next one, copies included.
constexpr double kJobsOfAnUpdate = 6;

/// Samples that the run goes on without; empty if there is none.
std::function<bool(std::uint64_t)> left_out_by(const SyntheticModel& model) {
  if (!model.gone || !model.broken) return model.gone ? model.gone : model.broken;
  return [model](std::uint64_t sample) { return model.broken(sample) || model.gone(sample); };
}

}  // namespace

std::string site_name(const WorldOptions& options, int site) {
  return options.sites.at(static_cast<std::size_t>(site)).name.substr(0, wire::kMostSiteBytes);
}

average::Fragments fragments_of(const WorldOptions& options) {
  return train::fragments_of(options.run, SyntheticTrainer(options.model), options.segment_length);
}

std::uint64_t most_held_bytes(const WorldOptions& options, std::size_t peers) {
  const average::Fragments fragments = fragments_of(options);
  const average::Geometry& geometry = fragments.largest();
  // An optimizer has two buffers, and a late mean is one more.
  const std::uint64_t vectors = options.run.overlaps() ? 4 : 3;
  const std::uint64_t segments = fragments.all().size() * geometry.segments();
  const std::uint64_t state_bytes = vectors * sizeof(float) * (fragments.length() + segments);
  return held_bytes_limit({.vector_bytes = encoded_bytes(codec_of_mean(options.run.codec), geometry),
                           .segments = geometry.segments(),
                           .state_bytes = state_bytes,
                           .state_chunks = state_bytes / options.chunk_bytes + 1,
                           .microbatches = options.run.target_batch().most_microbatches(),
                           .peers = peers});
}

Rules rules_of(const WorldOptions& options) {
  Rules rules{options.run.target_batch(), options.run.codec, fragments_of(options)};
  rules.stochastic = options.run.dithers();
  rules.error_feedback = options.run.feeds_back();
  rules.mode = options.run.mode.kind;
  rules.norm_cap = options.run.norm_cap;
  rules.digest_every = options.run.mode.digest_every;
  rules.patience = options.run.patience;
  rules.run = run_digest(options.run, options.model.parameters);
  rules.checkpoint_folder = options.run.checkpoint.folder;
  rules.checkpoint_copies = options.run.checkpoint.to;
  rules.checkpoint_keep = static_cast<std::size_t>(options.run.checkpoint.keep);
  rules.broken = left_out_by(options.model);
  // With the slowest of everything that may be drawn, by half of the peers at the beginning.
  double latency_s = 0, bytes_per_s = 1e12, samples_per_s = 1e12;
  for (const LinkSpec& link : options.links) {
    const double one_way_s = link.latency_s.most * (1 + link.jitter.most);
    latency_s = std::max(latency_s, one_way_s);
    bytes_per_s = std::min({bytes_per_s, link.bytes_per_s.least, link.window_bytes.least / (2 * one_way_s)});
  }
  for (std::size_t i = 0; i < options.sites.size(); ++i) {
    const SiteSpec& site = options.sites[i];
    rules.prices[site_name(options, static_cast<int>(i))] = {site.usd_per_h, site.egress_usd_per_gb};
  }
  int peers = 0;
  double grain = 1, job_s = 0;
  for (const SiteSpec& site : options.sites) {
    peers += site.peers;
    grain = std::max(grain, site.grain.most);
    job_s = std::max(job_s, site.job_s.most);
    samples_per_s = std::min(samples_per_s, site.samples_per_s.least);
    bytes_per_s = std::min({bytes_per_s, site.up_bytes_per_s.least, site.down_bytes_per_s.least});
  }
  const double vector_s =
      static_cast<double>(options.model.parameters * sizeof(float)) * options.bulk_scale / bytes_per_s;
  const auto samples = static_cast<double>(rules.batch.most());
  const double work_s =
      (samples / std::max(1, peers / 2) + 2.0 * static_cast<double>(options.run.microbatch)) / samples_per_s;
  rules.round_trip = from_seconds(2 * latency_s);
  rules.transfer_time = from_seconds(3 * vector_s + 8 * latency_s);
  const double item_s = grain * static_cast<double>(options.run.microbatch) / samples_per_s;
  const double items = samples / static_cast<double>(options.run.microbatch) / std::max(1, peers / 2) + 2;
  rules.handover_time =
      from_seconds(item_s + vector_s + 20 * latency_s + kJobsOfAnUpdate * job_s) + kKeptInHand + kOrders;
  rules.round_time = from_seconds(work_s + 2 * vector_s * std::max(1, peers) + 10 * latency_s +
                                  (items + kJobsOfAnUpdate) * job_s);
  return rules;
}

}  // namespace tw::sim
