// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tw::measure {

/// As Loop::now.
Instant now();

/// From now on SIGINT and SIGTERM do not end this process: interrupted() tells.
void watch_interrupts();
bool interrupted();

/// Sleeps until it holds, which is looked at every so often. Errors: an interrupt; or `what` (a sentence
/// without its end) once five minutes are over.
Status wait_until(const std::string& what, Duration every, const std::function<bool()>& holds);

}  // namespace tw::measure
