// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/batch.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/test_records.h"
#include "swarm/ballots/validation.h"

namespace tw::swarm {
namespace {

constexpr LeaseBook::Options kLease{64, 4};

/// Round 7 of 64 samples from 384 on, without the microbatches of `lost`.
wire::Record round_without(Range lost) {
  wire::Record record = record_after(head_of(members({1, 2})), kLease);
  RangeSet done(Range{0, 16});
  done.remove(lost);
  record.samples = 4 * done.count();
  record.contributors = {{PeerId{1}, 0, record.samples, done}};
  record.members = members({1, 2});
  return record;
}

TEST(Batch, follows_the_samples_of_the_round_before) {
  const wire::Record first = record_after(genesis(kRun, kParameters, members({1})), kLease);
  EXPECT_EQ(RangeSet(Range{0, 64}), batch_of(first, kLease));
  const wire::Record seventh = record_after(head_of(members({1})), kLease);
  EXPECT_EQ(RangeSet(Range{384, 64}), batch_of(seventh, kLease));
  EXPECT_EQ(RangeSet(Range{392, 4}), samples_of(seventh, RangeSet(Range{2, 1}), kLease));
}

TEST(Batch, begins_with_what_the_round_before_left_over) {
  const wire::Record next = record_after(round_without({2, 3}), kLease);
  EXPECT_EQ(RangeSet(Range{392, 12}), next.carried);
  EXPECT_EQ(448U, next.first_sample);
  EXPECT_EQ(64U, batch_of(next, kLease).count());
  EXPECT_EQ(RangeSet(Range{392, 4}), samples_of(next, RangeSet(Range{0, 1}), kLease));
  EXPECT_EQ(RangeSet(Range{448, 4}), samples_of(next, RangeSet(Range{3, 1}), kLease));
}

TEST(Batch, has_all_samples_in_one_round_each_whatever_is_left_over) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    const LeaseBook::Options lease{10 + prng.below(90), 1 + prng.below(9)};
    RangeSet seen;
    std::uint64_t samples = 0;
    wire::Record head = genesis(kRun, kParameters, members({1}));
    for (int round = 1; round <= 20; ++round) {
      wire::Record next = record_after(head, lease);
      RangeSet done(Range{0, lease.microbatches()});
      if (round < 20)
        done.remove(Range{prng.below(lease.microbatches()), prng.below(lease.microbatches() / 2 + 1)});
      const RangeSet taken = samples_of(next, done, lease);
      ASSERT_FALSE(seen.intersects(taken)) << "seed " << seed;
      seen.add(taken);
      next.samples = taken.count();
      samples += next.samples;
      next.contributors = {{PeerId{1}, 0, next.samples, done}};
      ASSERT_EQ(samples, next.samples_total()) << "seed " << seed;
      head = std::move(next);
    }
    EXPECT_EQ(RangeSet(Range{0, seen.count()}), seen)
        << "seed " << seed << ": the last round takes all that is left";
  }
}

TEST(Batch, may_lack_half_but_not_in_the_last_round) {
  wire::Record record = round_without({0, 8});
  continue_lineage(record, head_of(members({1, 2})));
  EXPECT_TRUE(may_leave_over(record, kLease));
  EXPECT_EQ("", fault_of(record, head_of(members({1, 2})), kLease));
  record.last = true;
  EXPECT_FALSE(may_leave_over(record, kLease));
  record.last = false;
  EXPECT_FALSE(may_leave_over(record, {64, 4, true})) << "batches are exact";
  EXPECT_FALSE(may_leave_over(round_without({0, 9}), kLease));
  EXPECT_NE("", fault_of(round_without({0, 9}), head_of(members({1, 2})), kLease));
  EXPECT_TRUE(may_leave_over(round_without({0, 0}), kLease));
}

TEST(Failures, are_of_microbatches_of_the_batch_with_a_reason_that_is_not_long) {
  wire::Failures failures{7, RangeSet(Range{12, 4}), std::string(wire::kMostFailureBytes, 'x')};
  EXPECT_TRUE(is_sound(failures, kLease));
  failures.why += 'x';
  EXPECT_FALSE(is_sound(failures, kLease));
  EXPECT_FALSE(is_sound(wire::Failures{7, RangeSet(Range{12, 5}), "404"}, kLease));
  EXPECT_TRUE(is_sound(wire::Failures{7, RangeSet(Range{12, 2}), "404", RangeSet(Range{13, 1})}, kLease));
  EXPECT_FALSE(is_sound(wire::Failures{7, RangeSet(Range{12, 2}), "404", RangeSet(Range{14, 1})}, kLease));
}

}  // namespace
}  // namespace tw::swarm
