// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/engine.h"

/// `tw up --on skypilot`: one managed job for each peer, never several nodes in one, of which the loss of one
/// ends all (skypilot#3907). SkyPilot finds the machine, in the planner's order, and starts a peer again that
/// was preempted or left with 75. docs/launch.md has how it behaves.
namespace tw::launch {

/// Settings of Deployment::on for this engine.
struct SkySettings {
  std::vector<std::string> join;  ///< HOST:PORT of peers on on-demand or owned machines; commas between them
  std::vector<std::pair<std::string, std::string>> mounts;  ///< "mount": /PATH=SOURCE, commas between them
  std::optional<int> disk_gb;                               ///< "disk"
  std::optional<double> most_usd_per_h;                     ///< "max-hourly-cost", of each machine
};

/// The error names the setting that is unknown or has a wrong value.
Result<SkySettings> sky_settings(const Deployment& deployment);

/// Addresses of running peers; not empty for a deployment that check() accepts.
std::vector<std::string> sky_meeting_places(const Deployment& deployment, const SkySettings& settings);

/// The sh script that a machine runs: it holds no secret.
std::string sky_script(const Deployment& deployment, const PeerJob& peer, const SkySettings& settings);

/// The managed job, a YAML file for `sky jobs launch`.
std::string sky_task(const Deployment& deployment, const PeerJob& peer, const SkySettings& settings);

/// A record of `sky jobs queue --all -o json`.
struct SkyJob {
  std::int64_t id = 0;
  std::string name;
  PeerState state = PeerState::unknown;
  bool lives = false;                 ///< or may: cancelling it makes sense
  std::int64_t submitted_unix_s = 0;  ///< 0: not known
  std::string where, detail;
  std::uint32_t recoveries = 0;
};

/// text: what `sky jobs queue -o json` printed.
Result<std::vector<SkyJob>> read_sky_queue(std::string_view text);

/// The jobs of a peer under all names that it has had: RUN-p3, RUN-p3-r1. Those that live come first, and the
/// newest of them.
std::vector<SkyJob> sky_jobs_of(const std::vector<SkyJob>& queue, const Deployment& deployment,
                                const PeerJob& peer);

/// `sky jobs launch` returns before its job is in the queue: until then, and for at most ten minutes, a peer
/// that `tw up` started is waiting. jobs: sky_jobs_of() this peer.
bool is_on_its_way(const Deployment& deployment, const PeerJob& peer, const std::vector<SkyJob>& jobs,
                   std::int64_t now_unix_s);

/// now: when the queue was read.
std::vector<PeerReport> sky_reports(const std::vector<SkyJob>& queue, const Deployment& deployment,
                                    std::int64_t now_unix_s);

}  // namespace tw::launch
