// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tw::measure {

/// As Loop::now.
Instant now();

/// From now on SIGINT and SIGTERM do not end this process; see interrupted().
void watch_interrupts();
bool interrupted();

/// Sleeps until it holds, checked at this interval. Errors: an interrupt; or `what` (a sentence without its
/// end) once five minutes are over.
Status wait_until(const std::string& what, Duration every, const std::function<bool()>& holds);

}  // namespace tw::measure
