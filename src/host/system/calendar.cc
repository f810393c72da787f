// SPDX-License-Identifier: Apache-2.0
#include "host/system/calendar.h"

#include <chrono>

namespace tw::host {

std::int64_t now_unix_s() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

}  // namespace tw::host
