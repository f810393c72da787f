// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bind/caller_model.h"
#include "bind/tradewind.h"
#include "peer/link_options.h"
#include "train/run/run.h"

namespace tw::bind {

/// The program's settings of the run and of its peer.
struct Settings {
  train::RunOptions run;
  peer::LinkOptions links;
  std::vector<std::string> warnings{};  ///< for the user
  std::uint64_t grain = 1;    ///< samples that the program computes at once, at the beginning; 0: not known
  std::uint64_t threads = 1;  ///< for sums, updates and digests, at most
  std::uint64_t begun = 0;    ///< PeerThread::Plan
  std::string gpu{}, gpu_uuid{};  ///< peer::Options
};

/// Keys of the run file, of a peer's links, "run_file", "grain", "threads", "begun", "gpu" and "gpu_uuid";
/// what is not given comes from TRADEWIND_* of the environment, where `tw run` puts its options. The error is
/// one message that names the key in the program's spelling.
Result<Settings> read_settings(std::span<const tw_setting> given);

/// Adds what the model says of the run; an error names a setting that does not fit it.
Status adapt(Settings& settings, const CallerModel& model);

/// All settings with their values now, as tw_settings gives them.
std::string to_json(const Settings& settings);

}  // namespace tw::bind
