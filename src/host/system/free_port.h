// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"

namespace tw::host {

/// A TCP port of 127.0.0.1 that is free at this moment.
Result<std::uint16_t> free_port();

}  // namespace tw::host
