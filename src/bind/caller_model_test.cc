// SPDX-License-Identifier: Apache-2.0
#include "bind/caller_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tw::bind {
namespace {

using ::testing::HasSubstr;

constexpr tw_group kCounts{.tensors = 1, .kind = TW_UPDATES};
constexpr tw_group kStatistics{.tensors = 1, .momentum = 0.5, .kind = TW_MOVING};
constexpr tw_group kCopies{.tensors = 1, .kind = TW_AVERAGE};

Result<CallerModel> model_of(const std::vector<tw_group>& groups, const std::vector<std::uint64_t>& sizes) {
  return read_model({.groups = groups.data(),
                     .group_count = groups.size(),
                     .tensor_sizes = sizes.data(),
                     .tensor_count = sizes.size()});
}

tw_group trained_by(tw_kind kind) { return {.tensors = 1, .kind = static_cast<std::uint32_t>(kind)}; }

int keep_mean(void* user, std::uint64_t, const float* mean, std::uint64_t count) {
  static_cast<std::vector<float>*>(user)->assign(mean, mean + count);
  return 0;
}

TEST(CallerModel, averages_buffers_alike_whoever_updates_the_parameters) {
  // Counts of one trained tensor and one of statistics; these; a statistic; a copy.
  const std::vector<float> mean = {1, 3.0F / 24, 2, -4, 1, 0.25F};
  for (const tw_kind kind : {TW_SGD, TW_CALLER}) {
    const auto model = model_of({kCounts, trained_by(kind), kStatistics, kCopies}, {2, 2, 1, 1});
    ASSERT_TRUE(model.ok()) << model.error().message;
    std::vector<float> handed;
    const tw_calls calls{.user = &handed, .update = keep_mean};
    std::vector<float> parameters = {10, 20, 1, 1, 5, 7};
    const auto optimizer = make_caller_optimizer(model.value(), Callbacks(&calls), 1);
    const auto whole = [&](std::size_t, const train::TakePiece& take) { take(0, mean); };
    optimizer->apply(parameters, {1, whole, 24}, 1, 0.0);
    EXPECT_EQ(parameters, (std::vector<float>{11, 23, 1, 1, 5 + 1.75F, 7.25F})) << kind;
    EXPECT_EQ(handed, kind == TW_SGD ? std::vector<float>() : std::vector<float>({1, 3.0F / 24, 2, -4}));
  }
}

TEST(CallerModel, needs_a_count_for_each_moving_average) {
  EXPECT_THAT(model_of({trained_by(TW_SGD), kStatistics}, {2, 1}).error().message,
              HasSubstr("expected counts of updates (TW_UPDATES)"));
  EXPECT_THAT(model_of({kCounts, trained_by(TW_SGD), kStatistics}, {1, 2, 1}).error().message,
              HasSubstr("1 counts of updates, while 2 tensors are updated"));
  EXPECT_TRUE(model_of({kCounts, trained_by(TW_SGD), kCopies}, {1, 2, 1}).ok());
  tw_group steep = kStatistics;
  steep.momentum = 1.5;
  EXPECT_THAT(model_of({kCounts, trained_by(TW_SGD), steep}, {2, 2, 1}).error().message,
              HasSubstr("momentum 1.5: expected a number from 0 to 1"));
  EXPECT_THAT(model_of({kCounts, kStatistics, trained_by(TW_SGD)}, {2, 1, 2}).error().message,
              HasSubstr("running statistics come last"));
}

}  // namespace
}  // namespace tw::bind
