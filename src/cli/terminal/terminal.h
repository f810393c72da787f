// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

/// The one place where `tw` writes to stdout and stderr. Nothing here throws, control characters are shown as
/// \xNN (base/text/printable.h), and what cannot be written ends nothing. Main thread only.
namespace tw::cli {

/// A result, on stdout. What could not be written is told by finish_output().
void print_out_text(std::string_view text);

template <class... Values>
void print_out(fmt::format_string<Values...> format, Values&&... values) {
  print_out_text(fmt::format(format, std::forward<Values>(values)...));
}

/// A line about what goes on, on stdout; it gets its end here. It is dropped where it would have to wait, for
/// a reader that stopped or a terminal that is held up: peers must not wait for either.
void show_news(std::string_view line);

/// The same on stderr, for failures and for what goes on beside results; waits a moment for its reader.
void show_aside(std::string_view line);

/// Text for stderr that may hold control sequences; the caller answers for them.
void show_raw(std::string_view text);

/// Text for stdout that may hold control sequences; the caller answers for them. Waits a moment for a slow
/// terminal; false when not all of it was written.
bool show_frame(std::string_view text);

/// The end of every command: the exit code, when all results were written. Else 1 and a message, unless the
/// command failed by itself. Where the reader went away before the end (`| head`), the process ends by
/// SIGPIPE, without a word, as other programs do.
int finish_output(int code);

/// Keeps files that are opened later from becoming stdin, stdout or stderr where these were closed by whoever
/// started the program; writing to them stays an error. To be called first.
void hold_standard_streams();

}  // namespace tw::cli
