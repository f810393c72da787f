// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/batch_choice.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/test_records.h"
#include "swarm/ballots/validation.h"
#include "swarm/leases/batch.h"

namespace tw::swarm {
namespace {

TargetBatch batch_of_mode(bool overlap) {
  return {.target_batch_size = 64, .microbatch = 4, .overlap = overlap, .chosen = BatchBounds{64, 100'000}};
}

/// The samples after this many rounds with the same measurements.
std::uint64_t settled(wire::BatchChoice measured, const TargetBatch& batch, int rounds = 20) {
  for (int i = 0; i < rounds; ++i) measured.samples = next_batch_size(measured, batch);
  return measured.samples;
}

TEST(BatchChoice, gives_averaging_a_twentieth_of_the_time_where_peers_wait) {
  const wire::BatchChoice measured{.samples = 64, .averaging_s = 0.5, .samples_per_s = 1000};
  EXPECT_EQ(9500U, settled(measured, batch_of_mode(false)));  // 9.5 s of work, 0.5 s of averaging
}

TEST(BatchChoice, hides_averaging_where_peers_compute_on) {
  const wire::BatchChoice measured{.samples = 64, .averaging_s = 2, .samples_per_s = 1000};
  EXPECT_EQ(2500U, settled(measured, batch_of_mode(true)));
}

TEST(BatchChoice, keeps_all_members_busy) {
  const wire::BatchChoice measured{.samples = 64, .averaging_s = 1e-3, .samples_per_s = 1000, .at_once = 250};
  EXPECT_EQ(252U, settled(measured, batch_of_mode(true)));  // whole microbatches
}

TEST(BatchChoice, stays_within_its_bounds) {
  EXPECT_EQ(64U, settled({.samples = 640, .averaging_s = 1e-6, .samples_per_s = 10}, batch_of_mode(false)));
  EXPECT_EQ(100'000U,
            settled({.samples = 64, .averaging_s = 1e9, .samples_per_s = 1e12}, batch_of_mode(true)));
}

TEST(BatchChoice, changes_by_a_factor_of_two_a_round_at_most) {
  const TargetBatch batch = batch_of_mode(true);
  EXPECT_EQ(128U, next_batch_size({.samples = 64, .averaging_s = 9, .samples_per_s = 1000}, batch));
  EXPECT_EQ(4000U, next_batch_size({.samples = 8000, .averaging_s = 1e-3, .samples_per_s = 1000}, batch));
}

TEST(BatchChoice, leaves_the_batch_as_it_is_for_a_tenth_more_or_less) {
  const TargetBatch batch = batch_of_mode(true);
  const auto chosen = [&](double averaging_s) {
    return next_batch_size({.samples = 1000, .averaging_s = averaging_s, .samples_per_s = 1000}, batch);
  };
  EXPECT_EQ(1000U, chosen(0.88));
  EXPECT_EQ(1000U, chosen(0.72));
  EXPECT_EQ(1128U, chosen(0.9));
  EXPECT_EQ(876U, chosen(0.7));
}

TEST(BatchChoice, leaves_the_batch_as_it_is_while_nothing_is_measured) {
  EXPECT_EQ(256U, next_batch_size({.samples = 256, .samples_per_s = 1000}, batch_of_mode(true)));
  EXPECT_EQ(256U, next_batch_size({.samples = 256, .averaging_s = 1}, batch_of_mode(true)));
}

// Speeds and bandwidths are never measured twice alike.
TEST(BatchChoice, settles_where_measurements_vary_by_a_twentieth) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Prng prng(seed);
    const TargetBatch batch = batch_of_mode(prng.chance(0.5));
    const double averaging_s = 0.05 + prng.uniform(), samples_per_s = 50 + 1000 * prng.uniform();
    wire::BatchChoice measured{.samples = 64};
    int changes = 0;
    for (int round = 0; round < 100; ++round) {
      measured.averaging_s = averaging_s * (0.975 + 0.05 * prng.uniform());
      measured.samples_per_s = samples_per_s * (0.975 + 0.05 * prng.uniform());
      const std::uint64_t next = next_batch_size(measured, batch);
      changes += round >= 20 && next != measured.samples ? 1 : 0;
      measured.samples = next;
    }
    EXPECT_LE(changes, 2) << "seed " << seed;
  }
}

TEST(BatchChoice, has_bounds_in_whole_microbatches) {
  EXPECT_EQ(72U, in_microbatches({70, 100}, 8).least);
  EXPECT_EQ(96U, in_microbatches({70, 100}, 8).most);
  EXPECT_EQ(8U, in_microbatches({1, 2}, 8).most);
}

/// Round 7 of 64 samples, all of them in the mean; the next one has 128.
wire::Record round_of_64(const TargetBatch& batch, const wire::Record& head) {
  wire::Record record = record_after(head, batch);
  record.members = members({1, 2});
  record.samples = 64;
  record.contributors = {{PeerId{1}, 0, 64, RangeSet(Range{0, 16})}};
  record.batch->averaging_s = 1;
  record.batch->samples_per_s = 1000;
  record.batch->next = 128;
  continue_lineage(record, head);
  return record;
}

TEST(BatchChoice, makes_the_next_round_as_large_as_the_record_says) {
  const TargetBatch batch = batch_of_mode(false);
  wire::Record head = head_of(members({1, 2}));
  head.batch = wire::BatchChoice{.samples = 64, .next = 64};
  const wire::Record record = round_of_64(batch, head);
  EXPECT_EQ("", fault_of(record, head, batch));
  const wire::Record next = record_after(record, batch);
  EXPECT_EQ(128U, next.batch->samples);
  EXPECT_EQ(RangeSet(Range{448, 128}), batch_of(next, batch));
  EXPECT_EQ(576U, record_after(next, batch).first_sample);
}

TEST(BatchChoice, has_room_for_all_that_larger_rounds_left_over) {
  const TargetBatch batch = batch_of_mode(true);
  wire::Record head = head_of(members({1, 2}));
  head.batch = wire::BatchChoice{.samples = 256, .next = 64};
  head.left = RangeSet(Range{200, 100});
  const wire::Record next = record_after(head, batch);
  EXPECT_EQ(100U, next.batch->samples);
  EXPECT_EQ(RangeSet(Range{200, 100}), batch_of(next, batch));
  EXPECT_EQ(100U, batch.after(head).target_batch_size);
}

TEST(BatchChoice, is_refused_where_it_does_not_follow_from_what_was_measured) {
  const TargetBatch batch = batch_of_mode(false);
  wire::Record head = head_of(members({1, 2}));
  head.batch = wire::BatchChoice{.samples = 64, .next = 64};
  const wire::Record record = round_of_64(batch, head);
  wire::Record larger = record, other = record, without = record;
  larger.batch->next = 132;
  other.batch->samples = 68;
  without.batch.reset();
  for (const wire::Record& wrong : {larger, other, without})
    EXPECT_EQ("a record whose target batch size does not follow from what was measured",
              fault_of(wrong, head, batch));
  TargetBatch fixed = batch;
  fixed.chosen.reset();
  EXPECT_NE("", fault_of(record, head, fixed));
}

}  // namespace
}  // namespace tw::swarm
