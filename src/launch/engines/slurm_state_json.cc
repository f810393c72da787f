// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/number.h"
#include "launch/engines/slurm_engine.h"

namespace tw::launch {
namespace {

using Json = nlohmann::ordered_json;

/// 5, or {"set": true, "number": 5} of later versions; nothing: not set.
std::optional<std::uint32_t> number_at(const Json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end()) return std::nullopt;
  if (found->is_number()) return found->get<std::uint32_t>();
  if (found->is_object() && found->value("set", false)) return found->value("number", 0U);
  return std::nullopt;
}

/// "RUNNING", or the first of a list.
std::string word_at(const Json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end()) return "";
  if (found->is_array() && !found->empty()) return found->front().get<std::string>();
  return found->is_string() ? found->get<std::string>() : "";
}

/// "1,3-5%2": tasks that wait together.
std::vector<std::uint32_t> tasks_in(const std::string& text) {
  std::vector<std::uint32_t> tasks;
  std::istringstream parts(text.substr(0, text.find('%')));
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const auto from = parse_number<std::uint32_t>(part.substr(0, dash));
    const auto to = dash == std::string::npos ? from : parse_number<std::uint32_t>(part.substr(dash + 1));
    if (from && to && *to - *from < 100'000)
      for (std::uint32_t task = *from; task <= *to; ++task) tasks.push_back(task);
  }
  return tasks;
}

PeerState state_of(const Json& job) {
  const std::string state = word_at(job, "job_state");
  const bool preempted = number_at(job, "preempt_time").value_or(0) > 0;
  if (state == "RUNNING") return preempted ? PeerState::leaving : PeerState::running;
  if (state == "COMPLETING" || state == "STOPPED" || state == "SIGNALING") return PeerState::leaving;
  for (const char* waiting : {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED", "RESIZING",
                              "SPECIAL_EXIT", "REQUEUE_FED", "RESV_DEL_HOLD"})
    if (state == waiting) return PeerState::waiting;
  for (const char* ended : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED",
                            "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"})
    if (state == ended) return PeerState::failed;  // an exit code of the peer's own says more
  return PeerState::unknown;
}

struct Job {
  std::uint32_t array = 0;
  PeerState state = PeerState::absent;
  std::string where, detail;
  std::uint32_t restarts = 0;

  bool lives() const { return state != PeerState::absent && state != PeerState::failed; }
};

/// By task. More than one, where the task was submitted again.
using Jobs = std::map<std::uint32_t, std::vector<Job>>;

void take_job(const Json& json, Jobs& jobs) {
  Job job{.array = number_at(json, "array_job_id").value_or(0),
          .state = state_of(json),
          .where = word_at(json, "nodes"),
          .restarts = number_at(json, "restart_cnt").value_or(0)};
  const std::string reason = word_at(json, "state_reason");
  job.detail = word_at(json, "job_state") + (reason.empty() || reason == "None" ? "" : " (" + reason + ")");
  std::vector<std::uint32_t> tasks = tasks_in(word_at(json, "array_task_string"));
  if (const auto task = number_at(json, "array_task_id"); tasks.empty() && task) tasks = {*task};
  for (const std::uint32_t task : tasks) jobs[task].push_back(job);
}

/// The newest one that lives, else the newest one, which names the others that live.
Job job_of(std::uint32_t task, std::vector<Job> jobs) {
  if (jobs.empty()) return {};
  std::ranges::stable_sort(jobs, [](const Job& a, const Job& b) {
    return std::pair(a.lives(), a.array) > std::pair(b.lives(), b.array);
  });
  std::vector<std::string> living;
  for (const Job& job : jobs)
    if (job.lives()) living.push_back(fmt::format("{}_{}", job.array, task));
  jobs.front().detail += twins_text(living);
  return jobs.front();
}

/// What squeue says when the controller does not answer it; that of 22.05 then ends with exit code 0 and no
/// jobs. Empty: nothing.
std::string errors_in(const Json& answer) {
  std::string said;
  const auto errors = answer.find("errors");
  if (errors == answer.end() || !errors->is_array()) return said;
  for (const Json& error : *errors) {
    said += said.empty() ? "squeue" : ";";
    for (const char* key : {"source", "description", "error"})
      if (const std::string text = word_at(error, key); !text.empty())
        said += (said.ends_with(';') ? " " : ": ") + text;
  }
  return said;
}

struct FilesOfPeer {
  std::optional<int> exit_code;
  std::uint32_t starts = 0;
};

std::map<std::uint32_t, FilesOfPeer> files_in(const std::string& text) {
  std::map<std::uint32_t, FilesOfPeer> files;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    FilesOfPeer& peer = files[json.at("peer").get<std::uint32_t>()];
    if (!json.at("exit").is_null()) peer.exit_code = json.at("exit").get<int>();
    peer.starts = json.at("starts").get<std::uint32_t>();
  }
  return files;
}

PeerReport report_on(std::uint32_t number, const Job& job, const FilesOfPeer& files) {
  PeerReport report{.number = number, .state = job.state, .where = job.where, .detail = job.detail};
  report.restarts = std::max(job.restarts, files.starts > 0 ? files.starts - 1 : 0);
  report.exit_code = files.exit_code;
  if (!job.lives() && files.exit_code) report.state = state_after(*files.exit_code);
  return report;
}

}  // namespace

Result<std::vector<PeerReport>> slurm_states(const Deployment& deployment, const std::string& squeue,
                                             const std::string& files) {
  try {
    Jobs jobs;
    const Json answer = Json::parse(squeue);
    if (const std::string why = errors_in(answer); !why.empty()) return unknown_for(deployment, why);
    for (const Json& job : answer.at("jobs"))
      if (word_at(job, "name") == slurm_job_name(deployment) &&
          word_at(job, "current_working_directory") == deployment.folder)
        take_job(job, jobs);
    auto known = files_in(files);
    std::vector<PeerReport> reports;
    for (const PeerJob& peer : deployment.peers)
      reports.push_back(report_on(peer.number, job_of(peer.number, jobs[peer.number]), known[peer.number]));
    return reports;
  } catch (const Json::exception& e) {
    return Error{fmt::format("squeue --json: {}; expected the job list of Slurm 21.08 or later", e.what())};
  }
}

}  // namespace tw::launch
