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

  std::set<std::uint32_t> unready, fail_to_start;
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

}  // namespace
}  // namespace tw::launch
