// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

/// The one place where `tw` writes to stdout and stderr. Nothing here throws, control characters are shown as
/// \xNN (base/text/printable.h), and what cannot be written ends nothing. Main thread only.
namespace tw::cli {

/// A result, on stdout. finish_output() reports failed writes.
void print_out_text(std::string_view text);

/// The same, handed to the system at once.
void print_out_now(std::string_view text);

template <class... Values>
void print_out(fmt::format_string<Values...> format, Values&&... values) {
  print_out_text(fmt::format(format, std::forward<Values>(values)...));
}

/// A progress line, on stdout; its line end is added. It is dropped instead of waiting for a stopped reader
/// or a blocked terminal: peers must not wait for either. finish_output() reports a full disk, not a reader
/// that went away.
void show_news(std::string_view line);

/// The same on stderr, for failures and for progress beside results; waits a moment for its reader.
void show_aside(std::string_view line);

/// Text for stderr that may hold control sequences; the caller answers for them.
void show_raw(std::string_view text);

/// Text for stdout that may hold control sequences; the caller answers for them. Waits a moment for a slow
/// terminal; false when not all of it was written.
bool show_frame(std::string_view text);

/// The end of every command: the exit code, when all results were written. Else 1 and a message, unless the
/// command failed by itself. If the reader closed the pipe before the end (`| head`), the process ends by
/// SIGPIPE, silently, as other programs do.
int finish_output(int code);

}  // namespace tw::cli
