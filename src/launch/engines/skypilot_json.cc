// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "launch/engines/skypilot.h"

namespace tw::launch {
namespace {

using SkyJson = nlohmann::json;

/// sky/jobs/state.py of SkyPilot 0.14.1, ManagedJobStatus.
PeerState sky_state(const std::string& status) {
  static const std::map<std::string, PeerState, std::less<>> kStates = {
      {"PENDING", PeerState::waiting},    {"SUBMITTED", PeerState::waiting},
      {"STARTING", PeerState::waiting},   {"RECOVERING", PeerState::waiting},
      {"RUNNING", PeerState::running},    {"WINDING_DOWN", PeerState::leaving},
      {"CANCELLING", PeerState::leaving}, {"CANCELLED", PeerState::absent},
      {"SUCCEEDED", PeerState::done},
  };
  const auto found = kStates.find(status);
  // FAILED, FAILED_SETUP, FAILED_PRECHECKS, FAILED_NO_RESOURCE, FAILED_CONTROLLER
  return found == kStates.end() ? PeerState::failed : found->second;
}

std::string sky_text(const SkyJson& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t sky_number(const SkyJson& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

PeerReport sky_report(std::uint32_t number, const SkyJson& record) {
  PeerReport report{.number = number, .state = sky_state(sky_text(record, "status"))};
  report.where = sky_text(record, "infra");
  report.restarts =
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, sky_number(record, "recovery_count")));
  report.detail = sky_text(record, "status");
  const std::string reason = sky_text(record, "failure_reason");
  const std::string details = reason.empty() ? sky_text(record, "details") : reason;
  if (!details.empty()) report.detail += ": " + details;
  if (report.state == PeerState::done) report.exit_code = 0;
  return report;
}

/// Messages of SkyPilot may stand before the list.
std::string_view sky_list(std::string_view text) {
  if (text.starts_with('[')) return text;
  const auto at = text.find("\n[");
  return at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
}

}  // namespace

Result<std::vector<PeerReport>> read_sky_queue(const Deployment& deployment, std::string_view text) {
  const SkyJson queue = SkyJson::parse(sky_list(text), nullptr, false);
  if (!queue.is_array())
    return Error{
        fmt::format("skypilot: expected the list that `sky jobs queue -o json` prints (SkyPilot 0.12 or "
                    "newer), found {} bytes of "
                    "something else",
                    text.size())};
  std::map<std::string, const SkyJson*> newest;
  for (const SkyJson& record : queue) {
    const SkyJson*& known = newest[sky_text(record, "job_name")];
    if (known == nullptr || sky_number(*known, "job_id") < sky_number(record, "job_id")) known = &record;
  }
  std::vector<PeerReport> reports;
  for (const PeerJob& peer : deployment.peers) {
    const auto found = newest.find(job_name(deployment, peer));
    reports.push_back(found == newest.end() ? PeerReport{.number = peer.number}
                                            : sky_report(peer.number, *found->second));
  }
  return reports;
}

}  // namespace tw::launch
