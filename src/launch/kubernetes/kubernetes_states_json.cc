// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "launch/kubernetes/kubernetes.h"

namespace tw::launch {
namespace {

using PodJson = nlohmann::json;
using PodField = nlohmann::json::json_pointer;

std::string pod_text(const PodJson& json, const char* path) {
  const PodField pointer(path);
  return json.contains(pointer) && json.at(pointer).is_string() ? json.at(pointer).get<std::string>() : "";
}

std::optional<int> pod_number(const PodJson& json, const char* path) {
  const PodField pointer(path);
  if (!json.contains(pointer) || !json.at(pointer).is_number_integer()) return std::nullopt;
  return json.at(pointer).get<int>();
}

bool job_is(const PodJson& job, const std::string& type) {
  const PodField pointer("/status/conditions");
  if (!job.contains(pointer) || !job.at(pointer).is_array()) return false;
  return std::ranges::any_of(job.at(pointer), [&](const PodJson& condition) {
    return pod_text(condition, "/type") == type && pod_text(condition, "/status") == "True";
  });
}

/// The one container's; nothing while it runs.
std::optional<int> pod_exit_code(const PodJson& pod) {
  return pod_number(pod, "/status/containerStatuses/0/state/terminated/exitCode");
}

/// "Unschedulable: 0/3 nodes are available", "ErrImagePull: ...".
std::string reason_of_wait(const PodJson& pod) {
  const auto say = [](const std::string& reason, const std::string& message) {
    return message.empty() ? reason : fmt::format("{}: {}", reason, message);
  };
  const char* const waiting = "/status/containerStatuses/0/state/waiting";
  if (pod.contains(PodField(waiting)))
    return say(pod_text(pod.at(PodField(waiting)), "/reason"),
               pod_text(pod.at(PodField(waiting)), "/message"));
  const PodField pointer("/status/conditions");
  if (pod.contains(pointer))
    for (const PodJson& condition : pod.at(pointer))
      if (pod_text(condition, "/status") == "False" && !pod_text(condition, "/reason").empty())
        return say(pod_text(condition, "/reason"), pod_text(condition, "/message"));
  return pod_text(pod, "/status/reason");
}

/// The objects of one peer.
struct PeerObjects {
  const PodJson* job = nullptr;
  std::vector<const PodJson*> pods;  ///< the oldest first
};

bool has_ended(const PodJson& pod) {
  const std::string phase = pod_text(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

void tell_live_pod(const PodJson& pod, PeerReport& report) {
  const std::string phase = pod_text(pod, "/status/phase");
  report.where = pod_text(pod, "/spec/nodeName");
  report.detail = phase;
  report.state = phase == "Running" ? PeerState::running : PeerState::waiting;
  if (report.state == PeerState::waiting)
    if (const std::string reason = reason_of_wait(pod); !reason.empty())
      report.detail = phase + ", " + reason;
  if (!pod_text(pod, "/metadata/deletionTimestamp").empty()) {
    report.state = PeerState::leaving;
    report.detail = "Terminating";
  }
}

/// Its last pod has ended, and the Job has no other yet.
void tell_between_pods(PeerReport& report) {
  report.state = PeerState::waiting;
  report.detail = "its Job makes another pod";
  if (report.exit_code == kGoesOn) report.detail = "left on a notice, " + report.detail;
}

PeerReport pod_report(std::uint32_t number, const PeerObjects& objects) {
  PeerReport report{.number = number};
  // At its last end but 0: a Job without a failure policy starts it again all the same.
  bool needed_person = false;
  for (const PodJson* pod : objects.pods)
    if (has_ended(*pod)) {
      report.exit_code = pod_exit_code(*pod);
      report.where = pod_text(*pod, "/spec/nodeName");
      if (report.exit_code != 0) needed_person = report.exit_code == kNeedsPerson;
    }
  if (objects.job != nullptr)
    report.restarts =
        static_cast<std::uint32_t>(std::max(0, pod_number(*objects.job, "/status/failed").value_or(0)));
  const auto live = std::find_if(objects.pods.rbegin(), objects.pods.rend(),
                                 [](const PodJson* pod) { return !has_ended(*pod); });
  if (objects.job != nullptr && job_is(*objects.job, "Complete")) {
    report.state = needed_person ? PeerState::failed : PeerState::done;
    report.exit_code = needed_person ? kNeedsPerson : 0;
    if (needed_person) report.detail = "its Job started it again, and then it ended with 0";
  } else if (objects.job != nullptr && job_is(*objects.job, "Failed")) {
    report.state = PeerState::failed;
    report.detail = "its Job has failed";
  } else if (live != objects.pods.rend()) {
    tell_live_pod(**live, report);
  } else if (objects.job != nullptr) {
    tell_between_pods(report);
  }
  return report;
}

bool is_older_pod(const PodJson* a, const PodJson* b) {
  return pod_text(*a, "/metadata/creationTimestamp") < pod_text(*b, "/metadata/creationTimestamp");
}

}  // namespace

Result<std::vector<PeerReport>> read_pods(const Deployment& deployment, std::string_view text) {
  const PodJson list = PodJson::parse(text, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array())
    return Error{
        fmt::format("k8s: expected the List that `kubectl get jobs,pods -o json` prints, found {} bytes of "
                    "something else",
                    text.size())};
  std::map<std::string, PeerObjects> by_number;
  std::map<std::string, const PodJson*> jobs;
  const PodField peer_label(fmt::format("/metadata/labels/{}", "tradewind~1peer"));
  for (const PodJson& item : list["items"]) {
    if (pod_text(item, "/kind") == "Job") jobs[pod_text(item, "/metadata/name")] = &item;
    if (pod_text(item, "/kind") == "Pod")
      by_number[pod_text(item, peer_label.to_string().c_str())].pods.push_back(&item);
  }
  std::vector<PeerReport> reports;
  for (const PeerJob& peer : deployment.peers) {
    PeerObjects& objects = by_number[std::to_string(peer.number)];
    if (const auto job = jobs.find(job_name(deployment, peer)); job != jobs.end()) objects.job = job->second;
    std::ranges::stable_sort(objects.pods, is_older_pod);
    reports.push_back(pod_report(peer.number, objects));
  }
  return reports;
}

}  // namespace tw::launch
