// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace tw::cli {

/// "12 of 100 seeds", and the time left at the present speed: ", about 20 s to go". Pure.
std::string with_time_left(const std::string& words, double share, Duration elapsed);

/// Whether it is time for a line. On a terminal, where it replaces the previous one: from the first second
/// on; in a log: every 30 s. Pure. shown: time of the last line; both since the beginning.
bool is_due(bool on_terminal, Duration elapsed, Duration shown);

/// Progress of a long command, on stderr. On a terminal one changing line, which is removed with this object;
/// elsewhere a line now and then. Main thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  Duration elapsed() const;

  /// share: of the work that is done, 0 to 1; the time left is added to the words if it is known. Cheap
  /// enough for every step.
  void show(const std::string& words, double share);

  /// Removes the line, so that other text can be printed.
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
  Duration begin_;
  Duration shown_at_{};
};

}  // namespace tw::cli
