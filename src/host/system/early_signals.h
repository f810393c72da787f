// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace tw::host {

/// Keeps signals that arrive before the loop runs. Process 1 of a container has no default actions: a signal
/// that it does not catch yet is lost, and with it the notice. Async-signal-safe; may be called before the
/// constructors of libraries. The second SIGINT ends the process all the same. An ignored SIGHUP stays so.
void catch_early_signals(std::span<const int> signals);

/// The process ignores this signal, as nohup leaves SIGHUP: whoever started it wants it to outlive the
/// terminal.
bool ignores(int signal);

/// The signals that arrived, each once. Call it after installing other handlers.
std::vector<int> take_early_signals();

}  // namespace tw::host
