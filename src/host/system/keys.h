// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "host/loop.h"

namespace tw::host {

/// Keys that a person types. The file (a terminal or a pipe) stays open and blocking, as its other users
/// expect it; if it cannot be opened a second time, no keys arrive. Loop thread only; the loop outlives it.
class Keys {
 public:
  /// Calls with the bytes as they arrive, and once with none at the end of the file.
  Keys(Loop& loop, int file, std::function<void(std::string_view bytes)> call);
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys();

 private:
  struct Kernel;
  std::shared_ptr<Kernel> kernel_;  ///< owners: this object, and the wait that is under way
};

}  // namespace tw::host
