// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "peer/peer.h"
#include "train/session/session.h"

namespace tw::bind {

/// The data of tw_view.
struct View {
  train::SessionView session;
  PeerId self;
  std::string address;
  std::string watch;    ///< URL of the watch page; empty: none
  std::string failure;  ///< of the session or of the process
  std::string unsaved;  ///< monitor::Troubles::unsaved
  std::string differs;  ///< LiveJournal::difference_at_the_end
  std::string refused;  ///< monitor::Troubles::refused
  train::Ending ending = train::Ending::none;
  std::uint64_t peers = 0;
  bool member = false;
  std::uint64_t barriers = 0;           ///< that it has passed
  std::string at_barrier;               ///< for whom it waits in tw_barrier; empty: it does not
  std::uint64_t target_batch_size = 0;  ///< 0: the leader chooses it
  std::vector<std::pair<Round, std::uint64_t>> totals{};  ///< newest rounds: samples of the run up to each
  std::optional<double> loss;         ///< of the run: mean of the newest batch, over all its peers
  std::optional<double> granularity;  ///< computing / communication time of its last round
};

std::string to_json(const View& view);

}  // namespace tw::bind
