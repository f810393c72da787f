// SPDX-License-Identifier: Apache-2.0
#include "launch/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
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
      told.insert(peer.number);
      commands.push_back({.words = {fails ? "false" : "true"}, .peer = peer.number});
      if (action == Action::start && without_client.contains(peer.number))
        commands.back().words = {"no-such-program-of-tw"};
      if (action == Action::start && says_nothing_lives) commands.back().in_vain = 1;  // as false ends
      if (action == Action::start && slow_to_start.contains(peer.number)) {
        commands.back().words = {"sleep", "600"};
        commands.back().limit = std::chrono::milliseconds(50);
      }
    }
    return commands;
  }

  Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                         const std::vector<Output>& outputs) const override {
    std::vector<PeerReport> reports;
    for (const Output& output : outputs)
      if (output.is_late) reports = unknown_for(deployment, output.errors);
    return reports;
  }

  Remains remains(Action, const Deployment&, const std::vector<PeerJob>&,
                  const std::vector<Output>&) const override {
    if (jobs.empty()) return {};
    Remains remains{.next = {{.words = {end_fails ? "false" : "true"}}}, .living = "job " + jobs.back()};
    jobs.pop_back();
    if (!ends) remains.next.clear();
    return remains;
  }

  std::vector<std::vector<PeerJob>> starts(const Deployment& /*deployment*/,
                                           const std::vector<PeerJob>& peers) const override {
    if (!first_alone) return {peers};
    return {{peers.front()}, {peers.begin() + 1, peers.end()}};
  }

  std::set<std::uint32_t> unready, fail_to_start, slow_to_start, without_client;
  bool first_alone = false;                 ///< on an engine of its own
  bool says_nothing_lives = false;          ///< about a start that fails
  mutable std::vector<std::string> jobs{};  ///< that live after a stop
  mutable std::set<std::uint32_t> told{};   ///< peers that commands were for
  bool end_fails = false, ends = true;
};

std::vector<std::uint32_t> numbers_of(const std::vector<PeerJob>& peers) {
  std::vector<std::uint32_t> numbers;
  for (const PeerJob& peer : peers) numbers.push_back(peer.number);
  return numbers;
}

std::vector<std::uint32_t> numbers(const Started& started) { return numbers_of(started.peers); }

Started start_all(const Engine& engine, const Deployment& deployment) {
  return start(engine, deployment, deployment.peers, [](const auto&, const auto&) { return Unit{}; });
}

