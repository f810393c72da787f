// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/mixed_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/engines/skypilot.h"
#include "launch/engines/test_clouds.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// An anchor on a host of one's own, two spot machines of clouds without an address.
Deployment anchor_and_clouds() {
  Deployment deployment = three_peers();
  deployment.image = "registry.example/tradewind:1";
  for (PeerJob& peer : deployment.peers)
    if (!peer.anchor) peer = peer_on(peer.number, peer.number == 2 ? aws_t4() : gcp_t4());
  deployment.on = {{"ssh.control", "/tmp/c"}, {"skypilot.disk", "100"}};
  return deployment;
}

std::unique_ptr<Engine> engine_of(const char* on) {
  auto engine = make_engine(on);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(engine).value();
}

EngineChoice choice_of(const char* on) { return EngineChoice::parse({on}).value(); }

constexpr const char* kOn = "owned=ssh,spot=skypilot";

TEST(MixedEngine, clouds_find_the_run_through_the_anchor_without_a_setting) {
  const Deployment deployment = anchor_and_clouds();
  EXPECT_TRUE(engine_of(kOn)->check(deployment).ok()) << engine_of(kOn)->check(deployment).error().message;
  const Deployment clouds = part_of(deployment, choice_of(kOn), "skypilot");
  EXPECT_THAT(sky_meeting_places(clouds, {}), ElementsAre("10.0.0.1:7000"));
  EXPECT_EQ(start_of(clouds, clouds.peers.front()), Start::join);
}

TEST(MixedEngine, the_peer_that_others_can_dial_begins_and_waits_for_those_of_its_engine_alone) {
  Deployment deployment = anchor_and_clouds();
  const Deployment hosts = part_of(deployment, choice_of(kOn), "ssh");
  EXPECT_EQ(first_of(hosts).number, 1U);
  EXPECT_THAT(peer_words(hosts, hosts.peers.front(), Start::begin, {}), Contains("1").Times(1));
  // A rented anchor, whose address nobody knows, comes first in the plan.
  std::swap(deployment.peers[0].number, deployment.peers[1].number);
  std::swap(deployment.peers[0], deployment.peers[1]);
  deployment.peers[0].anchor = true;
  deployment.peers[0].machine.purchase = market::Purchase::spot;
  EXPECT_EQ(first_of(deployment).number, 2U);
}

TEST(MixedEngine, gives_each_peer_and_each_setting_to_its_engine) {
  const Deployment deployment = anchor_and_clouds();
  const auto engine = engine_of(kOn);
  std::vector<std::string> programs;
  for (const Command& command : engine->commands(Action::start, deployment, deployment.peers))
    programs.push_back(fmt::format("p{} {}", command.peer, command.words.front()));
  EXPECT_THAT(programs, ElementsAre("p1 ssh", "p2 sky", "p3 sky"));
  EXPECT_EQ(part_of(deployment, choice_of(kOn), "ssh").on,
            (std::map<std::string, std::string>{{"control", "/tmp/c"}}));
  EXPECT_FALSE(engine->restarts(deployment.peers[0]));
  EXPECT_TRUE(engine->restarts(deployment.peers[1]));
}

TEST(MixedEngine, a_peer_that_the_plan_has_no_more_is_stopped_by_its_engine) {
  Deployment deployment = anchor_and_clouds();
  const PeerJob gone = deployment.peers.back();
  deployment.peers.pop_back();
  const auto commands = engine_of(kOn)->commands(Action::stop, deployment, {gone});
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands.front().words.front(), "sky");
}

TEST(MixedEngine, an_engine_that_cannot_be_asked_hides_none_of_the_others) {
  const Deployment deployment = anchor_and_clouds();
  const auto engine = engine_of(kOn);
  std::vector<Output> outputs;
  for (const Command& command : engine->commands(Action::status, deployment, deployment.peers)) {
    EXPECT_THAT(command.fine, Contains(1)) << "no failure ends the asking";
    if (command.peer == 1)
      outputs.push_back({command, 0,
                         R"({"peer":1,"leaving":false,"alive":true,"pid":7,"exit":null,)"
                         R"("starts":1,"host":"gpu1"})"});
    else
      outputs.push_back({command, 1, "", "at line 7\nsky: the API server is down\n"});
  }
  const auto reports = engine->states(deployment, outputs);
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  ASSERT_EQ(reports.value().size(), 3U);
  EXPECT_EQ(reports.value()[0].state, PeerState::running);
  for (const std::size_t at : {1U, 2U}) {
    EXPECT_EQ(reports.value()[at].state, PeerState::unknown);
    EXPECT_EQ(reports.value()[at].detail, "skypilot: exit code 1: sky: the API server is down");
  }
}

