// SPDX-License-Identifier: Apache-2.0
#include "launch/deployment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/engine.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const PeerPaths kPaths{.run_file = "run.yaml",
                       .token_file = "token",
                       .out = "out",
                       .listen = "10.0.0.1:7000",
                       .join = {"10.0.0.1:7000", "10.0.0.2:7000"}};

TEST(Deployment, names_fit_every_engine) {
  for (const char* good : {"a", "words-eu", "w2"}) EXPECT_TRUE(is_run_name(good)) << good;
  for (const char* bad : {"", "2w", "Words", "words-", "w_2", "w.2", "../w", "-w"})
    EXPECT_FALSE(is_run_name(bad)) << bad;
  EXPECT_TRUE(is_run_name(std::string(40, 'a')));
  EXPECT_FALSE(is_run_name(std::string(41, 'a')));
}

TEST(Deployment, a_restart_has_another_name) {
  Deployment deployment = three_peers();
  EXPECT_EQ(job_name(deployment, deployment.peers[2]), "words-p3");
  deployment.peers[2].restart = 2;
  EXPECT_EQ(job_name(deployment, deployment.peers[2]), "words-p3-r2");
}

TEST(Deployment, two_peers_can_be_dialled_where_there_are_two) {
  Deployment deployment = three_peers();
  EXPECT_THAT(bootstrap_of(deployment), ElementsAre("10.0.0.1:7000", "10.0.0.2:7000"));
  deployment.peers[2].anchor = true;
  EXPECT_THAT(bootstrap_of(deployment), ElementsAre("10.0.0.1:7000", "10.0.0.2:7001"));
  for (PeerJob& peer : deployment.peers) peer.address.clear();
  EXPECT_THAT(bootstrap_of(deployment), ElementsAre());
}

TEST(Deployment, the_first_anchor_begins_the_run_and_only_the_very_first_start_is_no_rejoin) {
  Deployment deployment = three_peers();
  std::swap(deployment.peers[0].anchor, deployment.peers[1].anchor);
  EXPECT_EQ(first_of(deployment).number, 2U);
  EXPECT_EQ(start_of(deployment, deployment.peers[1]), Start::begin);
  EXPECT_EQ(start_of(deployment, deployment.peers[0]), Start::join);
  deployment.begun = true;
  for (const PeerJob& peer : deployment.peers) {
    EXPECT_EQ(start_of(deployment, peer), Start::again);
    const auto words = peer_words(deployment, peer, Start::again, kPaths);
    EXPECT_THAT(words, Contains("--rejoin"));
    EXPECT_THAT(words, Not(Contains("--no-rejoin")));
    EXPECT_THAT(words, Not(Contains("--wait-for")));
  }
}

TEST(Deployment, the_peer_that_begins_a_run_anew_says_so_in_this_start_alone) {
  Deployment deployment = three_peers();
  const auto words = [&](std::size_t place) {
    const PeerJob& peer = deployment.peers[place];
    return peer_words(deployment, peer, start_of(deployment, peer), kPaths);
  };
  EXPECT_THAT(words(0), Not(Contains("--anew")));
  deployment.anew = true;
  EXPECT_THAT(words(0), Contains("--anew"));
  EXPECT_THAT(words(1), Not(Contains("--anew"))) << "it joins that one";
  deployment.begun = true;
  EXPECT_THAT(words(0), Not(Contains("--anew"))) << "it comes back";
}

TEST(Deployment, command_lines_name_the_others_and_not_themselves) {
  const Deployment deployment = three_peers();
  const PeerJob& first = deployment.peers[0];
  EXPECT_THAT(
      peer_words(deployment, first, Start::begin, kPaths),
      ElementsAre("run", "run.yaml", "--token", "@token", "--out", "out", "--listen", "10.0.0.1:7000",
                  "--no-rejoin", "--wait-for", "3", "--site", "onprem:eu", "--usd-per-h", "0.1", "--grace",
                  "25s", "--set", "training.rounds=20", "--set", "checkpoint.folder=/data/it's"));
  EXPECT_THAT(
      peer_words(deployment, first, Start::again, kPaths),
      ElementsAre("run", "run.yaml", "--token", "@token", "--out", "out", "--listen", "10.0.0.1:7000",
                  "--rejoin", "--join", "10.0.0.2:7000", "--site", "onprem:eu", "--usd-per-h", "0.1",
                  "--grace", "25s", "--set", "training.rounds=20", "--set", "checkpoint.folder=/data/it's"));
}

TEST(Deployment, the_first_of_some_peers_is_an_anchor_that_others_can_dial) {
  std::vector<PeerJob> peers = three_peers().peers;
  EXPECT_EQ(first_of(peers).number, 1U);
  peers.front().address.clear();
  EXPECT_EQ(first_of(peers).number, 2U);
  peers.back().anchor = true;
  EXPECT_EQ(first_of(peers).number, 3U);
}

