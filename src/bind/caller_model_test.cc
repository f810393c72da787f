// SPDX-License-Identifier: Apache-2.0
#include "bind/caller_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
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

tw_group trained_by(tw_kind kind) {
  return {.tensors = 1, .epsilon = 1e-8, .kind = static_cast<std::uint32_t>(kind)};
}

/// What tw_calls.update was told.
struct ToldUpdate {
  std::vector<float> mean;
  std::vector<tw_step> steps;
};

constexpr auto kKeep = [](void* user, std::uint64_t, const float* mean, std::uint64_t count,
                          const tw_step* steps, std::size_t step_count) {
  *static_cast<ToldUpdate*>(user) = {{mean, mean + count}, {steps, steps + step_count}};
  return 0;
};

TEST(CallerModel, averages_buffers_alike_whoever_updates_the_parameters) {
  // Counts of one trained tensor and one of statistics; these; a statistic; a copy.
  const std::vector<float> mean = {1, 3.0F / 24, 2, -4, 1, 0.25F};
  for (const tw_kind kind : {TW_SGD, TW_CALLER}) {
    const auto model = model_of({kCounts, trained_by(kind), kStatistics, kCopies}, {2, 2, 1, 1});
    ASSERT_TRUE(model.ok()) << model.error().message;
    ToldUpdate told;
    const tw_calls calls{.user = &told, .update = kind == TW_CALLER ? +kKeep : nullptr};
    std::vector<float> parameters = {10, 20, 1, 1, 5, 7};
    const auto optimizer = make_caller_optimizer(model.value(), Callbacks(&calls), 1);
    const auto whole = [&](std::size_t, const train::TakePiece& take) { take(0, mean); };
    optimizer->apply(parameters, {1, whole, 24}, 1, 0.0);
    EXPECT_EQ(parameters, (std::vector<float>{11, 23, 1, 1, 5 + 1.75F, 7.25F})) << kind;
    if (kind == TW_SGD) continue;
    EXPECT_EQ(told.mean, mean);
    ASSERT_EQ(told.steps.size(), 1U);
    EXPECT_EQ(told.steps.front().first, 2U);
    EXPECT_EQ(told.steps.front().count, 2U);
    EXPECT_EQ(told.steps.front().kind, std::uint32_t{TW_CALLER});
  }
}

/// The arithmetic of docs/cpp.md: what a program computes that has tw_calls.update.
struct Elsewhere {
  std::vector<float> p, m, v;
};

constexpr auto kUpdate = [](void* user, std::uint64_t, const float* mean, std::uint64_t, const tw_step* steps,
                            std::size_t step_count) {
  auto& [p, m, v] = *static_cast<Elsewhere*>(user);
  for (const tw_step& s : std::span(steps, step_count)) {
    for (std::size_t i = s.first; i < s.first + s.count; ++i) {
      float g = mean[i];
      if (s.kind != TW_ADAMW) g += s.weight_decay * p[i];
      if (s.kind == TW_SGD) {
        m[i] = s.momentum * m[i] + g;
        p[i] -= s.learning_rate * ((s.flags & TW_NESTEROV) != 0 ? g + s.momentum * m[i] : m[i]);
        continue;
      }
      m[i] = s.beta1 * m[i] + s.one_minus_beta1 * g;
      v[i] = s.beta2 * v[i] + s.one_minus_beta2 * (g * g);
      const float below = std::sqrt(v[i]) * s.root_correction2 + s.epsilon;
      p[i] = s.shrink * p[i] - s.learning_rate * ((m[i] * s.correction1) / below);
    }
  }
  return 0;
};

TEST(CallerModel, has_the_program_update_with_the_bits_of_the_engine) {
  for (const std::uint32_t kind : {TW_SGD, TW_ADAM, TW_ADAMW}) {
    tw_group group{.tensors = 2,
                   .weight_decay = 0.1,
                   .momentum = 0.9,
                   .beta1 = 0.8,
                   .beta2 = 0.95,
                   .epsilon = 1e-6,
                   .kind = kind};
    if (kind == TW_SGD) group.flags = TW_NESTEROV;
    auto model = model_of({kCounts, group}, {2, 3, 2}).value();
    model.clip_norm = 2;
    Elsewhere there{{0, 0, 1, -2, 3, 0.5F, -0.25F}, std::vector<float>(7), std::vector<float>(7)};
    std::vector<float> here = there.p, counts = there.p;
    const tw_calls calls{.user = &there, .update = kUpdate}, none{};
    const auto own = make_caller_optimizer(model, Callbacks(&calls), 1);
    const auto engine = make_caller_optimizer(model, Callbacks(&none), 1);
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const auto of_round = static_cast<float>(round);
      // The second tensor has no gradient in the second round.
      const std::vector<float> mean = {1, round == 2 ? 0.0F : 1, 0.3F, of_round, -0.7F, 0.11F, -2 / of_round};
      const auto in_two = [&](std::size_t part, const train::TakePiece& take) {
        part == 0 ? take(0, std::span(mean).first(4)) : take(4, std::span(mean).subspan(4));
      };
      engine->apply(here, {2, in_two, 8}, round, 0.01);
      own->apply(counts, {2, in_two, 8}, round, 0.01);
      for (std::size_t i = 2; i < here.size(); ++i) EXPECT_EQ(there.p[i], here[i]) << kind << ": " << i;
    }
    EXPECT_EQ(counts[0], 4);
    EXPECT_EQ(counts[1], 3);
  }
}

