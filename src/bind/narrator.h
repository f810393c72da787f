// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "monitor/terminal/progress_text.h"
#include "peer/links.h"
#include "world/events.h"

namespace tw::bind {

/// What a person at a terminal reads about a peer: collected on the loop thread as it happens, written on the
/// program's thread, so that a reader that stands still never stops the engine. Its owner guards it.
class Narrator {
 public:
  /// usd_per_h: price of this machine, for the line about the rounds. terminal: that line is written in
  /// place.
  Narrator(bool on, bool terminal, std::optional<double> usd_per_h)
      : on_(on), terminal_(terminal), usd_per_h_(usd_per_h) {}

  /// Whether stderr gets lines, and in place.
  static Narrator to_stderr(peer::Progress progress, std::optional<double> usd_per_h);

  void take(const world::Event& event);
  void say(std::string line);

  /// What is to be written now. last: nothing follows it.
  std::string take_text(bool last = false);

 private:
  struct Line {
    std::string text;
    bool round = false;  ///< the next one about rounds takes its place
  };

  void add(Line line);

  bool on_;
  bool terminal_;
  std::optional<double> usd_per_h_;
  monitor::ProgressText progress_{};
  std::optional<Instant> began_{};
  std::vector<Line> lines_{};
  std::size_t width_ = 0;  ///< of the line in place; 0: there is none
};

}  // namespace tw::bind
