// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/skypilot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/engines/engines.h"
#include "launch/engines/test_clouds.h"

namespace tw::launch {
namespace {

std::string task_of(const Deployment& deployment, std::uint32_t number) {
  auto settings = sky_settings(deployment);
  EXPECT_TRUE(settings.ok());
  return sky_task(deployment, *find_peer(deployment, number), settings.value());
}

std::string sky_trouble(const Deployment& deployment) {
  const Status status = skypilot_engine()->check(deployment);
  return status ? "" : status.error().message;
}

TEST(SkyPilot, asks_for_the_planners_alternatives_in_their_order) {
  const std::string task = task_of(three_clouds(), 2);
  const auto first = task.find("infra: aws/us-east-1/us-east-1a");
  const auto second = task.find("infra: gcp/us-central1/us-central1-a");
  const auto third = task.find("infra: azure/eastus");
  EXPECT_LT(task.find("ordered:"), first);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos);
  EXPECT_EQ(task_of(three_clouds(), 1).find("ordered:"), std::string::npos);
}

TEST(SkyPilot, starts_a_peer_again_that_left_on_a_notice_but_not_one_whose_run_is_complete) {
  EXPECT_NE(task_of(three_clouds(), 1).find("recover_on_exit_codes: [75]"), std::string::npos);
}

TEST(SkyPilot, one_node_a_job_so_that_only_the_lost_one_comes_back) {  // skypilot#3907
  EXPECT_NE(task_of(three_clouds(), 1).find("num_nodes: 1\n"), std::string::npos);
}

TEST(SkyPilot, keeps_the_token_in_a_file_that_its_owner_alone_may_read) {
  const Deployment deployment = three_clouds();
  int secrets = 0;
  for (const File& file : skypilot_engine()->files(deployment)) {
    if (file.text.find(deployment.token) == std::string::npos) continue;
    EXPECT_EQ(file.mode, 0600U) << file.path;
    EXPECT_EQ(file.text, "TW_TOKEN=tw1-secret\n");
    ++secrets;
  }
  EXPECT_EQ(secrets, 2);
  for (const Action action : {Action::start, Action::stop, Action::logs})
    for (const Command& command : skypilot_engine()->commands(action, deployment, deployment.peers))
      for (const std::string& word : command.words) EXPECT_EQ(word.find(deployment.token), std::string::npos);
}

TEST(SkyPilot, variables_are_what_they_were_once_dotenv_has_read_them) {
  Deployment deployment = three_clouds();
  deployment.user = {.command = {"true"}, .env = {{"KEY", "it's $a ${b}\\\n"}}};
  bool seen = false;
  for (const File& file : skypilot_engine()->files(deployment))
    seen = seen || file.text == "TW_TOKEN=tw1-secret\nKEY='it\\'s $a ${:-$}{b}\\\\\n'\n";
  EXPECT_TRUE(seen);
}

TEST(SkyPilot, every_start_joins_those_that_stay) {
  const std::string task = task_of(three_clouds(), 1);
  EXPECT_NE(task.find("--join 203.0.113.5:7000"), std::string::npos);
  EXPECT_EQ(task.find("--wait-for"), std::string::npos);
  Deployment begun = three_clouds();
  begun.begun = true;
  EXPECT_NE(task_of(begun, 1).find("--rejoin"), std::string::npos);
}

TEST(SkyPilot, a_run_file_that_holds_the_mark_of_its_end_arrives_whole) {
  Deployment deployment = three_clouds();
  deployment.run_file = "a: END_OF_RUN_FILE\nb: 2";
  const std::string script = sky_script(deployment, deployment.peers[0], {});
  EXPECT_NE(script.find("<<'END_OF_RUN_FILE_'\na: END_OF_RUN_FILE\nb: 2\nEND_OF_RUN_FILE_\n"),
            std::string::npos);
}

TEST(SkyPilot, commands_name_one_managed_job_each) {
  const Deployment deployment = three_clouds();
  const auto start = skypilot_engine()->commands(Action::start, deployment, {deployment.peers[1]});
  ASSERT_EQ(start.size(), 1U);
  EXPECT_EQ(shell_line(start[0].words),
            "sky jobs launch --name mnist-p2 --yes --async --secret-file "
            "/home/ann/tradewind/mnist/skypilot/p2.env /home/ann/tradewind/mnist/skypilot/mnist-p2.yaml");
  EXPECT_EQ(start[0].limit, std::chrono::minutes(10));
  EXPECT_TRUE(skypilot_engine()->commands(Action::remove, deployment, {}).empty());
}

TEST(SkyPilot, says_what_is_wrong_with_a_deployment) {
  EXPECT_EQ(sky_trouble(three_clouds()), "");
  Deployment deployment = three_clouds();
  deployment.on.erase("join");
  EXPECT_NE(sky_trouble(deployment).find("--with join=HOST:PORT"), std::string::npos);
  deployment = three_clouds();
  deployment.image = "";
  EXPECT_NE(sky_trouble(deployment).find("--image NAME"), std::string::npos);
  EXPECT_NE(sky_trouble(deployment).find("a line of program.setup that installs it"), std::string::npos);
  deployment.user.setup = {"pip install tradewind"};
  EXPECT_EQ(sky_trouble(deployment), "");
  deployment.anew = true;
  EXPECT_NE(sky_trouble(deployment).find("--anew is for the peer that begins the run"), std::string::npos);
  deployment.anew = false;
  deployment.peers[0].machine.purchase = market::Purchase::owned;
  EXPECT_NE(
      sky_trouble(deployment).find("peer 1 is planned on a machine of your own (aws:us-east-1:us-east-1a)"),
      std::string::npos);
}

TEST(SkyPilot, names_the_setting_that_is_wrong) {
  const auto trouble = [](const std::string& key, const std::string& value) {
    Deployment deployment = three_clouds();
    deployment.on[key] = value;
    return sky_trouble(deployment);
  };
  EXPECT_EQ(trouble("region", "a"),
            "skypilot: region=a: unknown setting; expected one of join, mount, disk, max-hourly-cost");
  EXPECT_EQ(trouble("join", "host"), "skypilot: join=host: expected HOST:PORT of a peer");
  EXPECT_EQ(trouble("disk", "50GB"), "skypilot: disk=50GB: expected GB, a whole number from 1");
  EXPECT_EQ(trouble("max-hourly-cost", "0"), "skypilot: max-hourly-cost=0: expected USD, more than 0");
  EXPECT_EQ(trouble("mount", "data=s3://x"),
            "skypilot: mount=data=s3://x: expected /PATH=SOURCE, such as /data=s3://bucket/mnist");
}

/// As `sky jobs queue --output json` of SkyPilot 0.14.1 prints records; tests/python/test_skypilot.py makes
/// some with its own code.
std::string record(int id, const std::string& name, const std::string& status, int recoveries = 0,
                   const std::string& submitted_at = "null") {
  return fmt::format(
      R"json({{"job_id": {}, "job_name": "{}", "status": "{}", "infra": "AWS (us-east-1a)",
           "failure_reason": null, "recovery_count": {}, "submitted_at": {}}})json",
      id, name, status, recoveries, submitted_at);
}

