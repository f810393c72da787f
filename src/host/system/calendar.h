// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::host {

/// Seconds since 1970, by the wall clock of this machine: for dates, never for a time limit. From any thread.
std::int64_t now_unix_s();

}  // namespace tw::host
