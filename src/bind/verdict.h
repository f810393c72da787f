// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "train/session/departure.h"

namespace tw::bind {

/// Says in a file, in one word, where the peer stands, for `tw run` (launch/local/verdict.h). Loop thread.
class Verdict {
 public:
  /// Empty: no launcher asks.
  explicit Verdict(std::string file) : file_(std::move(file)) {}

  void join() { say("joining"); }

  /// The peer has the state and asks for work.
  void begin();

  bool has_begun() const { return begun_; }

  /// The peer was asked to leave.
  void leave() { asked_ = true; }

  /// The program closes its peer before the end of the run.
  void close() { closes_ = true; }

  bool closes() const { return closes_; }

  /// What is wrong with a run that is complete.
  struct Flaws {
    bool unsaved = false;  ///< the last checkpoint is missing
    bool differs = false;  ///< other peers have other parameters
  };

  void end(train::Ending ending, const Flaws& flaws) { say(word_of(ending, flaws)); }

 private:
  std::string_view word_of(train::Ending ending, const Flaws& flaws) const;
  void say(std::string_view word);

  std::string file_;
  std::string said_;
  bool begun_ = false, asked_ = false, closes_ = false;
};

}  // namespace tw::bind