constexpr std::int64_t kNow_s = 1'800'000'000;

Output queue_of(const std::string& text) { return {.exit_code = 0, .text = text, .unix_s = kNow_s}; }

std::vector<PeerReport> reports(const std::string& text, const Deployment& deployment = three_clouds()) {
  auto read = skypilot_engine()->states(deployment, {queue_of(text)});
  EXPECT_TRUE(read.ok());
  return read.value();
}

/// Peer 1 was started some seconds ago.
Deployment started_before(std::int64_t seconds) {
  Deployment deployment = three_clouds();
  mark_started(deployment, {deployment.peers[0]}, kNow_s - seconds);
  return deployment;
}

TEST(SkyQueue, of_a_skypilot_that_is_too_old_names_the_remedy) {
  Output old{.command = skypilot_engine()->commands(Action::status, three_clouds(), {}).front(),
             .exit_code = 2};
  old.errors = "Usage: sky jobs queue [OPTIONS]\n\nError: No such option: --output\n";
  EXPECT_EQ(std::ranges::count(old.command.fine, old.exit_code), 1) << "its failure is said once";
  const std::string expected =
      "skypilot: sky jobs queue --all --output json ended with 2: Error: No such option: --output; expected "
      "SkyPilot 0.12 or newer: pip install --upgrade skypilot";
  EXPECT_EQ(skypilot_engine()->states(three_clouds(), {old}).error().message, expected);
  EXPECT_EQ(skypilot_engine()->remains(Action::stop, three_clouds(), three_clouds().peers, {old}).living,
            expected);
  old.errors = "Error: Invalid value for --output\n";
  EXPECT_EQ(skypilot_engine()->states(three_clouds(), {old}).error().message,
            "skypilot: sky jobs queue --all --output json ended with 2: Error: Invalid value for --output");
}

