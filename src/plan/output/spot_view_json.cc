// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/output/spot_view.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

std::string_view word_of(Mode mode) {
  switch (mode) {
    case Mode::idle:
      return "idle";
    case Mode::spot:
      return "spot";
    case Mode::on_demand:
      return "on-demand";
  }
  return "";
}

Error unexpected(const std::string& line, const std::string& expected) {
  return Error{fmt::format("{}: expected {}", line.empty() ? "no answer" : line, expected)};
}

}  // namespace

std::string to_json_line(const SpotView& view) {
  Json zones = Json::array();
  for (const ZoneView& zone : view.zones)
    zones.push_back({{"name", zone.name},
                     {"available", zone.sight.up},
                     {"age_h", zone.sight.age_h},
                     {"spot_usd_h", zone.spot_usd_h},
                     {"move_usd", zone.move_usd},
                     {"lasts_h", zone.sight.up ? zone.lasts_h() : 0},
                     {"avoid_h", zone.avoid_h()}});
  Json json{{"passed_h", view.passed_h},
            {"time_left_h", view.time_left_h},
            {"work_done_h", view.work_done_h},
            {"work_left_h", view.work_left_h},
            {"change_over_h", view.change_over_h},
            {"on_demand_usd_h", view.on_demand_usd_h},
            {"machine", word_of(view.mode)},
            {"zone", view.mode == Mode::spot ? view.zones[view.zone].name : ""},
            {"starting_h", view.starting_h},
            {"zones", zones}};
  return json.dump() + "\n";
}

Result<SpotDecision> read_decision(const SpotView& view, const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  constexpr const char* kAnswer =
      R"({"action": "stay", "move", "on-demand" or "wait", "zone": NAME with move, "reason": text or none})";
  if (!json.is_object() || !json.contains("action") || !json["action"].is_string() ||
      (json.contains("reason") && !json["reason"].is_string()))
    return unexpected(line, kAnswer);
  SpotDecision decision{.reason = json.value("reason", "")};
  const std::string word = json["action"].get<std::string>();
  for (const SpotAction action :
       {SpotAction::stay, SpotAction::move, SpotAction::on_demand, SpotAction::wait}) {
    if (word != to_string(action)) continue;
    decision.action = action;
    if (action != SpotAction::move) return decision;
    const std::string name = json.contains("zone") && json["zone"].is_string() ? json["zone"] : "";
    const auto zone = std::ranges::find(view.zones, name, &ZoneView::name);
    if (zone == view.zones.end()) {
      std::vector<std::string> names;
      for (const ZoneView& one : view.zones) names.push_back(one.name);
      return unexpected(line, fmt::format("zone: one of {}", fmt::join(names, ", ")));
    }
    if (!zone->sight.up) return unexpected(line, "a zone that is available");
    decision.zone = static_cast<std::size_t>(zone - view.zones.begin());
    return decision;
  }
  return unexpected(line, kAnswer);
}

}  // namespace tw::plan