TEST(MixedEngine, an_engine_that_is_late_hides_none_of_the_others) {
  const Deployment deployment = anchor_and_clouds();
  const auto engine = engine_of(kOn);
  std::vector<Output> outputs;
  for (const Command& command : engine->commands(Action::status, deployment, deployment.peers))
    outputs.push_back(
        command.peer == 1
            ? Output{command, 0, R"({"peer":1,"alive":true,"pid":7,"exit":null,"starts":1,"host":"g"})"}
            : Output{.command = command,
                     .exit_code = 124,
                     .errors = "sky did not answer within 30 s",
                     .is_late = true});
  const auto reports = engine->states(deployment, outputs);
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(reports.value()[0].state, PeerState::running);
  EXPECT_EQ(reports.value()[2].state, PeerState::unknown);
  EXPECT_EQ(reports.value()[2].detail, "sky did not answer within 30 s");
}

TEST(MixedEngine, what_is_left_of_peers_is_asked_of_their_engine) {
  const Deployment deployment = anchor_and_clouds();
  const auto engine = engine_of(kOn);
  std::vector<Output> outputs;
  for (const Command& command : engine->commands(Action::stop, deployment, deployment.peers))
    outputs.push_back({command, 0, R"([{"job_id": 4, "job_name": "words-p2", "status": "RUNNING"}])"});
  const Remains remains = engine->remains(Action::stop, deployment, deployment.peers, outputs);
  EXPECT_EQ(remains.living, "words-p2: skypilot: job 4 lives: RUNNING");
  ASSERT_EQ(remains.next.size(), 2U);
  EXPECT_EQ(shell_line(remains.next.front().words), "sky jobs cancel --yes 4");
  EXPECT_EQ(remains.next.back(), outputs.back().command) << "so that its output is known again";
}

TEST(MixedEngine, a_cluster_that_fails_comes_after_the_hosts) {
  const Deployment deployment = anchor_and_clouds();
  const auto engine = engine_of("spot=slurm,owned=ssh");
  const auto commands = engine->commands(Action::start, deployment, deployment.peers);
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands.front().words.front(), "ssh") << "a failure of the other one is one for the run";
  EXPECT_EQ(commands.back().peer, 0U);
}

TEST(MixedEngine, tasks_of_slurm_join_where_another_engine_begins) {
  const Deployment deployment = anchor_and_clouds();
  const auto script_of = [&](const char* on) {
    std::string text;
    for (const File& file : engine_of(on)->files(deployment))
      if (file.path == "peer.sh") text = file.text;
    return text;
  };
  const std::string joins = script_of("owned=ssh,spot=slurm");
  EXPECT_THAT(joins, HasSubstr("set -- --join 10.0.0.1:7000\n"));
  EXPECT_THAT(joins, Not(HasSubstr("mkdir ../begun")));
  EXPECT_THAT(script_of("slurm"), HasSubstr("mkdir ../begun"));
}

TEST(MixedEngine, the_engine_of_the_peer_that_begins_comes_first) {
  const Deployment deployment = anchor_and_clouds();
  const auto groups = engine_of("spot=skypilot,owned=ssh")->starts(deployment, deployment.peers);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups.front(), std::vector{deployment.peers.front()});
}

TEST(MixedEngine, engines_without_a_peer_that_others_can_dial_are_refused) {
  Deployment deployment = anchor_and_clouds();
  deployment.on.clear();
  const auto refusal = [&](const char* on) {
    const Status checked = engine_of(on)->check(deployment);
    return checked.ok() ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal("owned=slurm,aws=k8s,gcp=slurm"), "") << "the anchor has an address";
  deployment.peers.front().address.clear();
  EXPECT_THAT(refusal("gcp=slurm,aws=k8s,owned=slurm"),
              HasSubstr("no peer has an address that those of other"));
  EXPECT_EQ(refusal("slurm"), "") << "one engine knows its own";
  deployment = anchor_and_clouds();
  deployment.on["skypilot.join"] = "203.0.113.9:7000";
  EXPECT_THAT(refusal(kOn),
              HasSubstr("skypilot: join=203.0.113.9:7000: peers of this plan on another engine"));
}

TEST(MixedEngine, settings_of_an_engine_without_peers_are_checked) {
  Deployment deployment = anchor_and_clouds();
  std::erase_if(deployment.peers, [](const PeerJob& peer) { return !peer.anchor; });
  deployment.on["skypilot.dsk"] = "7";
  const Status checked = engine_of(kOn)->check(deployment);
  ASSERT_FALSE(checked.ok()) << "they are for peers that the plan has no more";
  EXPECT_THAT(checked.error().message, HasSubstr("skypilot: dsk=7: unknown setting"));
}

TEST(MixedEngine, a_peer_that_no_engine_starts_is_an_error) {
  Deployment deployment = anchor_and_clouds();
  deployment.on.clear();
  const Status checked = engine_of("owned=ssh")->check(deployment);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("nothing starts the spot machine at aws:us-east-1"));
}

TEST(MixedEngine, a_setting_without_an_engine_is_an_error_with_the_remedy) {
  Deployment deployment = anchor_and_clouds();
  deployment.on = {{"disk", "100"}};
  const Status checked = engine_of(kOn)->check(deployment);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("--with disk=100: which engine is it for?"));
  EXPECT_THAT(checked.error().message, HasSubstr("with one of ssh, skypilot"));
}

}  // namespace
}  // namespace tw::launch