TEST(Deployment, the_peer_that_began_the_run_may_resume_it_and_all_others_join) {
  Deployment deployment = three_peers();
  deployment.begun = true;
  const auto joins = [&](std::size_t place) {
    const auto words = peer_words(deployment, deployment.peers[place], Start::again, kPaths);
    EXPECT_THAT(words, Contains("--rejoin"));
    return std::ranges::find(words, "--join") != words.end();
  };
  EXPECT_TRUE(joins(0)) << "a peer of an earlier plan began the run";
  deployment.founder = 1;
  EXPECT_FALSE(joins(0));
  EXPECT_TRUE(joins(1));
  EXPECT_TRUE(joins(2));
  EXPECT_TRUE(may_resume(deployment, deployment.peers[0]));
  EXPECT_FALSE(may_resume(deployment, deployment.peers[1]));
  deployment.founder = 2;
  EXPECT_TRUE(joins(0)) << "an anchor that came later has no state";
  EXPECT_FALSE(joins(1)) << "the heir need not be the first";
  deployment.founder = 1;
  for (PeerJob& peer : deployment.peers) peer.address.clear();
  EXPECT_TRUE(joins(0)) << "the others would not find it";
}

TEST(Deployment, a_program_of_the_users_own_is_started_by_tw_run) {
  const Deployment deployment = with_program(three_peers());
  EXPECT_EQ(peer_words(deployment, deployment.peers[1], Start::again, kPaths).front(), "run");
  EXPECT_THAT(command_words(deployment),
              ElementsAre("--", "python3", "train.py", "--name", "it's $HOME $(id)\n"));
}

TEST(Deployment, tells_a_price_that_holds_for_every_machine_that_a_peer_may_get) {
  PeerJob peer{.machine = {.usd_per_h = 0.3}};
  EXPECT_EQ(price_of(peer), 0.3);
  peer.alternatives = {{.usd_per_h = 0.3}};
  EXPECT_EQ(price_of(peer), 0.3);
  peer.alternatives.push_back({.usd_per_h = 0.4});
  EXPECT_EQ(price_of(peer), std::nullopt);
  EXPECT_EQ(price_of({.machine = {.usd_per_h = 0}}), std::nullopt) << "nobody said so";
  EXPECT_EQ(price_of({.machine = {.purchase = market::Purchase::owned}}), 0.0);
}

TEST(Deployment, words_of_a_shell_are_what_they_were) {
  EXPECT_EQ(shell_line({"tw", "a b", "it's", "", "$HOME", "k=v"}), "tw 'a b' 'it'\\''s' '' '$HOME' k=v");
}

TEST(Engines, the_error_about_an_unknown_one_names_those_there_are) {
  const auto engine = make_engine("slrum");
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, HasSubstr("--on slrum: expected one of ssh, slurm"));
  EXPECT_THAT(engine.error().message, HasSubstr("did you mean \"slurm\"?"));
}

/// Laws of all engines.
class EveryEngine : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Command> all_commands() const {
    std::vector<Command> all;
    for (const Action action : {Action::prepare, Action::check, Action::start, Action::stop, Action::retire,
                                Action::status, Action::collect, Action::hurry, Action::logs, Action::remove})
      for (Command& command : engine_->commands(action, deployment_, deployment_.peers))
        all.push_back(std::move(command));
    return all;
  }

  std::unique_ptr<Engine> engine_ = make_engine(GetParam()).value();
  Deployment deployment_ = with_program(three_peers());
};

bool holds_secret(const std::string& text) {
  const auto holds = [&](const char* secret) { return text.find(secret) != std::string::npos; };
  return holds(kTestToken) || holds(kTestAnchorToken) || holds(kTestVariable);
}

TEST_P(EveryEngine, secrets_stand_in_no_arguments_and_no_file_that_others_read) {
  std::size_t seen = 0;
  for (const Command& command : all_commands()) {
    for (const std::string& word : command.words) EXPECT_FALSE(holds_secret(word)) << word;
    if (!holds_secret(command.input)) continue;
    ++seen;
    EXPECT_TRUE(command.input_is_secret);
  }
  for (const File& file : engine_->files(deployment_)) {
    if (!holds_secret(file.text)) continue;
    ++seen;
    EXPECT_EQ(file.mode & 0777, 0600U) << file.path;
  }
  EXPECT_GT(seen, 0U) << "the token goes nowhere";
}

TEST_P(EveryEngine, the_same_deployment_gives_the_same_files_and_commands) {
  EXPECT_EQ(engine_->files(deployment_), engine_->files(with_program(three_peers())));
  const std::vector<Command> once = all_commands();
  deployment_ = with_program(three_peers());
  EXPECT_EQ(all_commands(), once);
}

TEST_P(EveryEngine, an_unknown_setting_is_an_error_that_names_it) {
  deployment_.on = {{"no such_setting", "1"}};
  const Status checked = engine_->check(deployment_);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("no such_setting"));
}

INSTANTIATE_TEST_SUITE_P(Launch, EveryEngine, testing::ValuesIn(engine_names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tw::launch
