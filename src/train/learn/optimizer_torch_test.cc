// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "train/learn/optimizer.h"

// tests/golden/torch_optimizers.py wrote the table; it knows the same cases.

namespace tw::train {
namespace {

using Values = std::vector<double>;
/// By case: the values of each step.
using Table = std::map<std::string, std::vector<Values>>;

Table read_table() {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/tests/golden/torch_optimizers.csv");
  Table table;
  std::string line;
  std::getline(file, line);  // names of the columns
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string name;
    std::string cell;
    std::getline(row, name, ',');
    std::getline(row, cell, ',');
    Values values;
    while (std::getline(row, cell, ',')) values.push_back(std::stod(cell));
    table[name].push_back(values);
  }
  return table;
}

struct Case {
  std::string name;
  OptimizerOptions first = {};
  OptimizerOptions second = {};
  double clip_norm = 0;
};

constexpr OptimizerOptions kSgd{.kind = OptimizerKind::sgd, .nesterov = false, .weight_decay = 0.01};
constexpr OptimizerOptions kAdamW{
    .kind = OptimizerKind::adamw, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.1};
constexpr double kClip = 2;

OptimizerOptions with(OptimizerOptions options, void (*change)(OptimizerOptions&)) {
  change(options);
  return options;
}

std::vector<Case> cases() {
  const auto plain = with(kSgd, [](OptimizerOptions& o) { o.momentum = 0; });
  const auto nesterov = with(kSgd, [](OptimizerOptions& o) { o.nesterov = true; });
  const auto cycled = with(nesterov, [](OptimizerOptions& o) { o.weight_decay = 0; });
  const auto adam = with(kAdamW, [](OptimizerOptions& o) { o.kind = OptimizerKind::adam; });
  const auto undecayed = with(kSgd, [](OptimizerOptions& o) { o.weight_decay = 0; });
  const auto other_adamw = with(kAdamW, [](OptimizerOptions& o) {
    o.beta1 = 0.8;
    o.beta2 = 0.9;
    o.epsilon = 1e-8;
    o.weight_decay = 0;
  });
  const auto other_sgd = with(nesterov, [](OptimizerOptions& o) {
    o.momentum = 0.5;
    o.weight_decay = 0.02;
  });
  return {{"sgd", plain, plain},
          {"sgd_momentum", kSgd, kSgd},
          {"sgd_nesterov", nesterov, nesterov},
          {"sgd_cycled", cycled, cycled},
          {"adam", adam, adam},
          {"adam_cycled", adam, adam},
          {"adamw", kAdamW, kAdamW},
          {"sgd_clipped", undecayed, undecayed, kClip},
          {"adamw_clipped", kAdamW, kAdamW, kClip},
          {"groups", kAdamW, other_adamw},
          {"groups_clipped", undecayed, other_sgd, kClip}};
}

/// step: from 0.
std::array<GroupStep, 2> group_steps(const Case& of, std::size_t step) {
  const double rate = 0.004 * static_cast<double>(1 + step % 4);
  const double momentum = 0.85 + 0.01 * static_cast<double>(step % 6);
  std::array<GroupStep, 2> steps{{{rate}, {2 * rate}}};
  for (GroupStep& one : steps) {
    if (of.name == "sgd_cycled") one.momentum = momentum;
    if (of.name == "adam_cycled") one.beta1 = momentum;
  }
  return steps;
}

TEST(Optimizer, steps_like_pytorch) {
  const Table table = read_table();
  const std::vector<Values>& gradients = table.at("gradient");
  ASSERT_EQ(gradients.size(), 20U);
  EXPECT_EQ(table.size(), cases().size() + 1);
  for (const Case& one : cases()) {
    const auto optimizer = make_optimizer({{5, {5}, one.first}, {3, {3}, one.second}}, one.clip_norm);
    std::vector<float> parameters = {1.5F, -2.25F, 3.0F, -0.75F, 1.0F, 2.0F, -1.25F, 4.0F};
    for (std::size_t step = 0; step < gradients.size(); ++step) {
      const std::vector<float> gradient(gradients[step].begin(), gradients[step].end());
      const auto whole = [&](std::size_t, const TakePiece& take) { take(0, gradient); };
      optimizer->apply(parameters, {1, whole}, step + 1, group_steps(one, step));
      const Values& expected = table.at(one.name).at(step);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(parameters[i], expected[i], 2e-6 * std::abs(expected[i]))
            << one.name << ", step " << step + 1 << ", element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tw::train
