// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace tw::host {

/// From now on notes this signal at the moment it comes, also while the program is inside one long call, and
/// then calls the handler that was there before. A handler that the program sets later replaces this one. A
/// SIGTERM that comes a second or more after the first one gives the signal its default action back: the next
/// one ends the process, whatever it is busy with. An ignored SIGHUP (nohup) stays so.
void tap_signal(int signal);

/// Whether signals of this number still come here first. Any thread.
bool is_tapped(int signal);

/// The signals that came since the last call, each once. Any thread.
std::vector<int> take_tapped_signals();

}  // namespace tw::host
