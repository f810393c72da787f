// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_trace.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "monitor/logs/event_log_json.h"
#include "wire/limits.h"

namespace tw::cli {

TraceLogs::TraceLogs(std::string folder, const std::vector<sim::SiteSpec>& sites)
    : folder_(std::move(folder)) {
  for (const sim::SiteSpec& site : sites)
    if (site.usd_per_h > 0) usd_per_h_[site.name.substr(0, wire::kMostSiteBytes)] = site.usd_per_h;
}

void TraceLogs::write(PeerId writer, world::Event event) {
  if (auto* start = std::get_if<event::Start>(&event.fact))
    if (const auto price = usd_per_h_.find(start->site); price != usd_per_h_.end())
      start->usd_per_h = price->second;
  auto [file, is_new] = files_.try_emplace(writer);
  if (is_new)
    file->second.open(folder_ + "/" + monitor::event_log_name(writer), std::ios::binary | std::ios::trunc);
  const std::int64_t unix_nanos = event.at.time_since_epoch().count();
  file->second << monitor::to_json_line(
                      {.writer = writer, .unix_nanos = unix_nanos, .event = std::move(event)})
               << '\n';
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
