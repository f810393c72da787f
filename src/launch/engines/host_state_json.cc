// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launch/engines/host_script.h"

namespace tw::launch {

Result<PeerReport> state_in(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("peer") || !json["peer"].is_number_unsigned())
    return Error{fmt::format("expected the state of a peer as JSON, found \"{}\"", text.substr(0, 200))};
  try {
    PeerReport report{.number = json.at("peer").get<std::uint32_t>()};
    if (!json.contains("starts")) return report;
    report.where = json.at("host").get<std::string>();
    report.restarts = std::max(1U, json.at("starts").get<std::uint32_t>()) - 1;
    if (json.at("alive").get<bool>()) {
      report.state = json.value("leaving", false) ? PeerState::leaving : PeerState::running;
      report.detail = fmt::format("pid {}", json.at("pid").get<std::uint64_t>());
      return report;
    }
    report.state = PeerState::failed;
    report.detail = "gone without an exit code";
    if (json.at("exit").is_null()) return report;
    report.exit_code = json.at("exit").get<int>();
    report.state = state_after(*report.exit_code);
    report.detail.clear();
    return report;
  } catch (const nlohmann::json::exception& e) {
    return Error{fmt::format("the state of a peer: {}", e.what())};
  }
}

}  // namespace tw::launch
