// SPDX-License-Identifier: Apache-2.0
#include "sync/donor.h"

#include <gtest/gtest.h>

#include "sync/test_state.h"

namespace tw::sync {
namespace {

using wire::ObjectGone;

constexpr wire::ObjectAsk kStateAsk{{wire::ObjectKind::state, 0}};

wire::ObjectId state_id(Round round) { return {wire::ObjectKind::state, round}; }

wire::ObjectId mean_id(Round round) { return {wire::ObjectKind::mean, round}; }

/// A donor whose history grows when the test commits.
struct Giver {
  std::vector<wire::Record> records = sample::history(1, 100);
  Round head = 5;
  Donor donor;

  void ask_state(PeerId from) { donor.on_ask(from, kStateAsk, &records[head]); }

  void ask_mean(PeerId from, Round round) { donor.on_ask(from, {mean_id(round)}, &records[head]); }

  void freeze() {
    // owners: donor and this test
    donor.give(std::make_shared<const StateImage>(sample::image(records[head])));
  }

  void commit() {
    ++head;
    donor.keep_mean(records[head], sample::segments(1, head));
  }

  /// The only message that was sent since the last call.
  template <class T>
  T sent_to(PeerId peer) {
    const wire::Outbox out = donor.take_messages();
    EXPECT_EQ(out.size(), 1U);
    if (out.size() != 1 || out[0].to != peer || !std::holds_alternative<T>(out[0].message)) {
      ADD_FAILURE() << "not sent to " << to_string(peer);
      return {};
    }
    return std::get<T>(out[0].message);
  }

  bool silent() { return donor.take_messages().empty(); }

  std::vector<std::uint32_t> pull_all(PeerId peer) {
    std::vector<std::uint32_t> indexes;
    while (const auto message = donor.next_bulk(peer))
      indexes.push_back(std::get<wire::Chunk>(*message).index);
    return indexes;
  }
};

TEST(Donor, offers_the_state_to_all_who_asked_while_it_was_frozen) {
  Giver m;
  EXPECT_FALSE(m.donor.wants_image());
  m.ask_state(kAnna);
  EXPECT_TRUE(m.donor.wants_image());
  m.ask_state(kBert);
  EXPECT_TRUE(m.silent());
  m.freeze();
  EXPECT_FALSE(m.donor.wants_image());

  const StateImage image = sample::image(m.records[5]);
  const wire::Outbox out = m.donor.take_messages();
  ASSERT_EQ(out.size(), 2U);
  for (const wire::Envelope& envelope : out) {
    EXPECT_EQ(
        std::get<wire::ObjectOffer>(envelope.message),
        (wire::ObjectOffer{state_id(5), m.records[5], image.parameters, sample::kStateBytes, image.digests}));
  }
  EXPECT_NE(out[0].to, out[1].to);
}

TEST(Donor, forgets_asks_for_the_image_before_when_it_offers_another) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  m.donor.take_messages();
  m.commit();
  m.ask_state(kAnna);
  m.donor.on_chunk_ask(kAnna, {state_id(5), 0});  // still held, while the next one is frozen
  m.freeze();
  const wire::Outbox out = m.donor.take_messages();
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(std::get<ObjectGone>(out[0].message).object, state_id(5));
  EXPECT_EQ(std::get<wire::ObjectOffer>(out[1].message).object, state_id(6));
  EXPECT_TRUE(m.pull_all(kAnna).empty());
}

TEST(Donor, offers_at_once_what_it_holds_of_this_very_head) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  (void)m.sent_to<wire::ObjectOffer>(kAnna);
  m.ask_state(kBert);
  EXPECT_EQ(m.sent_to<wire::ObjectOffer>(kBert).object, state_id(5));
  EXPECT_FALSE(m.donor.wants_image());
}

TEST(Donor, wants_a_new_image_when_the_head_has_moved_or_is_of_another_history) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  m.commit();
  m.ask_state(kBert);
  EXPECT_TRUE(m.donor.wants_image());
  m.freeze();
  m.records = sample::history(2, 100);
  m.ask_state(kAnna);
  EXPECT_TRUE(m.donor.wants_image());
}

TEST(Donor, has_nothing_for_those_who_ask_before_it_has_a_state) {
  Giver m;
  m.donor.on_ask(kAnna, kStateAsk, nullptr);
  EXPECT_EQ(m.sent_to<ObjectGone>(kAnna).object, kStateAsk.object);
  EXPECT_FALSE(m.donor.has_followers());
  EXPECT_FALSE(m.donor.wants_image());
}

