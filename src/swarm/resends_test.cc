// SPDX-License-Identifier: Apache-2.0
#include "swarm/resends.h"

#include <gtest/gtest.h>

#include <vector>

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr Instant kResendsStart = Instant{} + 1h;
constexpr PeerId kAsker{4};

TEST(Resends, are_due_at_once_and_then_after_pauses_that_double) {
  Resends resends;
  std::vector<double> at_s;
  for (Instant now = kResendsStart; now < kResendsStart + 20s; now += 100ms) {
    resends.ask(now, kAsker);
    if (resends.take_due(now, kAsker)) at_s.push_back(to_seconds(now - kResendsStart));
  }
  EXPECT_EQ(at_s, (std::vector<double>{0, 1, 3, 7, 15}));
}

TEST(Resends, put_off_what_was_asked_for_too_soon_but_never_drop_it) {
  Resends resends;
  resends.ask(kResendsStart, kAsker);
  EXPECT_TRUE(resends.take_due(kResendsStart, kAsker));
  resends.ask(kResendsStart + 100ms, kAsker);
  EXPECT_FALSE(resends.take_due(kResendsStart + 900ms, kAsker));
  EXPECT_TRUE(resends.take_due(kResendsStart + 1s, kAsker));
  EXPECT_FALSE(resends.take_due(kResendsStart + 1h, kAsker)) << "nothing was asked since";
}

TEST(Resends, begin_anew_with_a_round_and_with_a_link) {
  Resends resends;
  resends.ask(kResendsStart, kAsker);
  EXPECT_TRUE(resends.take_due(kResendsStart, kAsker));
  resends.begin_round();
  resends.ask(kResendsStart, kAsker);
  EXPECT_TRUE(resends.take_due(kResendsStart, kAsker));
  resends.forget(kAsker);
  EXPECT_EQ(resends.size(), 0U);
}

}  // namespace
}  // namespace tw::swarm
