// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace tw {
namespace {

Result<std::unique_ptr<int>> number(int value) {
  if (value < 0) return Error{"below zero"};
  return std::make_unique<int>(value);
}

Status at_most(int value, int most) {
  if (value > most) return Error{"too large"};
  return Unit{};
}

Result<int> sum(int a, int b) {
  if (a != 0) TW_TRY(at_most(a, 10));
  TW_TRY(const auto first, number(a));
  TW_TRY(auto second, number(b));
  *second += *first;
  return *second;
}

TEST(Try, declares_values_that_cannot_be_copied) { EXPECT_EQ(sum(2, 3).value(), 5); }

TEST(Try, returns_the_first_error) {
  EXPECT_EQ(sum(2, -3).error().message, "below zero");
  EXPECT_EQ(sum(-2, 3).error().message, "below zero");
  EXPECT_EQ(sum(11, -3).error().message, "too large");
}

}  // namespace
}  // namespace tw
