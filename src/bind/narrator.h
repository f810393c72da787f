// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "monitor/fold/journal.h"
#include "monitor/terminal/progress_text.h"
#include "peer/links.h"
#include "world/events.h"

namespace tw::bind {

/// What a person at a terminal reads about a peer: collected on the loop thread as it happens, written on the
/// program's thread, so that a reader that stands still never stops the engine. Its owner guards it.
class Narrator {
 public:
  struct Options {
    bool on = true;
    bool terminal = false;              ///< the line about the rounds is written in place
    Round rounds = 0;                   ///< of the run; 0: not known
    std::optional<double> usd_per_h{};  ///< price of this machine
    bool silent = false;                ///< not even what insist() says
  };

  explicit Narrator(Options options) : options_(options), progress_(options.rounds) {}

  /// The last round is another one than the options say.
  void ends_with(Round round) { progress_.ends_with(round); }

  /// To stderr, for this peer.
  static Narrator of(const peer::Options& peer);

  /// journal: what the peer knows of the run and its cost; nullptr: nothing. It is asked for a board where a
  /// line about rounds is due, every two seconds at most.
  void take(const world::Event& event, const monitor::Journal* journal = nullptr);
  void say(std::string line);

  /// Also where nobody follows the progress: why a program has nothing to do.
  void insist(std::string line);

  /// Also where all else is off: an address that was asked for, and is known from nowhere else.
  void announce(std::string line);

  /// What is to be written now. last: nothing follows it.
  std::string take_text(bool last = false);

 private:
  struct Line {
    std::string text;
    bool round = false;  ///< the next one about rounds takes its place
  };

  void add(Line line);
  std::string dollars(Instant now, const monitor::Journal* journal) const;

  Options options_;
  monitor::ProgressText progress_;
  std::optional<Instant> began_{};
  std::vector<Line> lines_{};
  std::size_t width_ = 0;  ///< of the line in place; 0: there is none
};

}  // namespace tw::bind