TEST(Donor, hands_out_chunks_in_the_order_asked_and_each_once) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  for (const std::uint32_t i : {3U, 1U, 3U, 2U}) m.donor.on_chunk_ask(kAnna, {state_id(5), i});
  EXPECT_EQ(m.donor.take_wakeups(), std::vector{kAnna});
  EXPECT_TRUE(m.donor.take_wakeups().empty());
  const auto message = m.donor.next_bulk(kAnna);
  ASSERT_TRUE(message);
  const wire::Chunk& chunk = std::get<wire::Chunk>(*message);
  EXPECT_EQ(chunk.object, state_id(5));
  EXPECT_EQ(chunk.index, 3U);
  EXPECT_EQ(sample::bytes_of({chunk.payload}), sample::bytes_of({sample::image(m.records[5]).chunks[3]}));
  EXPECT_EQ(m.pull_all(kAnna), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_FALSE(m.donor.next_bulk(kBert));
}

TEST(Donor, wakes_those_who_wait_for_chunks_when_it_may_send_again) {
  Giver m;
  m.ask_state(kAnna);
  m.ask_state(kBert);
  m.freeze();
  m.donor.on_chunk_ask(kBert, {state_id(5), 0});
  EXPECT_EQ(m.donor.take_wakeups(), std::vector{kBert});
  EXPECT_TRUE(m.donor.take_wakeups().empty());
  m.donor.wake_followers();
  m.donor.wake_followers();
  EXPECT_EQ(m.donor.take_wakeups(), std::vector{kBert});
}

TEST(Donor, says_gone_for_what_it_does_not_hold_or_did_not_offer) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  (void)m.donor.take_messages();
  const auto chunks = static_cast<std::uint32_t>(sample::image(m.records[5]).chunks.size());
  for (const wire::ChunkAsk& ask :
       {wire::ChunkAsk{state_id(4), 0}, wire::ChunkAsk{state_id(5), chunks}, wire::ChunkAsk{mean_id(5), 0}}) {
    m.donor.on_chunk_ask(kAnna, ask);
    EXPECT_EQ(m.sent_to<ObjectGone>(kAnna).object, ask.object);
  }
  m.donor.on_chunk_ask(kBert, {state_id(5), 0});
  EXPECT_EQ(m.sent_to<ObjectGone>(kBert).object, state_id(5));
  EXPECT_TRUE(m.donor.take_wakeups().empty());
}

TEST(Donor, keeps_only_the_newest_chunk_asks_of_a_flood) {
  Giver m;
  m.donor = Donor({.max_means = 8, .max_chunk_asks = 4});
  m.ask_state(kAnna);
  m.freeze();
  for (std::uint32_t i = 0; i < 7; ++i) m.donor.on_chunk_ask(kAnna, {state_id(5), i});
  EXPECT_EQ(m.pull_all(kAnna), (std::vector<std::uint32_t>{3, 4, 5, 6}));
}

TEST(Donor, stops_repeating_long_offers_to_a_flood_of_asks) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  for (int i = 0; i < 100; ++i) m.ask_state(kAnna);
  const auto offers = [&] {
    const wire::Outbox out = m.donor.take_messages();
    return std::count_if(out.begin(), out.end(), [](const wire::Envelope& e) {
      return std::holds_alternative<wire::ObjectOffer>(e.message);
    });
  };
  EXPECT_EQ(offers(), 16);
  m.donor.on_chunk_ask(kAnna, {state_id(5), 0});
  EXPECT_TRUE(m.donor.next_bulk(kAnna));
  m.ask_state(kAnna);
  EXPECT_EQ(offers(), 1);
}

TEST(Donor, keeps_means_only_while_somebody_follows) {
  Giver m;
  m.commit();
  m.ask_state(kAnna);
  m.ask_mean(kAnna, 6);
  EXPECT_EQ(m.sent_to<ObjectGone>(kAnna).object, mean_id(6));
  m.commit();
  m.ask_mean(kAnna, 7);
  const auto offer = m.sent_to<wire::ObjectOffer>(kAnna);
  EXPECT_EQ(offer.record, m.records[7]);
  EXPECT_EQ(offer.content, m.records[7].mean);
  EXPECT_EQ(offer.bytes, sample::kMeanBytes);
  m.donor.on_chunk_ask(kAnna, {mean_id(7), 5});
  const auto message = m.donor.next_bulk(kAnna);
  ASSERT_TRUE(message);
  EXPECT_EQ(digest_of(std::get<wire::Chunk>(*message).payload.bytes()), offer.chunks[5]);

  m.donor.on_done(kAnna);
  EXPECT_FALSE(m.donor.has_followers());
  m.ask_mean(kBert, 7);
  EXPECT_EQ(m.sent_to<ObjectGone>(kBert).object, mean_id(7));
}

TEST(Donor, drops_the_oldest_mean_beyond_eight_and_tells_who_waits_for_it) {
  Giver m;
  m.ask_state(kAnna);
  for (int i = 0; i < 8; ++i) m.commit();
  m.donor.on_chunk_ask(kAnna, {mean_id(6), 0});
  m.donor.on_chunk_ask(kAnna, {mean_id(6), 1});
  m.donor.on_chunk_ask(kAnna, {mean_id(7), 0});
  EXPECT_TRUE(m.silent());
  m.commit();
  EXPECT_EQ(m.sent_to<ObjectGone>(kAnna).object, mean_id(6));
  const auto message = m.donor.next_bulk(kAnna);
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<wire::Chunk>(*message).object, mean_id(7));
  EXPECT_FALSE(m.donor.next_bulk(kAnna));
  m.ask_mean(kAnna, 6);
  EXPECT_EQ(m.sent_to<ObjectGone>(kAnna).object, mean_id(6)) << "later ones are here";
}

