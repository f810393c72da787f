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

/// Size of the terminal at stdout; 80 x 24 if it is not known.
ScreenSize screen_size();

/// Output that turns the shown lines into the wanted ones: an escape sequence for each line that differs.
/// Pure. An empty `shown` means an unknown screen, which is cleared.
std::string repainting(const std::vector<std::string>& shown, const std::vector<std::string>& wanted);

/// The whole terminal: no cursor, keys as they are typed and without echo; Ctrl-C and Ctrl-Z stay signals.
/// Its former content comes back at the end of this object, or when the process dies of a broken assertion or
/// another fault. One at a time; main thread.
class Screen {
 public:
  /// Error: stdin or stdout is no terminal, or one that cannot do it (TERM=dumb).
  static Result<Screen> take();
  Screen(Screen&& other) noexcept;
  Screen& operator=(Screen&&) = delete;
  ~Screen();

  void show(std::vector<std::string> lines);

  /// The next show() paints everything, for example after a change of size.
  void forget();

  /// Gives the terminal back, stops this process as Ctrl-Z does, and takes the terminal again.
  void stop_here();

 private:
  Screen() = default;

  std::vector<std::string> shown_;
  bool owned_ = true;
};

}  // namespace tw::cli