TEST(CallerModel, says_where_an_update_of_the_program_is_missing_or_too_much) {
  const tw_calls with{.update = kKeep}, without{};
  const auto check = [](tw_kind kind, const tw_calls& calls) {
    const Status fits = check_update(model_of({trained_by(kind)}, {2}).value(), Callbacks(&calls));
    return fits ? "" : fits.error().message;
  };
  EXPECT_EQ(check(TW_CALLER, with), "");
  EXPECT_EQ(check(TW_ADAMW, with), "");
  EXPECT_THAT(check(TW_CALLER, without), HasSubstr("needs tw_calls.update"));
  EXPECT_THAT(check(TW_LAMB, with), HasSubstr("expected none with TW_LAMB"));
}

TEST(CallerModel, has_no_more_values_than_can_be_counted) {
  constexpr std::uint64_t kHalf = 1ULL << 63;
  const std::string more = " values the model would have more than 281474976710656";
  const tw_group both{.tensors = 2, .kind = TW_SGD};
  EXPECT_EQ(model_of({both}, {kHalf, kHalf + 4}).error().message,
            "tensor 0: with its 9223372036854775808" + more);
  EXPECT_EQ(model_of({both}, {4, 1ULL << 48}).error().message, "tensor 1: with its 281474976710656" + more);
  EXPECT_TRUE(model_of({both}, {4, (1ULL << 48) - 4}).ok());
  const std::vector<std::uint64_t> sizes = {4, 4}, states = {8, kHalf};
  const auto model = read_model({.groups = &both,
                                 .group_count = 1,
                                 .tensor_sizes = sizes.data(),
                                 .tensor_count = 2,
                                 .state_sizes = states.data(),
                                 .state_count = 2});
  EXPECT_EQ(model.error().message, "state vector 1: with its 9223372036854775808" + more);
}

TEST(CallerModel, takes_no_sizes_of_state_that_are_not_given) {
  const tw_group group = trained_by(TW_SGD);
  const std::uint64_t size = 2;
  EXPECT_EQ(read_model({.groups = &group,
                        .group_count = 1,
                        .tensor_sizes = &size,
                        .tensor_count = 1,
                        .state_sizes = nullptr,
                        .state_count = 3})
                .error()
                .message,
            "state_sizes: a null pointer, expected 3 sizes");
}

TEST(CallerModel, takes_no_bits_that_mean_nothing) {
  tw_group group = trained_by(TW_SGD);
  group.flags = 0xff;
  EXPECT_EQ(model_of({group}, {2}).error().message, "group 0: flags 255: expected a tw_flag or 0");
  const CallerModel model = model_of({trained_by(TW_SGD)}, {2}).value();
  const tw_tensor odd{.data = nullptr, .count = 2, .dtype = TW_FLOAT32, .reserved = 5};
  EXPECT_EQ(check_tensors(model, {&odd, 1}).error().message, "tensor 0: reserved is 5, expected 0");
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

TEST(AddTensors, have_the_same_sum_on_any_number_of_threads) {
  constexpr std::size_t kMany = 200'000;  // more than a thread takes at once
  std::vector<float> single(kMany);
  std::vector<std::uint16_t> brain(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    single[i] = 1.0F / static_cast<float>(i + 1);
    brain[i] = static_cast<std::uint16_t>(i % 0x7f80);
  }
  const std::vector<tw_tensor> tensors{{single.data(), kMany, TW_FLOAT32, 0},
                                       {nullptr, 7, TW_FLOAT32, 0},
                                       {brain.data(), kMany, TW_BFLOAT16, 0}};
  std::vector<float> one(2 * kMany + 7, 1.0F), three = one;
  add_tensors(tensors, 0.3F, one);
  add_tensors(tensors, 0.3F, three, 3);
  EXPECT_TRUE(one == three);
  EXPECT_EQ(one[kMany + 6], 1.0F);
  EXPECT_EQ(one[10], 1.0F + 0.3F * single[10]);
  brain[kMany - 1] = 0x7f80;
  single[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_not_finite(tensors, 3), 0U);
}

TEST(FirstNotFinite, looks_at_each_value_of_each_dtype) {
  constexpr std::uint16_t kHalfInfinity = 0x7c00, kBrainInfinity = 0xff80;
  for (const std::size_t size : {1U, 63U, 64U, 65U, 200U}) {
    for (std::size_t bad = 0; bad < size; ++bad) {
      std::vector<std::uint16_t> half(size, 0x7bff), brain(size, 0x7f7f);
      std::vector<float> single(size, -std::numeric_limits<float>::max());
      const std::vector<tw_tensor> tensors{{nullptr, size, TW_FLOAT32, 0},
                                           {half.data(), size, TW_FLOAT16, 0},
                                           {brain.data(), size, TW_BFLOAT16, 0},
                                           {single.data(), size, TW_FLOAT32, 0}};
      EXPECT_EQ(first_not_finite(tensors), std::nullopt);
      single[bad] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(first_not_finite(tensors), 3U) << size << " " << bad;
      brain[bad] = kBrainInfinity;
      EXPECT_EQ(first_not_finite(tensors), 2U) << size << " " << bad;
      half[bad] = kHalfInfinity;
      EXPECT_EQ(first_not_finite(tensors), 1U) << size << " " << bad;
    }
  }
}

}  // namespace
}  // namespace tw::bind
