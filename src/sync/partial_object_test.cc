// SPDX-License-Identifier: Apache-2.0
#include "sync/partial_object.h"

#include <gtest/gtest.h>

#include "sync/test_state.h"

namespace tw::sync {
namespace {

/// A state on its way, and the object that takes its chunks.
struct State {
  StateImage image = sample::image(sample::history(1, 3)[3]);
  wire::ObjectOffer offer{
      {wire::ObjectKind::state, 3}, image.record, image.parameters, sample::kStateBytes, image.digests};
  PartialObject object;

  State() { object.begin({}, offer, Digest{1, 2}, {sample::kStateBytes, sample::kChunkBytes}); }

  wire::Chunk chunk(std::uint32_t index) const { return {offer.object, index, image.chunks[index]}; }
};

TEST(PartialObject, hands_out_all_chunks_when_the_last_is_here) {
  State s;
  EXPECT_TRUE(s.object.is({1, 2}));
  for (std::uint32_t i = 0; i < s.image.chunks.size(); ++i) {
    EXPECT_FALSE(s.object.complete());
    EXPECT_TRUE(s.object.add(s.chunk(i)));
    EXPECT_FALSE(s.object.add(s.chunk(i))) << "here already";
  }
  EXPECT_EQ(s.object.bytes_here(), sample::kStateBytes);
  const PartialObject::Whole whole = s.object.release();
  EXPECT_EQ(whole.offer.record, s.image.record);
  EXPECT_EQ(sample::bytes_of(whole.chunks), sample::bytes_of(s.image.chunks));
  EXPECT_FALSE(s.object.begun());
  EXPECT_EQ(s.object.held_bytes(), 0U);
}

TEST(PartialObject, names_a_chunk_free_until_it_is_taken_or_here) {
  State s;
  EXPECT_EQ(s.object.next_free({}), 0U);
  EXPECT_EQ(s.object.next_free({0, 1}), 2U);
  s.object.take(0);
  s.object.add(s.chunk(1));
  EXPECT_EQ(s.object.next_free({}), 2U);
  s.object.give_back(0);
  EXPECT_EQ(s.object.next_free({}), 0U);
}

TEST(PartialObject, takes_no_bytes_that_the_offer_does_not_name) {
  const State s;
  EXPECT_TRUE(s.object.fits(s.chunk(0)));
  wire::Chunk other = s.chunk(0);
  other.index = 1;
  EXPECT_FALSE(s.object.fits(other));
  other.index = 1000;
  EXPECT_FALSE(s.object.fits(other));
  EXPECT_FALSE(PartialObject().fits(s.chunk(0)));
}

TEST(PartialObjectDeathTest, is_not_handed_out_in_part_nor_asked_for_twice) {
  State s;
  EXPECT_DEATH(s.object.release(), "complete");
  s.object.take(0);
  EXPECT_DEATH(s.object.take(0), "free_");
  s.object.add(s.chunk(1));
  EXPECT_DEATH(s.object.give_back(1), "empty");
}

}  // namespace
}  // namespace tw::sync
