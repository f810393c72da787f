// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/skypilot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

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
  const auto stop = skypilot_engine()->commands(Action::stop, deployment, {deployment.peers[1]});
  EXPECT_EQ(shell_line(stop[0].words), "sky jobs cancel --name mnist-p2 --yes");
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
std::string record(int id, const std::string& name, const std::string& status, int recoveries = 0) {
  return fmt::format(
      R"json({{"job_id": {}, "job_name": "{}", "status": "{}", "infra": "AWS (us-east-1a)",
           "failure_reason": null, "recovery_count": {}}})json",
      id, name, status, recoveries);
}

std::vector<PeerReport> reports(const std::string& text) {
  auto read = read_sky_queue(three_clouds(), text);
  EXPECT_TRUE(read.ok());
  return read.value();
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

TEST(SkyQueue, messages_before_the_list_do_no_harm_and_anything_else_is_an_error) {
  EXPECT_EQ(reports("Fetching jobs\n[" + record(1, "mnist-p1", "RUNNING") + "]")[0].state,
            PeerState::running);
  EXPECT_FALSE(read_sky_queue(three_clouds(), "no controller").ok());
}

}  // namespace
}  // namespace tw::launch
