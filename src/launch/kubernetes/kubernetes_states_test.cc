// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "launch/engines/test_clouds.h"
#include "launch/kubernetes/kubernetes.h"

namespace tw::launch {
namespace {

/// What kubectl 1.20 prints, cut to what is read; the whole of it is tested by `make test-kubernetes`.
std::string job(const std::string& name, const std::string& status) {
  return fmt::format(R"({{"kind": "Job", "metadata": {{"name": "{}"}}, "status": {}}})", name, status);
}

std::string pod(int peer, const std::string& made, const std::string& status, const std::string& more = "") {
  return fmt::format(
      R"({{"kind": "Pod", "metadata": {{"creationTimestamp": "{}", "labels": {{"tradewind/peer": "{}"}}{}}},
          "spec": {{"nodeName": "node-1"}}, "status": {}}})",
      made, peer, more, status);
}

std::string ended(int code) {
  return fmt::format(
      R"({{"phase": "{}", "containerStatuses": [{{"state": {{"terminated": {{"exitCode": {}}}}}}}]}})",
      code == 0 ? "Succeeded" : "Failed", code);
}

PeerReport report(const std::vector<std::string>& items) {
  std::string list;
  for (const std::string& item : items) list += (list.empty() ? "" : ",") + item;
  auto read = read_pods(two_peers(aws_t4()), R"({"kind": "List", "items": [)" + list + "]}");
  EXPECT_TRUE(read.ok());
  return read.value()[0];
}

const char* const kEarly = "2026-11-23T08:00:00Z";
const char* const kLate = "2026-11-23T08:05:00Z";

TEST(PodStates, a_peer_without_job_and_pod_is_absent) {
  EXPECT_EQ(report({}).state, PeerState::absent);
  EXPECT_EQ(report({job("mnist-p1-r1", R"({"active": 1})")}).state, PeerState::absent)
      << "of another restart";
}

TEST(PodStates, the_newest_live_pod_counts) {
  const PeerReport running = report({job("mnist-p1", R"({"active": 1, "failed": 1})"),
                                     pod(1, kEarly, ended(75)), pod(1, kLate, R"({"phase": "Running"})")});
  EXPECT_EQ(running.state, PeerState::running);
  EXPECT_EQ(running.where, "node-1");
  EXPECT_EQ(running.restarts, 1U);
  EXPECT_EQ(running.exit_code, 75);
}

TEST(PodStates, a_drained_peer_waits_for_the_next_pod_of_its_job) {
  const PeerReport waiting = report({job("mnist-p1", R"({"failed": 1})"), pod(1, kEarly, ended(75))});
  EXPECT_EQ(waiting.state, PeerState::waiting);
  EXPECT_EQ(waiting.detail, "left on a notice, its Job makes another pod");
}

TEST(PodStates, a_complete_job_is_done_and_a_failed_one_failed) {
  const auto status = [](const char* type) {
    return fmt::format(R"({{"conditions": [{{"type": "{}", "status": "True"}}]}})", type);
  };
  EXPECT_EQ(report({job("mnist-p1", status("Complete")), pod(1, kLate, ended(0))}).state, PeerState::done);
  const PeerReport failed = report({job("mnist-p1", status("Failed")), pod(1, kLate, ended(2))});
  EXPECT_EQ(failed.state, PeerState::failed);
  EXPECT_EQ(failed.exit_code, 2);
}

TEST(PodStates, a_job_that_started_a_peer_again_which_needed_a_person_hides_nothing) {
  const std::string complete = job("mnist-p1", R"({"conditions": [{"type": "Complete", "status": "True"}]})");
  const PeerReport hidden = report({complete, pod(1, kEarly, ended(2)), pod(1, kLate, ended(0))});
  EXPECT_TRUE(needs_person(hidden));
  EXPECT_EQ(hidden.detail, "its Job started it again, and then it ended with 0");
  EXPECT_EQ(report({complete, pod(1, kEarly, ended(75)), pod(1, kLate, ended(0))}).state, PeerState::done);
  const std::string between = pod(1, "2026-11-23T08:02:00Z", ended(75));
  EXPECT_EQ(report({complete, pod(1, kEarly, ended(2)), between, pod(1, kLate, ended(0))}).state,
            PeerState::done)
      << "it took part again";
}

TEST(PodStates, says_why_a_pod_waits) {
  const std::string unschedulable =
      R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason":
          "Unschedulable", "message": "0/3 nodes are available"}]})";
  EXPECT_EQ(report({job("mnist-p1", "{}"), pod(1, kLate, unschedulable)}).detail,
            "Pending, Unschedulable: 0/3 nodes are available");
  const std::string no_image =
      R"({"phase": "Pending",
          "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]})";
  EXPECT_EQ(report({job("mnist-p1", "{}"), pod(1, kLate, no_image)}).detail, "Pending, ErrImagePull");
}

TEST(PodStates, a_pod_that_was_told_to_go_is_leaving_even_when_its_job_is_gone) {
  const std::string deleted = R"(, "deletionTimestamp": "2026-11-23T08:06:00Z")";
  EXPECT_EQ(report({pod(1, kLate, R"({"phase": "Running"})", deleted)}).state, PeerState::leaving);
}

TEST(PodStates, of_odd_shapes_do_no_harm) {
  EXPECT_EQ(report({R"({"kind": "Pod"})", "7", R"({"kind": "Job", "metadata": 3, "status": []})"}).state,
            PeerState::absent);
  EXPECT_FALSE(read_pods(two_peers(aws_t4()), "{}").ok());
}

}  // namespace
}  // namespace tw::launch
