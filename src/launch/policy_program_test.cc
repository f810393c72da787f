// SPDX-License-Identifier: Apache-2.0
#include "launch/policy_program.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tw::launch {
namespace {

plan::SpotView view() {
  plan::SpotView view;
  view.zones = {{.name = "a", .sight = {.up = false}, .hazards = plan::guessed_hazards()},
                {.name = "b", .sight = {.up = true}, .hazards = plan::guessed_hazards()}};
  return view;
}

std::string trouble_of(const std::string& command) {
  PolicyProgram program = PolicyProgram::start(command).value();
  EXPECT_EQ(program.decide(view()).action, plan::SpotAction::wait);
  return program.trouble() ? program.trouble()->message : "none";
}

TEST(PolicyProgram, answers_one_line_for_each_line) {
  PolicyProgram program =
      PolicyProgram::start(
          R"(while read -r line; do echo '{"action": "move", "zone": "b", "reason": "mine"}'; done)")
          .value();
  for (int i = 0; i < 3; ++i) {
    const plan::SpotDecision decision = program.decide(view());
    EXPECT_EQ(decision.action, plan::SpotAction::move);
    EXPECT_EQ(decision.zone, 1U);
    EXPECT_EQ(decision.reason, "mine");
  }
  EXPECT_FALSE(program.trouble());
}

TEST(PolicyProgram, a_wrong_answer_is_named_with_what_was_expected) {
  EXPECT_EQ(
      trouble_of("read -r line; echo hello").find("read -r line; echo hello: hello: expected {\"action\""),
      0U);
  EXPECT_NE(
      trouble_of(R"(read -r l; echo '{"action": "move", "zone": "c"}')").find("expected zone: one of a, b"),
      std::string::npos);
  EXPECT_NE(
      trouble_of(R"(read -r l; echo '{"action": "move", "zone": "a"}')").find("a zone that is available"),
      std::string::npos);
  EXPECT_NE(trouble_of(R"(read -r l; echo '{"action": "stay", "reason": 3}')").find("expected {\"action\""),
            std::string::npos);
  EXPECT_EQ(trouble_of("exit 3"),
            "exit 3: ended without an answer (exit code 3); expected one line for each line that it reads");
  EXPECT_NE(trouble_of("kill -9 $$").find("ended without an answer (signal 9)"), std::string::npos);
}

TEST(PolicyProgram, one_that_does_not_end_is_killed_with_its_children) {
  const auto begun = std::chrono::steady_clock::now();
  { PolicyProgram program = PolicyProgram::start("sleep 30; sleep 30").value(); }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST(PolicyProgram, one_that_never_stops_writing_is_killed) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(trouble_of(R"(yes '{"action": "wait"}')"), "none");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST(PolicyProgram, one_that_answers_before_it_is_asked_is_named) {
  PolicyProgram program = PolicyProgram::start(R"(yes '{"action": "wait"}')").value();
  for (int i = 0; i < 2; ++i) program.decide(view());
  ASSERT_TRUE(program.trouble());
  EXPECT_NE(program.trouble()->message.find("answers before it is asked"), std::string::npos);
}

}  // namespace
}  // namespace tw::launch
