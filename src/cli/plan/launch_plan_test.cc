// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace tw::cli {
namespace {

/// A folder with a plan and a run file.
class Request : public testing::Test {
 protected:
  Request() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/run.yaml") << "program: {command: [python3, train.py]}\n";
    std::ofstream(folder_ + "/PLAN.yaml") << "run: run.yaml\npeers: [{site: \"gcp:us\", gpu: T4, "
                                             "purchase: spot}]\n";
    arguments_.plan = folder_ + "/PLAN.yaml";
    arguments_.on = {"local"};
  }

  ~Request() override { std::filesystem::remove_all(folder_); }

  std::string fault() const {
    const auto request = read_request(arguments_);
    return request ? "" : request.error().message;
  }

  std::string folder_ = testing::TempDir() + "tw-request-" + std::to_string(getpid());
  UpArguments arguments_;
};

TEST_F(Request, with_an_image_that_no_engine_starts_is_refused) {
  EXPECT_EQ(fault(), "");
  arguments_.image = "own:1";
  EXPECT_EQ(fault(), "--image own:1: goes with --on skypilot, k8s, not with --on local");
  arguments_.on = {"k8s"};
  EXPECT_EQ(fault(), "");
}

TEST_F(Request, takes_an_empty_value_of_a_variable_as_a_value) {
  const auto user = [&](const std::string& variables) -> Result<launch::UserProgram> {
    std::ofstream(folder_ + "/run.yaml") << "program: {command: [sh], env: {" << variables << "}}\n";
    const auto request = read_request(arguments_);
    if (!request) return request.error();
    const auto store = launch::RunStore::open_or_make(folder_ + "/runs", request.value().name);
    if (!store) return store.error();
    const auto state = wanted_state(arguments_, request.value(), store.value());
    if (!state) return state.error();
    return state.value().deployment.user;
  };
  const auto given = user("EMPTY: \"\", PATH: , OWN: x");
  ASSERT_TRUE(given.ok()) << given.error().message;
  const std::map<std::string, std::string> expected = {
      {"EMPTY", ""}, {"OWN", "x"}, {"PATH", std::getenv("PATH")}};
  EXPECT_EQ(given.value().env, expected);
  EXPECT_NE(user("NOWHERE_EXPORTED: ")
                .error()
                .message.find("program.env: NOWHERE_EXPORTED has no value: write one (\"\" for an empty "
                              "one), or export NOWHERE_EXPORTED"),
            std::string::npos);
}

/// Before a machine is rented: each peer would end with 2 on its own.
TEST_F(Request, with_wrong_values_is_refused_on_every_engine) {
  for (const char* engine : {"local", "k8s", "skypilot", "slurm"}) {
    arguments_.on = {engine};
    arguments_.set = {};
    EXPECT_EQ(fault(), "") << engine;
    arguments_.set = {"training.mode=fast"};
    EXPECT_THAT(fault(), testing::StartsWith("training.mode: expected sync or delayed")) << engine;
    arguments_.set = {"training.target_batch_size=-4"};
    EXPECT_THAT(fault(), testing::StartsWith("training.target_batch_size: expected ")) << engine;
  }
  std::ofstream(folder_ + "/PLAN.yaml") << "run: run.yaml\nsettings: [training.codec=fp8]\npeers: [{site: "
                                           "\"gcp:us\", gpu: T4, purchase: spot}]\n";
  arguments_.set = {};
  EXPECT_THAT(fault(), testing::StartsWith("training.codec: expected "));
  arguments_.set = {"training.codec=fp16"};
  EXPECT_EQ(fault(), "") << "what the user sets wins";
  std::ofstream(folder_ + "/run.yaml") << "training: {norm_cap: abc}\nprogram: {command: [python3]}\n";
  EXPECT_THAT(fault(), testing::HasSubstr("run.yaml:1: training.norm_cap: expected "));
}

TEST_F(Request, with_a_program_that_is_not_there_is_refused) {
  arguments_.program = folder_ + "/nope";
  EXPECT_EQ(fault(), "--program " + folder_ + "/nope: no such file; expected the path of a tw");
  std::ofstream(arguments_.program) << "tw";
  EXPECT_EQ(fault(), "");
  arguments_.on = {"k8s"};
  EXPECT_NE(fault().find("/nope: goes with --on local, ssh, slurm, not with --on k8s"), std::string::npos);
}

}  // namespace
}  // namespace tw::cli
