// SPDX-License-Identifier: Apache-2.0
#include "sim/world/call.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace tw::sim {
namespace {

/// What is captured inside the call, and what is too large for it.
template <std::size_t Bytes>
void expect_to_own_what_it_captures() {
  const auto alive = std::make_shared<int>(7);
  int called = 0;
  {
    Call first([&called, alive, ballast = std::array<char, Bytes>{}] { called += *alive + ballast[0]; });
    EXPECT_EQ(alive.use_count(), 2);
    std::vector<Call> calls;
    calls.push_back(std::move(first));
    for (int i = 0; i < 10; ++i) calls.emplace_back();  // moves it about
    EXPECT_EQ(alive.use_count(), 2);
    calls.front()();
    EXPECT_EQ(called, 7);
    EXPECT_FALSE(calls.back());
    calls.back() = std::move(calls.front());
    EXPECT_TRUE(calls.back());
    calls.back()();
    EXPECT_EQ(called, 14);
    calls.back() = Call();
    EXPECT_EQ(alive.use_count(), 1);
    calls.emplace_back([alive, ballast = std::array<char, Bytes>{}] { (void)ballast; });
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Call, owns_what_it_captures) {
  expect_to_own_what_it_captures<1>();
  expect_to_own_what_it_captures<Call::kInline>();
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
