// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tw::host {

/// Opens /dev/null where stdin, stdout or stderr is closed, as launchers and daemons leave them; so no socket
/// and no log of this process gets its number, and no printf() of the program goes there. Use of such a
/// stream fails as before. To be called before anything else is opened.
void hold_standard_streams();

/// What cannot be written is dropped. A reader that is gone never ends this process (SIGPIPE), whatever the
/// program has made of that signal.
void write_to_stderr(std::string_view text);

}  // namespace tw::host