TEST(SkyQueue, the_newest_job_of_a_name_counts) {
  const auto all = reports("[" + record(7, "mnist-p2", "RECOVERING", 3) + "," +
                           record(2, "mnist-p2", "CANCELLED") + "," + record(3, "other", "RUNNING") + "]");
  EXPECT_EQ(all[0], (PeerReport{.number = 1}));
  EXPECT_EQ(all[1].state, PeerState::waiting);
  EXPECT_EQ(all[1].restarts, 3U);
  EXPECT_EQ(all[1].where, "AWS (us-east-1a)");
}

TEST(SkyQueue, tells_the_end_of_a_run_from_a_failure) {
  EXPECT_EQ(reports("[" + record(1, "mnist-p1", "SUCCEEDED") + "]")[0].state, PeerState::done);
  EXPECT_EQ(reports("[" + record(1, "mnist-p1", "CANCELLED") + "]")[0].state, PeerState::absent);
  EXPECT_EQ(reports("[" + record(1, "mnist-p1", "FAILED_NO_RESOURCE") + "]")[0].state, PeerState::failed);
}

TEST(SkyQueue, a_word_of_a_later_version_is_shown_and_nobody_is_started_in_its_place) {
  for (const char* word : {"HIBERNATING", "FAILED_CONTROLLER", ""}) {
    const PeerReport report = reports("[" + record(1, "mnist-p1", word) + "]")[0];
    EXPECT_EQ(report.state, PeerState::unknown) << word;
    EXPECT_THAT(report.detail, testing::StartsWith(word));
  }
}

TEST(SkyQueue, a_peer_that_was_started_just_now_is_on_its_way_into_the_queue) {
  const std::string none = "[]";
  EXPECT_EQ(reports(none, started_before(5))[0].state, PeerState::waiting);
  EXPECT_EQ(reports(none, started_before(5))[0].detail, "started 5 s ago, not in the queue yet");
  EXPECT_EQ(reports(none, started_before(599))[0].state, PeerState::waiting);
  EXPECT_EQ(reports(none, started_before(600))[0].state, PeerState::absent);
  EXPECT_EQ(reports(none)[0].state, PeerState::absent) << "a state file without the time";
  const std::string before = std::to_string(kNow_s - 5000), since = std::to_string(kNow_s - 40) + ".5";
  EXPECT_EQ(reports("[" + record(1, "mnist-p1", "CANCELLED", 0, before) + "]", started_before(50))[0].state,
            PeerState::waiting)
      << "the job of an earlier start";
  EXPECT_EQ(reports("[" + record(1, "mnist-p1", "FAILED", 0, since) + "]", started_before(50))[0].state,
            PeerState::failed)
      << "the job of this one";
}

TEST(SkyQueue, a_peer_that_was_started_again_at_once_is_not_taken_for_its_first_job) {
  Deployment deployment = started_before(20);
  deployment.peers[0].restart = 1;
  const std::string first = record(1, "mnist-p1", "FAILED", 0, std::to_string(kNow_s - 50));
  EXPECT_EQ(reports("[" + first + "]", deployment)[0].state, PeerState::waiting);
  const std::string again = record(2, "mnist-p1-r1", "FAILED", 0, std::to_string(kNow_s - 10));
  EXPECT_EQ(reports("[" + first + "," + again + "]", deployment)[0].state, PeerState::failed);
}

