// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/credit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <utility>

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMessage = 256 << 10;

TEST(Credit, lets_a_window_pass_and_then_waits_for_a_grant) {
  Credit credit;
  std::uint64_t sent = 0;
  for (; credit.may_send(); sent += kMessage) credit.on_sent(kMessage);
  EXPECT_EQ(sent, kFirstWindow);
  credit.on_grant(kFirstWindow + 1);
  EXPECT_TRUE(credit.may_send());
  credit.on_sent(kMessage);
  EXPECT_FALSE(credit.may_send());
  credit.on_grant(kFirstWindow);
  EXPECT_FALSE(credit.may_send()) << "an older grant takes nothing back";
}

TEST(Allowance, grants_in_portions_and_never_less_than_was_granted) {
  Allowance allowance(100ms);
  std::uint64_t last = kFirstWindow;
  int grants = 0;
  for (int i = 0; i < 256; ++i) {
    if (const auto grant = allowance.on_consumed(Instant{i * 100ms}, kMessage)) {
      EXPECT_GT(*grant, last);
      last = *grant;
      ++grants;
    }
  }
  EXPECT_EQ(grants, 16) << "one for each quarter of a window";
}

// A path of this capacity whose sender doubles what it has under way each round trip, as TCP does.
TEST(Allowance, never_holds_back_a_sender_whose_rate_doubles_each_round_trip) {
  constexpr Duration kRoundTrip = 300ms;
  constexpr std::uint64_t kFull = 38 << 20;  // 1 Gbit/s for 300 ms
  Credit credit;
  Allowance allowance(kRoundTrip);
  std::deque<std::pair<Instant, std::uint64_t>> grants;
  std::uint64_t window = 256 << 10;
  for (int trip = 0; trip < 20; ++trip) {
    const Instant now{trip * kRoundTrip};
    for (; !grants.empty() && grants.front().first <= now; grants.pop_front())
      credit.on_grant(grants.front().second);
    for (std::uint64_t sent = 0; sent < window; sent += kMessage) {
      ASSERT_TRUE(credit.may_send()) << "round trip " << trip;
      credit.on_sent(kMessage);
      if (const auto grant = allowance.on_consumed(now + kRoundTrip / 2, kMessage))
        grants.emplace_back(now + kRoundTrip, *grant);
    }
    window = std::min(2 * window, kFull);
  }
  EXPECT_LE(allowance.window(), 4 * kFull);
}

}  // namespace
}  // namespace tw::host
