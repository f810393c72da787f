// SPDX-License-Identifier: Apache-2.0
#include "train/learn/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "average/reduction/residual.h"

namespace tw::train {
namespace {

using codec::Codec;

constexpr std::uint64_t kVector = 5;

RunOptions run_in(Codec codec) {
  RunOptions run;
  run.codec = codec;
  return run;
}

class Fed : public testing::Test {
 protected:
  /// A contribution of 4 samples in the carrier's slot, whose values int8 rounds.
  static std::vector<ErrorFeedback::Counted> own(const average::Fragments& fragments, Round round) {
    // owners: the contribution
    const auto sum = std::make_shared<std::vector<float>>(fragments.of(round).geometry.length);
    for (std::size_t i = 0; i < sum->size(); ++i) (*sum)[i] = 0.1F + static_cast<float>(i);
    return {{{PeerId{1}, ErrorFeedback::kCarrier, 4, {}}, {*sum, sum}}};
  }

  void owe(Round round) {
    feedback.announce(round);
    feedback.owe(round, own(halves, round));
  }

  bool is_zero(Round round) const {
    return std::ranges::all_of(feedback.carried(round, ErrorFeedback::kCarrier),
                               [](float value) { return value == 0; });
  }

  average::Fragments halves{{kVector}, 2, 3};
  ErrorFeedback feedback{run_in(Codec::int8), halves, 1};
};

TEST_F(Fed, holds_back_the_next_contribution_of_the_fragment_alone) {
  owe(1);
  EXPECT_FALSE(feedback.lacks(2));
  EXPECT_TRUE(feedback.lacks(3)) << "of the fragment of round 1";
  owe(2);
  EXPECT_TRUE(feedback.lacks(3)) << "those of round 1 are still owed";
  feedback.settle(feedback.last_turn(3));
  EXPECT_FALSE(feedback.lacks(3));
  EXPECT_FALSE(is_zero(3));
  EXPECT_TRUE(feedback.lacks(4));
  EXPECT_TRUE(is_zero(4)) << "nothing of round 2 is settled";
  feedback.settle();
  EXPECT_FALSE(feedback.lacks(4));
  EXPECT_FALSE(is_zero(4));
}

TEST_F(Fed, is_told_of_losses_before_they_are_known) {
  feedback.announce(1);
  feedback.settle();
  EXPECT_TRUE(feedback.lacks(3)) << "owe() is still to come";
  feedback.owe(1, own(halves, 1));
  feedback.settle();
  EXPECT_FALSE(feedback.lacks(3));
}

TEST_F(Fed, of_a_joiner_lacks_nothing_of_rounds_before_it_came) {
  owe(101);
  EXPECT_FALSE(feedback.lacks(102));
  EXPECT_TRUE(feedback.lacks(103));
}

TEST_F(Fed, begins_again_with_a_history_that_goes_on_from_an_earlier_record) {
  owe(1);
  owe(2);
  feedback.settle();
  owe(1);
  EXPECT_TRUE(feedback.lacks(3));
}

TEST_F(Fed, drops_residuals_and_what_is_owed) {
  owe(1);
  feedback.settle();
  owe(2);
  feedback.drop();
  EXPECT_FALSE(feedback.lacks(4));
  feedback.settle();
  EXPECT_TRUE(is_zero(3));
  EXPECT_TRUE(is_zero(4));
  feedback.announce(3);
  feedback.drop();
  EXPECT_TRUE(feedback.lacks(5)) << "its owe() comes after the drop";
}

TEST_F(Fed, is_the_residual_of_average_and_that_of_the_carrier_first) {
  std::vector<float> expected(halves.of(1).geometry.length);
  std::vector<ErrorFeedback::Counted> both = own(halves, 1);
  both.insert(both.begin(), {{PeerId{1}, 1, 2, {}}, both.front().sum});
  for (const std::size_t at : {1, 0}) {
    keep_loss({Codec::int8}, halves.of(1).geometry, {both[at].sum.values, both[at].of.samples, at == 1},
              expected);
  }
  feedback.owe(1, both);
  feedback.settle();
  const auto found = feedback.carried(3, ErrorFeedback::kCarrier);
  EXPECT_EQ(expected, std::vector<float>(found.begin(), found.end()));
  EXPECT_TRUE(feedback.carried(3, 1).empty()) << "of another slot";
}

// Also for ThreadSanitizer: each loss is added once, whoever settles it, and settle() waits for the others.
TEST_F(Fed, settles_once_on_several_threads) {
  const average::Fragments large{{1 << 16}, 2, 0};
  ErrorFeedback one(run_in(Codec::int8), large, 1), many(run_in(Codec::int8), large, 1);
  for (Round round = 1; round <= 40; round += 2) {
    for (ErrorFeedback* each : {&one, &many}) {
      for (const Round owed : {round, round + 1}) {
        each->announce(owed);
        each->owe(owed, own(large, owed));
      }
    }
    one.settle();
    std::jthread beside([&] { many.settle(); });
    many.settle(many.last_turn(round + 2));
    ASSERT_FALSE(many.lacks(round + 2)) << "nobody has it in hand any more";
  }
  many.settle();
  for (const Round round : {1, 2}) {
    const auto a = one.carried(round, ErrorFeedback::kCarrier),
               b = many.carried(round, ErrorFeedback::kCarrier);
    EXPECT_TRUE(std::ranges::equal(a, b)) << round;
  }
}

TEST(ErrorFeedback, is_off_where_the_codec_loses_nothing) {
  const average::Fragments whole{average::Geometry{.length = kVector, .segment_length = 3}};
  ErrorFeedback feedback(run_in(Codec::fp32), whole, 1);
  EXPECT_FALSE(feedback.is_on());
  feedback.announce(1);
  feedback.owe(1, {});
  EXPECT_FALSE(feedback.lacks(2));
  EXPECT_TRUE(feedback.carried(2, ErrorFeedback::kCarrier).empty());
}

}  // namespace
}  // namespace tw::train
