// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_trace.h"

#include <fmt/format.h>

#include "monitor/logs/event_log_json.h"

namespace tw::cli {

void TraceLogs::write(PeerId writer, const world::Event& event) {
  auto [file, is_new] = files_.try_emplace(writer);
  if (is_new)
    file->second.open(folder_ + "/" + monitor::event_log_name(writer), std::ios::binary | std::ios::trunc);
  const std::int64_t unix_nanos = event.at.time_since_epoch().count();
  file->second << monitor::to_json_line({.writer = writer, .unix_nanos = unix_nanos, .event = event}) << '\n';
  file->second.flush();
}

Status TraceLogs::finish() {
  for (auto& [writer, file] : files_) {
    if (!file.flush()) {
      return Error{fmt::format("cannot write {}/{}", folder_, monitor::event_log_name(writer))};
    }
  }
  return Unit{};
}

}  // namespace tw::cli
