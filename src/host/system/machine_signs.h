// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "world/machine.h"

namespace tw::host {

/// Reads /sys/class/dmi/id and the environment; sends no request.
world::MachineSigns read_machine_signs();

}  // namespace tw::host