TEST(Fleet, knows_the_peers_that_were_started_where_another_one_was_not) {
  OneByOne engine;
  engine.fail_to_start = {2};
  const Deployment deployment = three_peers();
  const Started started = start_all(engine, deployment);
  EXPECT_EQ(numbers(started), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(started.trouble, "p2: false: exit code 1");
}

TEST(Fleet, starts_no_peer_of_a_host_that_is_not_ready) {
  OneByOne engine;
  engine.unready = {2};
  const Deployment deployment = three_peers();
  EXPECT_EQ(numbers(start_all(engine, deployment)), std::vector<std::uint32_t>{1})
      << "peer 3 is on the same host";
}

TEST(Fleet, a_start_that_is_late_is_no_failure_that_can_be_forgotten) {
  OneByOne engine;
  engine.fail_to_start = {2};
  engine.slow_to_start = {3};
  const Started started = start_all(engine, three_peers());
  EXPECT_EQ(numbers(started), std::vector<std::uint32_t>{1});
  EXPECT_EQ(numbers_of(started.uncertain), std::vector<std::uint32_t>{3});
}

TEST(Fleet, knows_of_which_start_nothing_lives) {
  OneByOne engine;
  engine.fail_to_start = {2};
  engine.slow_to_start = {3};
  engine.says_nothing_lives = true;
  const Started started = start_all(engine, three_peers());
  EXPECT_EQ(numbers(started), std::vector<std::uint32_t>{1});
  EXPECT_EQ(numbers_of(started.in_vain), std::vector<std::uint32_t>{2});
  EXPECT_EQ(numbers_of(started.uncertain), std::vector<std::uint32_t>{3});
  EXPECT_NE(started.trouble.find("p2: false: exit code 1"), std::string::npos) << started.trouble;
  engine.says_nothing_lives = false;
  EXPECT_TRUE(start_all(engine, three_peers()).in_vain.empty());
}

TEST(Fleet, says_who_starts_once_their_machines_are_ready) {
  OneByOne engine;
  engine.unready = {2};
  const Deployment deployment = three_peers();
  std::vector<std::uint32_t> said;
  std::vector<std::uint32_t> ready;
  const auto refuse = [&](const Deployment& there, const std::vector<PeerJob>& peers) {
    said = numbers_of(peers);
    ready = numbers_of(there.peers);
    return Status(Error{"no space"});
  };
  const Started started = start(engine, deployment, deployment.peers, refuse);
  EXPECT_EQ(said, std::vector<std::uint32_t>{1});
  EXPECT_EQ(ready, said) << "it waits for nobody";
  EXPECT_TRUE(started.peers.empty());
  EXPECT_EQ(started.trouble, "p2: false: exit code 1\nno space");
}

TEST(Fleet, starts_nobody_who_would_join_a_peer_that_did_not_start) {
  OneByOne engine;
  engine.first_alone = true;
  engine.fail_to_start = {1};
  Deployment deployment = three_peers();
  const Started started = start_all(engine, deployment);
  EXPECT_TRUE(started.peers.empty());
  EXPECT_NE(started.trouble.find("\np1 did not start, which begins the run"), std::string::npos)
      << started.trouble;
  deployment.begun = true;
  EXPECT_EQ(numbers(start_all(engine, deployment)), (std::vector<std::uint32_t>{2, 3})) << "they find others";
}

TEST(Fleet, what_fails_on_one_engine_is_no_failure_of_another) {
  OneByOne engine;
  engine.first_alone = true;
  engine.unready = {2};
  const Deployment deployment = three_peers();
  const Started started = start_all(engine, deployment);
  EXPECT_EQ(numbers(started), std::vector<std::uint32_t>{1});
  EXPECT_EQ(started.trouble, "p2: false: exit code 1");
}

TEST(Fleet, a_stop_ends_what_is_left_of_the_peers_or_names_it) {
  OneByOne engine;
  const Deployment deployment = three_peers();
  const auto stop = [&](Action action = Action::stop) {
    const Status done = perform(engine, action, deployment, deployment.peers);
    return done ? "" : done.error().message;
  };
  engine.jobs = {"3"};
  EXPECT_EQ(stop(Action::collect), "");
  EXPECT_EQ(stop(), "") << "it has ended at the second look";
  engine.jobs = {"3"};
  engine.ends = false;
  EXPECT_EQ(stop(), "job 3");
  engine.jobs = {"3"};
  engine.ends = true;
  engine.end_fails = true;
  EXPECT_EQ(stop(), "false: exit code 1");
}

TEST(Fleet, a_machine_that_cannot_be_reached_for_its_first_start_holds_up_no_status_and_no_stop) {
  OneByOne engine;
  engine.unready = {2};
  Deployment deployment = three_peers();
  for (PeerJob& peer : deployment.peers) peer.untried = true;
  const auto reports = ask(engine, deployment);
  ASSERT_TRUE(reports.ok() && reports.value().size() == 3);
  for (const PeerReport& report : reports.value())
    EXPECT_EQ(report.state, PeerState::absent) << report.number;
  EXPECT_TRUE(engine.told.empty());
  const auto mark = [&](const Deployment&, const std::vector<PeerJob>& peers) {
    mark_started(deployment, peers, 1'800'000'000);
    return Status(Unit{});
  };
  EXPECT_EQ(numbers(start(engine, deployment, deployment.peers, mark)), std::vector<std::uint32_t>{1});
  engine.told.clear();
  EXPECT_TRUE(perform(engine, Action::stop, deployment, deployment.peers).ok());
  EXPECT_TRUE(ask(engine, deployment).ok());
  EXPECT_EQ(engine.told, std::set<std::uint32_t>{1});
  mark_started(deployment, deployment.peers, 0);
  EXPECT_FALSE(deployment.peers[0].untried) << "a start that failed may have got through";
  EXPECT_TRUE(deployment.peers[1].untried);
  EXPECT_EQ(deployment.peers[0].starts, 1U) << "and have an id";
  EXPECT_EQ(deployment.peers[1].starts, 0U);
}

TEST(Fleet, what_the_client_of_an_engine_is_missing_for_was_never_started) {
  OneByOne engine;
  engine.first_alone = true;
  engine.without_client = {2, 3};
  std::vector<std::uint32_t> said;
  const auto mark = [&](const Deployment&, const std::vector<PeerJob>& peers) {
    std::ranges::move(numbers_of(peers), std::back_inserter(said));
    return Status(Unit{});
  };
  const Deployment deployment = three_peers();
  const Started started = start(engine, deployment, deployment.peers, mark);
  EXPECT_EQ(numbers(started), std::vector<std::uint32_t>{1});
  EXPECT_EQ(said, std::vector<std::uint32_t>{1}) << "the others stay untried, and are absent";
  EXPECT_EQ(started.trouble, "no-such-program-of-tw: no such program on this machine: is it installed?");
}

TEST(Fleet, a_peer_that_is_unknown_has_no_logs_to_fetch) {
  const std::vector<PeerJob> peers = three_peers().peers;
  const std::vector<PeerJob> known = known_peers(
      peers, {{.number = 1, .state = PeerState::unknown}, {.number = 2, .state = PeerState::running}});
  EXPECT_EQ(known, (std::vector<PeerJob>{peers[1], peers[2]}));
}

TEST(CommandRun, the_last_line_that_is_not_blank_says_why_a_command_failed) {
  const auto failure = [](const char* script) {
    return run_all({{.words = {"sh", "-c", script}, .client = "ssh a"}}).failures.front().message;
  };
  EXPECT_EQ(failure("printf 'Welcome\\r\\n\\r\\nno route\\r\\n \\r\\n' >&2; exit 255"),
            "ssh a: exit code 255: no route");
  EXPECT_EQ(failure("echo said; echo >&2; exit 1"), "ssh a: exit code 1: said");
  EXPECT_EQ(failure("exit 1"), "ssh a: exit code 1");
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
