// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace tw::cli {

/// "12 of 100 seeds", and how long the rest takes when it goes on as it did: ", about 20 s to go". Pure.
std::string with_time_left(const std::string& words, double share, Duration elapsed);

/// Whether it is time for a line. On a terminal, where it replaces the one before: from the first second on;
/// in a log: every 30 s. Pure. shown: when the last one was; both since the begin.
bool is_due(bool on_terminal, Duration elapsed, Duration shown);

/// How far a long command is, on stderr: the one way to show it. On a terminal one line that changes, and
/// that is gone with this object; elsewhere a line now and then. Main thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  Duration elapsed() const;

  /// share: of the work that is done, 0 to 1; the time left is added to the words where it can be told. Cheap
  /// enough for every step.
  void show(const std::string& words, double share);

  /// Takes the line away, so that something else can be printed.
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
  Duration begin_;
  Duration shown_at_{};
};

}  // namespace tw::cli