TEST(SkyQueue, a_job_that_lives_is_the_peers_under_any_of_its_names_and_two_of_them_are_named) {
  Deployment deployment = three_clouds();
  deployment.peers[0].restart = 1;
  const auto one = reports(
      "[" + record(4, "mnist-p1", "RUNNING") + "," + record(9, "mnist-p1-r1", "FAILED") + "]", deployment)[0];
  EXPECT_EQ(one.state, PeerState::running);
  EXPECT_EQ(one.detail, "RUNNING");
  const auto two = reports("[" + record(4, "mnist-p1", "RUNNING") + "," + record(9, "mnist-p1", "PENDING") +
                               "," + record(10, "mnist-p10", "RUNNING") + "]",
                           deployment)[0];
  EXPECT_EQ(two.state, PeerState::waiting);
  EXPECT_EQ(two.detail, "PENDING; 2 jobs live: 9 (mnist-p1), 4 (mnist-p1)");
}

TEST(SkyQueue, messages_before_the_list_do_no_harm_and_anything_else_is_an_error) {
  EXPECT_EQ(reports("Fetching jobs\n[" + record(1, "mnist-p1", "RUNNING") + "]")[0].state,
            PeerState::running);
  EXPECT_FALSE(read_sky_queue("no controller").ok());
}

Remains remains_of(const std::string& queue, const Deployment& deployment = three_clouds()) {
  return skypilot_engine()->remains(Action::stop, deployment, {deployment.peers[0]}, {queue_of(queue)});
}

TEST(SkyStop, cancels_all_jobs_of_a_peer_by_their_ids_and_looks_again) {
  const auto asked = skypilot_engine()->commands(Action::stop, three_clouds(), three_clouds().peers);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(shell_line(asked[0].words), "sky jobs queue --all --output json");
  EXPECT_EQ(asked[0].limit, std::chrono::minutes(2) + three_clouds().grace);
  EXPECT_TRUE(asked[0].again_when_late);
  const Remains remains =
      remains_of("[" + record(3, "mnist-p1", "RUNNING") + "," + record(5, "mnist-p1", "PENDING") + "," +
                 record(6, "mnist-p1-r2", "RECOVERING") + "," + record(7, "mnist-p2", "RUNNING") + "," +
                 record(2, "mnist-p1", "FAILED") + "]");
  ASSERT_EQ(remains.next.size(), 2U);
  EXPECT_EQ(shell_line(remains.next[0].words), "sky jobs cancel --yes 6 5 3");
  EXPECT_EQ(remains.next[1], asked[0]);
  EXPECT_THAT(remains.living, testing::HasSubstr("mnist-p1: skypilot: job 3 lives: RUNNING"));
}

TEST(SkyStop, ends_when_every_job_has_ended_or_is_being_cancelled) {
  for (const char* status : {"CANCELLED", "CANCELLING", "FAILED", "FAILED_CONTROLLER", "SUCCEEDED"})
    EXPECT_EQ(remains_of("[" + record(3, "mnist-p1", status) + "]").living, "") << status;
  EXPECT_EQ(remains_of("[]").living, "");
}

TEST(SkyStop, a_job_that_is_not_in_the_queue_yet_has_not_ended) {
  const Remains remains = remains_of("[]", started_before(20));
  EXPECT_THAT(remains.living,
              testing::HasSubstr("mnist-p1: skypilot: started 20 s ago, and its job is not in"));
  ASSERT_EQ(remains.next.size(), 1U);
  EXPECT_EQ(remains.next[0].words[2], "queue");
  EXPECT_EQ(remains_of("[]", started_before(700)).living, "");
}

TEST(SkyStop, an_answer_that_is_no_queue_proves_nothing) {
  const Remains remains = remains_of("Traceback");
  EXPECT_TRUE(remains.next.empty());
  EXPECT_THAT(remains.living, testing::HasSubstr("expected the list that `sky jobs queue"));
}

}  // namespace
}  // namespace tw::launch
