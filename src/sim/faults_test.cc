// SPDX-License-Identifier: Apache-2.0
#include "sim/faults.h"

#include <gtest/gtest.h>

#include <set>

namespace tw {
namespace {

TEST(Faults, stay_within_their_options_and_use_the_whole_menu) {
  const FaultOptions options;
  std::set<FaultKind> kinds;
  std::set<Phase> cues;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto faults = draw_faults(seed, options);
    ASSERT_GE(faults.size(), 6U);
    ASSERT_LE(faults.size(), 16U);
    for (const Fault& fault : faults) {
      kinds.insert(fault.kind);
      if (fault.cue) {
        cues.insert(fault.cue->phase);
        EXPECT_GE(fault.cue->round, 1U);
        EXPECT_LE(fault.cue->round, options.rounds - kCalmRounds);
      } else {
        EXPECT_LE(fault.after, options.span);
      }
      EXPECT_GE(fault.lasts, std::chrono::milliseconds(99));
      EXPECT_LE(fault.lasts, options.longest_stop);
    }
  }
  EXPECT_EQ(kinds.size(), 7U);
  EXPECT_EQ(cues.size(), 6U);
}

TEST(Faults, are_the_same_for_the_same_seed) {
  const auto a = draw_faults(5, {}), b = draw_faults(5, {});
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].choice, b[i].choice);
    EXPECT_EQ(a[i].after, b[i].after);
  }
  EXPECT_NE(a.front().choice, draw_faults(6, {}).front().choice);
}

}  // namespace
}  // namespace tw
