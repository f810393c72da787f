// SPDX-License-Identifier: Apache-2.0
#include "launch/fleet.h"

#include <gtest/gtest.h>

#include <set>

#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

/// A command of its own for each peer and action.
class OneByOne final : public Engine {
 public:
  bool restarts(const PeerJob&) const override { return false; }

  Status check_settings(const Deployment&) const override { return Unit{}; }

  Status check(const Deployment&) const override { return Unit{}; }

  std::vector<File> files(const Deployment&) const override { return {}; }

  std::vector<Command> commands(Action action, const Deployment&,
                                const std::vector<PeerJob>& peers) const override {
    std::vector<Command> commands;
    for (const PeerJob& peer : peers) {
      const bool fails = (action == Action::start ? fail_to_start : unready).contains(peer.number);
      commands.push_back({.words = {fails ? "false" : "true"}, .peer = peer.number});
    }
    return commands;
  }

  Result<std::vector<PeerReport>> states(const Deployment&, const std::vector<Output>&) const override {
    return std::vector<PeerReport>{};
  }

  std::vector<std::vector<PeerJob>> starts(const Deployment& /*deployment*/,
                                           const std::vector<PeerJob>& peers) const override {
    if (!first_alone) return {peers};
    return {{peers.front()}, {peers.begin() + 1, peers.end()}};
  }

  std::set<std::uint32_t> unready, fail_to_start;
  bool first_alone = false;  ///< on an engine of its own
};

std::vector<std::uint32_t> numbers(const Started& started) {
  std::vector<std::uint32_t> numbers;
  for (const PeerJob& peer : started.peers) numbers.push_back(peer.number);
  return numbers;
}

TEST(Fleet, knows_the_peers_that_were_started_where_another_one_was_not) {
  OneByOne engine;
  engine.fail_to_start = {2};
  const Deployment deployment = three_peers();
  const Started started = start(engine, deployment, deployment.peers);
  EXPECT_EQ(numbers(started), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(started.trouble, "false: exit code 1");
}

TEST(Fleet, starts_no_peer_of_a_host_that_is_not_ready) {
  OneByOne engine;
  engine.unready = {2};
  const Deployment deployment = three_peers();
  EXPECT_EQ(numbers(start(engine, deployment, deployment.peers)), std::vector<std::uint32_t>{1})
      << "peer 3 is on the same host";
}

TEST(Fleet, starts_nobody_who_would_join_a_peer_that_did_not_start) {
  OneByOne engine;
  engine.first_alone = true;
  engine.fail_to_start = {1};
  Deployment deployment = three_peers();
  const Started started = start(engine, deployment, deployment.peers);
  EXPECT_TRUE(started.peers.empty());
  EXPECT_NE(started.trouble.find("\np1 did not start, which begins the run"), std::string::npos)
      << started.trouble;
  deployment.begun = true;
  EXPECT_EQ(numbers(start(engine, deployment, deployment.peers)), (std::vector<std::uint32_t>{2, 3}))
      << "they find others";
}

TEST(Fleet, what_fails_on_one_engine_is_no_failure_of_another) {
  OneByOne engine;
  engine.first_alone = true;
  engine.unready = {2};
  const Deployment deployment = three_peers();
  const Started started = start(engine, deployment, deployment.peers);
  EXPECT_EQ(numbers(started), std::vector<std::uint32_t>{1});
  EXPECT_EQ(started.trouble, "false: exit code 1");
}

TEST(CommandRun, a_program_that_is_not_there_is_an_answer_to_those_who_take_any) {
  Command command{.words = {"no-program-of-this-name"}};
  EXPECT_FALSE(run_command(command).ok());
  command.fine = {0, 127};
  const auto output = run_command(command);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output.value().exit_code, 127);
  EXPECT_NE(output.value().errors.find("is it installed?"), std::string::npos);
}

}  // namespace
}  // namespace tw::launch
