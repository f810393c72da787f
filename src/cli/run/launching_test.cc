// SPDX-License-Identifier: Apache-2.0
#include "cli/run/launching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "base/result.h"
#include "host/system/temporary_folder.h"

namespace tw::cli {
namespace {

using launch::PeerState;
using testing::ElementsAre;
using testing::IsEmpty;

/// Says what it was told to say, and notes whom a start expects.
class ToldEngine final : public launch::Engine {
 public:
  bool restarts(const launch::PeerJob& /*peer*/) const override { return false; }

  Status check_settings(const launch::Deployment& /*deployment*/) const override { return Unit{}; }

  Status check(const launch::Deployment& /*deployment*/) const override { return Unit{}; }

  std::vector<launch::File> files(const launch::Deployment& /*deployment*/) const override { return {}; }

  std::vector<launch::Command> commands(launch::Action action, const launch::Deployment& deployment,
                                        const std::vector<launch::PeerJob>& /*peers*/) const override {
    if (action == launch::Action::start) {
      expected = deployment.peers.size();
      begins_anew = deployment.anew;
      if (starts_in_vain) return {{.words = {"false"}, .in_vain = 1}};
    }
    return {};
  }

  Result<std::vector<launch::PeerReport>> states(
      const launch::Deployment& /*deployment*/,
      const std::vector<launch::Output>& /*outputs*/) const override {
    return reports;
  }

  std::vector<launch::PeerReport> reports;
  mutable std::size_t expected = 0;
  mutable bool begins_anew = false;
  bool starts_in_vain = false;
};

launch::PeerReport lives(std::uint32_t number) { return {.number = number, .state = PeerState::running}; }

launch::PeerReport ended_with(std::uint32_t number, int code) {
  return {.number = number, .state = launch::state_after(code), .exit_code = code};
}

/// A run of two spot peers behind an anchor, p1.
class Launching : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path("run.yaml"))
        << "training: {target_batch_size: 64, rounds: 9}\nprogram: {command: [\"true\"]}\n";
    ASSERT_THAT(started(2, Launcher::person), ElementsAre(1, 2, 3));
    ASSERT_EQ(founder(), 1U);
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  Launched launched(int spot, Launcher launcher, bool anew = false) const {
    std::ofstream(path("PLAN.yaml")) << "run: run.yaml\npeers:\n"
                                     << "  - {site: \"onprem:eu\", gpu: cpu, purchase: owned}\n"
                                     << "  - {site: \"gcp:us\", gpu: cpu, count: " << spot
                                     << ", purchase: spot, usd_per_h: 0.5}\n";
    const UpArguments arguments{
        .plan = path("PLAN.yaml"), .on = {"local"}, .name = "words", .state = path("state"), .anew = anew};
    const auto request = read_request(arguments);
    EXPECT_TRUE(request.ok()) << request.error().message;
    auto store = launch::RunStore::open_or_make(path("state"), "words");
    return launch_run(arguments, request.value(), engine_, store.value(), launcher);
  }

  std::vector<std::uint32_t> started(int spot, Launcher launcher) const {
    const Launched run = launched(spot, launcher);
    EXPECT_EQ(run.trouble, "");
    std::vector<std::uint32_t> numbers;
    for (const launch::PeerJob& peer : run.started) numbers.push_back(peer.number);
    return numbers;
  }

  std::uint32_t founder() const {
    return launch::RunStore::open(path("state"), "words").value().state().deployment.founder;
  }

  host::TemporaryFolder folder_;
  ToldEngine engine_;
};

TEST_F(Launching, another_plan_of_keep_starts_nobody_who_needs_a_person) {
  engine_.reports = {lives(1), ended_with(2, 2), lives(3)};
  EXPECT_THAT(started(3, Launcher::keeper), ElementsAre(4));
  EXPECT_EQ(engine_.expected, 3U) << "nobody waits for p2";
  engine_.reports.push_back(lives(4));
  EXPECT_THAT(started(3, Launcher::keeper), IsEmpty());
  EXPECT_THAT(started(3, Launcher::person), ElementsAre(2));
}

TEST_F(Launching, another_plan_of_keep_has_a_founder_that_comes_back) {
  engine_.reports = {ended_with(1, 2), lives(2), lives(3)};
  EXPECT_THAT(started(3, Launcher::keeper), ElementsAre(4));
  EXPECT_EQ(founder(), 2U);
}

TEST_F(Launching, a_run_begins_anew_where_no_peer_lives_and_in_that_start_alone) {
  engine_.reports = {ended_with(1, 2), lives(2), ended_with(3, 2)};
  const Launched refused = launched(2, Launcher::person, true);
  EXPECT_TRUE(refused.refused);
  EXPECT_EQ(refused.trouble,
            "--anew: a peer of run words lives, or may; tw down words --state " + path("state") + " first");
  engine_.reports[1] = ended_with(2, 0);
  EXPECT_EQ(launched(2, Launcher::person, true).started.size(), 3U) << "a complete one, too";
  EXPECT_TRUE(engine_.begins_anew);
  engine_.reports[1] = ended_with(2, 2);
  EXPECT_EQ(launched(2, Launcher::person).started.size(), 3U);
  EXPECT_FALSE(engine_.begins_anew) << "no state keeps it";
}

TEST_F(Launching, a_start_of_which_nothing_lives_is_none) {
  engine_.reports = {lives(1), lives(2), lives(3)};
  engine_.starts_in_vain = true;
  EXPECT_EQ(launched(3, Launcher::person).trouble, "false: exit code 1");
  const auto peers = launch::RunStore::open(path("state"), "words").value().state().deployment.peers;
  ASSERT_EQ(peers.size(), 4U);
  EXPECT_FALSE(peers[0].untried);
  EXPECT_TRUE(peers[3].untried) << "nobody asks for it, and tw down has nothing to end";
}

TEST_F(Launching, a_peer_that_was_never_started_may_change_its_engine) {
  const auto save = [&](launch::StopState stop, bool untried) {
    auto store = launch::RunStore::open(path("state"), "words");
    launch::RunState state = store.value().state();
    state.engine = "slurm";
    state.stop = stop;
    for (launch::PeerJob& peer : state.deployment.peers) peer.untried = untried;
    EXPECT_TRUE(store.value().save(std::move(state)).ok());
  };
  save(launch::StopState::none, false);
  const std::string begin = "--on local: this run is on slurm; --name makes another run, ";
  EXPECT_EQ(launched(2, Launcher::person).trouble,
            begin + "tw down words --state " + path("state") + " ends this one");
  save(launch::StopState::stopped, false);
  EXPECT_EQ(launched(2, Launcher::person).trouble,
            begin + "this one goes with its folder, " + path("state") + "/words");
  save(launch::StopState::none, true);
  EXPECT_THAT(started(2, Launcher::person), ElementsAre(1, 2, 3));
}

TEST_F(Launching, a_run_that_is_complete_names_the_peers_that_need_a_person) {
  engine_.reports = {ended_with(1, 0), ended_with(2, 2), ended_with(3, 0)};
  const Launched run = launched(2, Launcher::person);
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.trouble,
            "run words has ended; exit code 2 of p2: tw logs words --state " + path("state") + " shows why");
  engine_.reports[1] = ended_with(2, 1);
  EXPECT_TRUE(launched(2, Launcher::person).complete);
  EXPECT_EQ(launched(2, Launcher::person).trouble, "");
}

}  // namespace
}  // namespace tw::cli