TEST(Donor, replaces_the_means_of_a_history_that_it_left) {
  Giver m;
  m.ask_state(kAnna);
  m.commit();
  m.commit();
  m.head = 5;
  m.records = sample::history(2, 100);
  m.commit();
  m.ask_mean(kAnna, 6);
  EXPECT_EQ(m.sent_to<wire::ObjectOffer>(kAnna).record, m.records[6]);
  m.ask_mean(kAnna, 7);
  EXPECT_EQ(m.sent_to<ObjectGone>(kAnna).object, mean_id(7));
}

TEST(Donor, releases_the_image_with_the_last_follower) {
  Giver m;
  // owners: donor and this test
  const auto image = std::make_shared<const StateImage>(sample::image(m.records[5]));
  m.ask_state(kAnna);
  m.ask_state(kBert);
  m.donor.give(image);
  m.donor.on_done(kAnna);
  EXPECT_GT(image.use_count(), 1);
  m.donor.on_close(kBert);
  EXPECT_EQ(image.use_count(), 1);
  m.donor.give(image);
  EXPECT_EQ(image.use_count(), 1) << "nobody waits any more";
}

TEST(Donor, takes_no_image_from_those_who_fetch_it) {
  Giver m;
  // owners: donor and this test
  std::vector<std::shared_ptr<const StateImage>> images;
  const auto give = [&] {
    // owners: donor and this test
    images.push_back(std::make_shared<const StateImage>(sample::image(m.records[m.head])));
    m.donor.give(images.back());
    (void)m.donor.take_messages();
  };
  for (const PeerId peer : {kAnna, kBert}) {
    m.commit();
    m.ask_state(peer);
    give();
  }
  m.donor.on_chunk_ask(kAnna, {state_id(6), 0});
  m.donor.on_chunk_ask(kBert, {state_id(7), 1});

  m.commit();
  m.ask_state(PeerId{13});
  EXPECT_EQ(m.sent_to<wire::ObjectOffer>(PeerId{13}).object, state_id(7)) << "the newest of those held";
  EXPECT_FALSE(m.donor.wants_image()) << "the mean after it is here";
  EXPECT_EQ(m.pull_all(kAnna), std::vector<std::uint32_t>{0});
  EXPECT_EQ(m.pull_all(kBert), std::vector<std::uint32_t>{1});

  m.ask_state(kAnna);
  EXPECT_TRUE(m.donor.wants_image()) << "nobody else fetches hers";
  give();
  EXPECT_EQ(images[0].use_count(), 1) << "an old image without users";
  EXPECT_GT(images[1].use_count(), 1);
  m.ask_mean(kBert, 8);
  m.ask_mean(PeerId{13}, 8);
  m.commit();
  m.ask_state(PeerId{14});
  EXPECT_TRUE(m.donor.wants_image()) << "they have the state, and need means";
}

TEST(Donor, freezes_another_image_where_the_means_after_the_newest_are_gone) {
  Giver m;
  for (const PeerId peer : {kAnna, kBert}) {
    m.commit();
    m.ask_state(peer);
    m.freeze();
  }
  for (int round = 0; round < 8; ++round) m.commit();
  (void)m.donor.take_messages();
  m.ask_state(PeerId{13});
  EXPECT_FALSE(m.donor.wants_image());
  m.commit();
  m.ask_state(PeerId{14});
  EXPECT_TRUE(m.donor.wants_image());
}

TEST(Donor, tells_at_once_who_waits_for_chunks_of_an_image_that_is_replaced) {
  Giver m;
  for (const PeerId peer : {kAnna, kBert}) {
    m.commit();
    m.ask_state(peer);
    m.freeze();
  }
  m.donor.on_chunk_ask(kAnna, {state_id(6), 0});
  for (int round = 0; round < 9; ++round) m.commit();
  (void)m.donor.take_messages();
  m.ask_state(PeerId{13});
  m.freeze();
  bool told = false;
  for (const wire::Envelope& envelope : m.donor.take_messages()) {
    const auto* gone = std::get_if<ObjectGone>(&envelope.message);
    told = told || (envelope.to == kAnna && gone && gone->object == state_id(6));
  }
  EXPECT_TRUE(told);
}

TEST(Donor, forgets_the_chunk_asks_of_who_asks_for_a_state_again) {
  Giver m;
  m.ask_state(kAnna);
  m.freeze();
  m.donor.on_chunk_ask(kAnna, {state_id(5), 0});
  m.ask_state(kAnna);
  EXPECT_FALSE(m.donor.next_bulk(kAnna));
}

}  // namespace
}  // namespace tw::sync
