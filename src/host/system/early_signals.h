// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace tw::host {

/// Keeps signals that come before the loop runs. The first process of a container has no default action: one
/// that it does not catch yet is lost, and with it the notice. Async-signal-safe; may be called before the
/// constructors of libraries. The second SIGINT ends the process all the same.
void catch_early_signals(std::span<const int> signals);

/// Those that came, each once, after whoever calls this has taken over from here.
std::vector<int> take_early_signals();

}  // namespace tw::host
