// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "world/events.h"

namespace tw::monitor {

/// Turns the events of one peer (or of one leader after the other) into what a person at a terminal wants to
/// read: a line about the rounds every two seconds, and whatever happens to peers and state at once.
class ProgressText {
 public:
  /// rounds: of the run; 0: not known.
  explicit ProgressText(Round rounds = 0) : rounds_(rounds) {}

  /// The run has another number of rounds than was known before.
  void ends_with(Round round) { rounds_ = round; }

  /// The line to show, without its end; nothing when this event is none of a person's business now. Texts of
  /// others in it cannot make a line of their own.
  std::optional<std::string> line_for(const world::Event& event);

 private:
  std::optional<std::string> text_for(const world::Event& event);
  std::optional<std::string> round_line(const world::Event& event, const event::Commit& commit);
  std::optional<std::string> loss_line(const world::Event& event, const event::Lost& lost);

  Round rounds_;
  bool begun_ = false;
  std::optional<std::pair<PeerId, Round>> lost_;  ///< the last one shown: several parts of a peer may say it
  Instant shown_at_{};
  std::uint64_t shown_samples_ = 0;
};

}  // namespace tw::monitor
