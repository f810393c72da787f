// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace tw::cli {

struct ScreenSize {
  std::size_t width = 80, height = 24;

  bool operator==(const ScreenSize&) const = default;
};

/// What the terminal at stdout has; 80 x 24 where it does not tell.
ScreenSize screen_size();

/// What turns the lines that are shown into the wanted ones: an escape sequence for each line that differs.
/// Pure. `shown` is empty where nothing is known of the screen, which is then cleared.
std::string repainting(const std::vector<std::string>& shown, const std::vector<std::string>& wanted);

/// The whole terminal: no cursor, keys as they are typed and without echo; Ctrl-C and Ctrl-Z stay signals.
/// What stood on it comes back with the end of this object, and where the process dies of a broken assertion
/// or another fault. One at a time; main thread.
class Screen {
 public:
  /// Error: stdin or stdout is no terminal, or one that cannot do it (TERM=dumb).
  static Result<Screen> take();
  Screen(Screen&& other) noexcept;
  Screen& operator=(Screen&&) = delete;
  ~Screen();

  void show(std::vector<std::string> lines);

  /// The next show() paints everything: after another size.
  void forget();

  /// Gives the terminal back, stops this process as Ctrl-Z does, and takes the terminal again.
  void stop_here();

 private:
  Screen() = default;

  std::vector<std::string> shown_;
  bool owned_ = true;
};

}  // namespace tw::cli
