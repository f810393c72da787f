// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_facts.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "wire/limits.h"

namespace tw::train {
namespace {

using Change = std::pair<std::string, std::function<void(RunOptions&)>>;

TEST(RunDigest, differs_when_anything_differs_that_decides_the_result) {
  const std::vector<Change> changes = {
      {"model", [](RunOptions& o) { o.model = "another"; }},
      {"data", [](RunOptions& o) { o.data = "another"; }},
      {"batch", [](RunOptions& o) { o.batch.size = 513; }},
      {"batch auto", [](RunOptions& o) { o.batch.size.reset(); }},
      {"microbatch", [](RunOptions& o) { o.microbatch = 31; }},
      {"optimizer", [](RunOptions& o) { o.optimizer.kind = OptimizerKind::lamb; }},
      {"beta", [](RunOptions& o) { o.optimizer.beta2 = 0.9990000000000001; }},
      {"adam", [](RunOptions& o) { o.optimizer.kind = OptimizerKind::adam; }},
      {"clip norm", [](RunOptions& o) { o.clip_norm = 1; }},
      {"rate", [](RunOptions& o) { o.learning_rate = 2e-3; }},
      {"codec", [](RunOptions& o) { o.codec = codec::Codec::fp16; }},
      {"rounding",
       [](RunOptions& o) {
         o.codec = codec::Codec::int8;
         o.rounding = Rounding::stochastic;
       }},
      {"error feedback", [](RunOptions& o) { o.error_feedback = true; }},
      {"exact batches", [](RunOptions& o) { o.exact_batches = true; }},
      {"norm cap", [](RunOptions& o) { o.norm_cap = 1; }},
      {"seed", [](RunOptions& o) { o.seed = 2; }},
  };
  const Digest base = run_digest({}, 10);
  EXPECT_NE(base, run_digest({}, 11));
  for (const auto& [name, change] : changes) {
    RunOptions options;
    change(options);
    EXPECT_NE(run_digest(options, 10), base) << name;
  }
}

TEST(RunDigest, ignores_checkpoints_patience_and_settings_without_effect) {
  const std::vector<Change> changes = {
      {"rounding of fp32", [](RunOptions& o) { o.rounding = Rounding::stochastic; }},
      {"error feedback as it is", [](RunOptions& o) { o.error_feedback = false; }},
      {"patience", [](RunOptions& o) { o.patience = {}; }},
      {"checkpoint", [](RunOptions& o) { o.checkpoint.every = 3; }},
      {"Nesterov momentum of adamw", [](RunOptions& o) { o.optimizer.nesterov = false; }},
      {"momentum of adamw", [](RunOptions& o) { o.optimizer.momentum = 0.1; }},
      {"rounds", [](RunOptions& o) { o.rounds = 1; }},
  };
  for (const auto& [name, change] : changes) {
    RunOptions options;
    change(options);
    EXPECT_EQ(run_digest(options, 10), run_digest({}, 10)) << name;
  }
}

TEST(RunDigest, tells_the_momenta_of_sgd_apart_where_there_is_any) {
  RunOptions nesterov;
  nesterov.optimizer.kind = OptimizerKind::sgd;
  RunOptions plain = nesterov;
  plain.optimizer.nesterov = false;
  EXPECT_NE(run_digest(nesterov, 10), run_digest(plain, 10));
  nesterov.optimizer.momentum = plain.optimizer.momentum = 0;
  EXPECT_EQ(run_digest(nesterov, 10), run_digest(plain, 10));
}

TEST(RunDigest, of_a_run_without_keys_that_came_later_stays) {
  RunOptions adamw;
  adamw.model = "mnist-cnn", adamw.data = "idx", adamw.microbatch = 32;
  adamw.mode.digest_every = 1;  // as it was
  RunOptions sgd = adamw;
  sgd.optimizer.kind = OptimizerKind::sgd;
  EXPECT_EQ(to_string(run_digest(adamw, 10)), "59c5b92052d233832e76b6b797680b87");
  EXPECT_EQ(to_string(run_digest(sgd, 10)), "84406c491d0a5581e2cc5b3d91b6324a");
}

RunFacts facts_of(std::string layout, std::uint64_t batch = 512) {
  RunOptions options;
  options.batch.size = batch;
  options.layout = std::move(layout);
  return {options, 41};
}

TEST(RunFacts, say_the_first_one_that_differs) {
  const RunFacts here = facts_of("adamw rate 0.1\ngroup 0: w (8, 4)\ngroup 0: b (8)");
  const auto difference = [&](const RunFacts& there) {
    const std::uint32_t place = here.first_difference(there.prints());
    EXPECT_EQ(place, there.first_difference(here.prints()));
    return here.at(place) + " and " + there.at(place);
  };
  EXPECT_EQ(0U, here.first_difference(here.prints()));
  EXPECT_EQ("\"batch=512\" and \"batch=64\"", difference(facts_of("x", 64)));
  EXPECT_EQ(R"-("group 0: w (8, 4)" and "group 0: w (4, 8)")-",
            difference(facts_of("adamw rate 0.1\ngroup 0: w (4, 8)\ngroup 0: b (8)")));
  EXPECT_EQ(R"-("group 0: b (8)" and nothing)-", difference(facts_of("adamw rate 0.1\ngroup 0: w (8, 4)")));
  EXPECT_EQ(R"(nothing and "buffer: m")",
            difference(facts_of("adamw rate 0.1\ngroup 0: w (8, 4)\ngroup 0: b (8)\nbuffer: m")));
}

TEST(RunFacts, have_their_places_whether_they_are_set_or_not) {
  const auto difference = [](const std::function<void(RunOptions&)>& change) {
    RunOptions options;
    const RunFacts here(options, 1);
    change(options);
    const RunFacts there(options, 1);
    const std::uint32_t place = here.first_difference(there.prints());
    return here.at(place) + " and " + there.at(place);
  };
  EXPECT_EQ("\"exact_batches=false\" and \"exact_batches=true\"",
            difference([](RunOptions& o) { o.exact_batches = true; }));
  EXPECT_EQ("\"clip_norm=0\" and \"clip_norm=1\"", difference([](RunOptions& o) { o.clip_norm = 1; }));
}

TEST(RunFacts, are_told_in_no_more_prints_than_a_hello_may_have) {
  std::string layout;
  for (std::size_t i = 0; i < wire::kMostFacts + 7; ++i) layout += "line\n";
  EXPECT_EQ(wire::kMostFacts, facts_of(layout).prints().size());
  EXPECT_EQ("nothing", facts_of("").at(4000));
}

}  // namespace
}  // namespace tw::train
