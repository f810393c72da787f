// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/call.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace tw::sim {
namespace {

/// Captures so many bytes beside `alive`: inside the call, or too large for it.
template <std::size_t Bytes>
Call adding(const std::shared_ptr<int>& alive, int& sum) {  // owners: the caller, the call
  return Call([alive, &sum, ballast = std::array<char, Bytes>{}] { sum += *alive + ballast[0]; });
}

template <std::size_t Bytes>
void expect_to_own_while_it_is_moved_about() {
  const auto alive = std::make_shared<int>(7);  // owners: this test and its calls
  int sum = 0;
  {
    std::vector<Call> calls;
    calls.push_back(adding<Bytes>(alive, sum));
    for (int i = 0; i < 10; ++i) calls.emplace_back();
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_FALSE(calls.back());
    calls.front()();
    EXPECT_EQ(sum, 7);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

template <std::size_t Bytes>
void expect_to_own_until_another_takes_its_place() {
  const auto alive = std::make_shared<int>(7);  // owners: this test and its calls
  int sum = 0;
  Call first = adding<Bytes>(alive, sum), second;
  second = std::move(first);
  ASSERT_TRUE(second);
  second();
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(alive.use_count(), 2);
  second = Call();
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Call, owns_what_it_captures) {
  expect_to_own_while_it_is_moved_about<1>();
  expect_to_own_while_it_is_moved_about<Call::kInline>();
  expect_to_own_until_another_takes_its_place<1>();
  expect_to_own_until_another_takes_its_place<Call::kInline>();
}

TEST(Call, takes_what_cannot_be_copied) {
  auto owned = std::make_unique<int>(3);
  int seen = 0;
  Call call([&seen, owned = std::move(owned)] { seen = *owned; });
  call();
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace tw::sim
