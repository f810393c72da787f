// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/completion.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace tw::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Completion : public testing::Test {
 protected:
  Completion() {
    CLI::App* bench = app_.add_subcommand("bench", "Measure");
    CLI::App* reduce = bench->add_subcommand("reduce", "How long it takes");
    reduce->add_option("--peers", peers_, "a peer's number");
    reduce->add_option("--secret", peers_)->group("");
    bench->add_subcommand("peer", "One peer")->group("");
  }

  CLI::App app_{"a program"};
  int peers_ = 0;
};

TEST_F(Completion, knows_commands_in_their_places_and_no_hidden_ones) {
  const auto commands = completed_commands(app_);
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].place, "");
  EXPECT_EQ(commands[1].place, " bench");
  EXPECT_EQ(commands[2].place, " bench reduce");
  EXPECT_EQ(commands[1].words.front().name, "reduce");
  for (const auto& word : commands[1].words) EXPECT_NE(word.name, "peer");
  EXPECT_EQ(commands[2].words.back().name, "--peers");
}

TEST_F(Completion, is_a_script_for_each_shell) {
  const auto commands = completed_commands(app_);
  const std::string bash = bash_completion(commands), zsh = zsh_completion(commands);
  EXPECT_TRUE(has(bash, "' bench' | ' bench reduce') place=")) << bash;
  EXPECT_TRUE(has(bash, "' bench reduce') known='--help --peers'")) << bash;
  EXPECT_TRUE(has(zsh, "'--peers:a peer'\\''s number'")) << zsh;
}

}  // namespace
}  // namespace tw::cli
