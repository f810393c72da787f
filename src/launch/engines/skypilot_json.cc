// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text/number.h"
#include "launch/engines/skypilot.h"

namespace tw::launch {
namespace {

using SkyJson = nlohmann::json;

/// The times between `sky jobs launch` and the queue: a request, an upload, the start of a controller.
constexpr std::int64_t kOnItsWay_s = 600;
/// Two clocks: that of this machine, and that of the controller.
constexpr std::int64_t kClocksDiffer_s = 60;
/// SkyPilot has given its job up, and knows nothing of the machine.
constexpr const char* kLostController = "FAILED_CONTROLLER";

/// sky/jobs/state.py of SkyPilot 0.14.1, ManagedJobStatus. A word of a later version says nothing.
PeerState sky_state(const std::string& status) {
  static const std::map<std::string, PeerState, std::less<>> kStates = {
      {"PENDING", PeerState::waiting},
      {"SUBMITTED", PeerState::waiting},
      {"STARTING", PeerState::waiting},
      {"RECOVERING", PeerState::waiting},
      {"RUNNING", PeerState::running},
      {"WINDING_DOWN", PeerState::leaving},
      {"CANCELLING", PeerState::leaving},
      {"CANCELLED", PeerState::absent},
      {"SUCCEEDED", PeerState::done},
      {"FAILED", PeerState::failed},
      {"FAILED_SETUP", PeerState::failed},
      {"FAILED_PRECHECKS", PeerState::failed},
      {"FAILED_NO_RESOURCE", PeerState::failed},
  };
  const auto found = kStates.find(status);
  return found == kStates.end() ? PeerState::unknown : found->second;
}

std::string sky_text(const SkyJson& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t sky_number(const SkyJson& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return 0;
  return found->is_number_integer() ? found->get<std::int64_t>()
                                    : static_cast<std::int64_t>(found->get<double>());
}

SkyJob sky_job(const SkyJson& record) {
  const std::string status = sky_text(record, "status");
  SkyJob job{.id = sky_number(record, "job_id"),
             .name = sky_text(record, "job_name"),
             .state = sky_state(status),
             .submitted_unix_s = sky_number(record, "submitted_at"),
             .where = sky_text(record, "infra"),
             .detail = status};
  const bool has_ended = job.state == PeerState::absent || job.state == PeerState::done ||
                         job.state == PeerState::failed || status == kLostController;
  job.lives = !has_ended;
  job.recoveries =
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, sky_number(record, "recovery_count")));
  if (job.state == PeerState::unknown)
    job.detail = status == kLostController ? status + ": its machine may live, look at `sky status`"
                                           : status + ", a state that tw does not know";
  const std::string reason = sky_text(record, "failure_reason");
  const std::string details = reason.empty() ? sky_text(record, "details") : reason;
  if (!details.empty()) job.detail += ": " + details;
  return job;
}

/// "RUN-p3" or "RUN-p3-r12"
bool is_name_of(const std::string& name, const Deployment& deployment, PeerJob peer) {
  peer.restart = 0;
  const std::string first = job_name(deployment, peer), again = first + "-r";
  return name == first || (name.starts_with(again) && parse_number<std::uint32_t>(name.substr(again.size())));
}

/// Messages of SkyPilot may stand before the list.
std::string_view sky_list(std::string_view text) {
  if (text.starts_with('[')) return text;
  const auto at = text.find("\n[");
  return at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
}

std::string twins_among(const std::vector<SkyJob>& jobs) {
  std::vector<std::string> living;
  for (const SkyJob& job : jobs)
    if (job.lives) living.push_back(fmt::format("{} ({})", job.id, job.name));
  return twins_text(living);
}

PeerReport sky_report(const Deployment& deployment, const PeerJob& peer, const std::vector<SkyJob>& jobs,
                      std::int64_t now_unix_s) {
  PeerReport report{.number = peer.number};
  if (is_on_its_way(deployment, peer, jobs, now_unix_s)) {
    report.state = PeerState::waiting;
    report.detail = fmt::format("started {} s ago, not in the queue yet", now_unix_s - peer.started_unix_s);
    return report;
  }
  if (jobs.empty()) return report;
  const SkyJob& job = jobs.front();
  report.state = job.state;
  report.where = job.where;
  report.restarts = job.recoveries;
  report.detail = job.detail + twins_among(jobs);
  if (report.state == PeerState::done) report.exit_code = 0;
  return report;
}

}  // namespace

Result<std::vector<SkyJob>> read_sky_queue(std::string_view text) {
  const SkyJson queue = SkyJson::parse(sky_list(text), nullptr, false);
  if (!queue.is_array())
    return Error{
        fmt::format("skypilot: expected the list that `sky jobs queue -o json` prints (SkyPilot 0.12 or "
                    "newer), found {} bytes of "
                    "something else",
                    text.size())};
  std::vector<SkyJob> jobs;
  for (const SkyJson& record : queue) jobs.push_back(sky_job(record));
  return jobs;
}

std::vector<SkyJob> sky_jobs_of(const std::vector<SkyJob>& queue, const Deployment& deployment,
                                const PeerJob& peer) {
  std::vector<SkyJob> jobs;
  std::ranges::copy_if(queue, std::back_inserter(jobs),
                       [&](const SkyJob& job) { return is_name_of(job.name, deployment, peer); });
  std::ranges::sort(jobs, [](const SkyJob& a, const SkyJob& b) {
    return std::pair(a.lives, a.id) > std::pair(b.lives, b.id);
  });
  return jobs;
}

bool is_on_its_way(const Deployment& deployment, const PeerJob& peer, const std::vector<SkyJob>& jobs,
                   std::int64_t now_unix_s) {
  const std::int64_t started = peer.started_unix_s;
  if (started == 0 || now_unix_s - started >= kOnItsWay_s) return false;
  // The name tells the starts of --keep apart, the time those of `tw up`, which have the same name.
  const std::string name = job_name(deployment, peer);
  return std::ranges::none_of(jobs, [&](const SkyJob& job) {
    return job.lives || (job.name == name && job.submitted_unix_s >= started - kClocksDiffer_s);
  });
}

std::vector<PeerReport> sky_reports(const std::vector<SkyJob>& queue, const Deployment& deployment,
                                    std::int64_t now_unix_s) {
  std::vector<PeerReport> reports;
  for (const PeerJob& peer : deployment.peers)
    reports.push_back(sky_report(deployment, peer, sky_jobs_of(queue, deployment, peer), now_unix_s));
  return reports;
}

}  // namespace tw::launch
