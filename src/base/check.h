// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw {

/// Ends the process after printing where and what. Kept in release builds: a broken invariant must not go on.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace tw

/// States a condition that only a bug of ours can break; never used for input.
#define TW_CHECK(condition)                               \
  do {                                                    \
    if (!(condition)) [[unlikely]]                        \
      ::tw::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
