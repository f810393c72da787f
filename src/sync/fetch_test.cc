// SPDX-License-Identifier: Apache-2.0
#include "sync/fetch.h"

#include <gtest/gtest.h>

#include "sync/test_state.h"

namespace tw::sync {
namespace {

using wire::ObjectKind;
using wire::ObjectOffer;
using namespace std::chrono_literals;

constexpr PeerId kCleo{13};

Fetch::Options options(std::size_t window = 4) {
  return {sample::kRun,
          {sample::kStateBytes, sample::kChunkBytes},
          {{sample::kMeanBytes, sample::kSegmentBytes}},
          window};
}

ObjectOffer offer_of(const StateImage& image) {
  return {
      {ObjectKind::state, image.record.round}, image.record, image.parameters, image.bytes(), image.digests};
}

/// A joiner with its own clock, and what it sent.
struct Joiner {
  std::vector<wire::Record> records = sample::history(1, 20);
  Instant now{};
  Fetch fetch{options()};
  std::map<PeerId, std::vector<wire::ChunkAsk>> chunk_asks;
  std::map<PeerId, int> object_asks;

  void collect() {
    for (const wire::Envelope& envelope : fetch.take_messages()) {
      if (const auto* ask = std::get_if<wire::ChunkAsk>(&envelope.message))
        chunk_asks[envelope.to].push_back(*ask);
      if (std::holds_alternative<wire::ObjectAsk>(envelope.message)) ++object_asks[envelope.to];
    }
  }

  void want_state(const std::vector<PeerId>& sources) {
    fetch.want_state(now, sources);
    collect();
  }

  void offer(PeerId from, const ObjectOffer& offer) {
    fetch.on_offer(now, from, offer);
    collect();
  }

  void decline(PeerId from) {
    fetch.on_gone(now, from, {{ObjectKind::state, 0}});
    collect();
  }

  void chunk(PeerId from, const StateImage& image, std::uint32_t index) {
    fetch.on_chunk(now, from, {{ObjectKind::state, image.record.round}, index, image.chunks[index]});
    collect();
  }

  /// Answers the oldest ask of this peer.
  bool answer(PeerId from, const StateImage& image) {
    auto& asks = chunk_asks[from];
    if (asks.empty()) return false;
    const std::uint32_t index = asks.front().index;
    asks.erase(asks.begin());
    chunk(from, image, index);
    return true;
  }

  void after(Duration time) {
    now += time;
    fetch.step(now);
    collect();
  }

  StateImage image(Round round, std::uint64_t seed = 1) { return sample::image(records[round], seed); }
};

TEST(Fetch, takes_a_state_from_two_who_offer_the_same) {
  Joiner j;
  const StateImage image = j.image(5);
  j.want_state({kAnna, kBert});
  EXPECT_EQ(j.fetch.waiting_for(), (std::vector{kAnna, kBert}));
  EXPECT_EQ(j.fetch.progress().total, 0U);
  j.offer(kAnna, offer_of(image));
  EXPECT_TRUE(j.chunk_asks.empty()) << "the other one has not answered";
  j.offer(kBert, offer_of(image));
  EXPECT_EQ(j.chunk_asks[kAnna].size(), 4U);
  EXPECT_EQ(j.chunk_asks[kBert].size(), 4U);
  j.answer(kAnna, image);
  EXPECT_EQ(j.fetch.progress().done, image.chunks[0].size());
  EXPECT_EQ(j.fetch.progress().total, image.bytes());
  EXPECT_EQ(j.chunk_asks[kAnna].size(), 4U) << "the window is filled again";
  EXPECT_FALSE(j.fetch.take_state());
  while (j.answer(kAnna, image) || j.answer(kBert, image)) {
  }
  const auto state = j.fetch.take_state();
  ASSERT_TRUE(state);
  EXPECT_TRUE(sample::same(*state, image));
  EXPECT_FALSE(j.fetch.take_state());
}

TEST(Fetch, does_not_wait_long_for_those_who_do_not_answer) {
  Joiner j;
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(j.image(5)));
  EXPECT_EQ(j.fetch.next_step(), j.now + 500ms);
  j.after(500ms);
  EXPECT_EQ(j.chunk_asks[kAnna].size(), 4U);
}

TEST(Fetch, chooses_the_highest_round_and_then_what_most_offer) {
  Joiner j;
  j.want_state({kAnna, kBert, kCleo});
  j.offer(kAnna, offer_of(j.image(5, 2)));
  j.offer(kBert, offer_of(j.image(5)));
  j.offer(kCleo, offer_of(j.image(5)));
  EXPECT_TRUE(j.chunk_asks[kAnna].empty());
  EXPECT_FALSE(j.chunk_asks[kBert].empty());
  EXPECT_FALSE(j.chunk_asks[kCleo].empty());

  Joiner k;
  k.want_state({kAnna, kBert, kCleo});
  k.offer(kAnna, offer_of(k.image(6)));
  k.offer(kBert, offer_of(k.image(5)));
  k.offer(kCleo, offer_of(k.image(5)));
  EXPECT_FALSE(k.chunk_asks[kAnna].empty());
  EXPECT_TRUE(k.chunk_asks[kBert].empty());
}

TEST(Fetch, changes_to_a_higher_round_only_as_long_as_nothing_has_arrived) {
  for (const bool arrived : {false, true}) {
    Joiner j;
    j.want_state({kAnna, kBert});
    j.offer(kAnna, offer_of(j.image(5)));
    j.after(500ms);
    if (arrived) j.answer(kAnna, j.image(5));
    j.offer(kBert, offer_of(j.image(6)));
    EXPECT_EQ(j.chunk_asks[kBert].empty(), arrived);
  }
}

// thin_lines 464: a source fell behind in each round, and came back with a newer state. Each new choice put a
// whole state on a link of 1 Mbit/s: after 36 s none had arrived.
TEST(Fetch, keeps_to_its_choice_when_a_source_comes_again_and_again_with_a_newer_state) {
  Joiner j;
  j.want_state({kAnna});
  j.offer(kAnna, offer_of(j.image(5)));
  const std::size_t asked = j.chunk_asks[kAnna].size();
  for (Round round = 6; round < 10; ++round) {
    j.after(1s);
    j.fetch.set_sources(j.now, {kAnna, kBert});
    j.collect();
    j.offer(kBert, offer_of(j.image(round)));
    j.after(100ms);
    j.fetch.set_sources(j.now, {kAnna});
    j.collect();
  }
  EXPECT_TRUE(j.chunk_asks[kBert].empty());
  EXPECT_EQ(j.chunk_asks[kAnna].size(), asked);
}

TEST(Fetch, refuses_offers_that_do_not_fit) {
  const Joiner j;
  const auto refused = [&](auto&& spoil) {
    Joiner k;
    k.want_state({kAnna});
    ObjectOffer offer = offer_of(k.image(5));
    spoil(offer);
    k.offer(kAnna, offer);
    k.after(400ms);
    return k.chunk_asks.empty() && k.fetch.take_refusals().size() == 1;
  };
  EXPECT_FALSE(refused([](ObjectOffer&) {}));
  EXPECT_TRUE(refused([](ObjectOffer& o) { o.bytes += 1; }));
  EXPECT_TRUE(refused([](ObjectOffer& o) { o.bytes = std::uint64_t{1} << 60; }));
  EXPECT_TRUE(refused([](ObjectOffer& o) { o.chunks.pop_back(); }));
  EXPECT_TRUE(refused([](ObjectOffer& o) { o.chunks.emplace_back(); }));
  EXPECT_TRUE(refused([](ObjectOffer& o) { o.record.run.low ^= 1; }));
  EXPECT_TRUE(refused([](ObjectOffer& o) { o.object.round = 6; }));
}

TEST(Fetch, drops_who_sends_bad_bytes_and_asks_another) {
  for (const int fault : {0, 1, 2}) {
    SCOPED_TRACE(fault);
    Joiner j;
    const StateImage image = j.image(5);
    j.want_state({kAnna, kBert});
    j.offer(kAnna, offer_of(image));
    j.offer(kBert, offer_of(image));
    wire::Chunk bad{{ObjectKind::state, 5}, 0, image.chunks[fault == 0 ? 1 : 0]};
    if (fault == 1) bad.payload = Blob(std::vector<std::byte>(sample::kChunkBytes + 1));
    if (fault == 2) bad.index = static_cast<std::uint32_t>(image.chunks.size());
    j.fetch.on_chunk(j.now, kAnna, bad);
    j.collect();
    const auto refusals = j.fetch.take_refusals();
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_EQ(refusals[0].peer, kAnna);
    EXPECT_EQ(j.fetch.waiting_for(), std::vector{kBert});
    while (j.answer(kBert, image)) {
    }
    EXPECT_TRUE(j.fetch.take_state());
  }
}

std::vector<std::uint32_t> indices_of(const std::vector<wire::ChunkAsk>& asks) {
  std::vector<std::uint32_t> indices;
  for (const wire::ChunkAsk& ask : asks) indices.push_back(ask.index);
  return indices;
}

TEST(Fetch, asks_an_anchor_first_and_others_for_what_its_window_does_not_take) {
  Joiner j;
  const StateImage image = j.image(5);
  j.fetch.prefer({kBert});
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.offer(kBert, offer_of(image));
  EXPECT_EQ(indices_of(j.chunk_asks[kBert]), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(indices_of(j.chunk_asks[kAnna]), (std::vector<std::uint32_t>{4, 5, 6, 7}));
}

TEST(Fetch, takes_a_small_state_from_an_anchor_alone_unless_that_falls_silent) {
  Joiner j;
  j.fetch = Fetch(options(32));
  const StateImage image = j.image(5);
  j.fetch.prefer({kBert});
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.offer(kBert, offer_of(image));
  EXPECT_EQ(j.chunk_asks[kBert].size(), image.chunks.size());
  EXPECT_TRUE(j.chunk_asks[kAnna].empty());
  j.after(6s);
  EXPECT_EQ(j.chunk_asks[kAnna].size(), image.chunks.size());
}

TEST(Fetch, asks_others_for_the_chunks_of_who_falls_silent) {
  Joiner j;
  const StateImage image = j.image(5);
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.offer(kBert, offer_of(image));
  while (j.answer(kBert, image)) {
  }
  EXPECT_EQ(j.fetch.waiting_for().front(), kAnna);
  EXPECT_LE(j.fetch.next_step(), j.now + 1s);
  j.after(1s);
  while (j.answer(kBert, image)) {
  }
  EXPECT_TRUE(j.fetch.take_state());
}

TEST(Fetch, gives_a_slow_source_ten_times_the_usual_time_and_asks_it_again_later) {
  Joiner j;
  const StateImage image = j.image(5);
  j.want_state({kAnna});
  j.offer(kAnna, offer_of(image));
  j.now += 900ms;
  j.answer(kAnna, image);
  EXPECT_EQ(j.fetch.next_step(), j.now + 9s);
  j.after(9s);
  EXPECT_TRUE(j.fetch.waiting_for().empty());
  const auto before = j.chunk_asks[kAnna].size();
  EXPECT_EQ(j.fetch.next_step(), j.now + 9s);
  j.after(9s);
  EXPECT_EQ(j.chunk_asks[kAnna].size(), before + 4);
}

TEST(Fetch, asks_a_slow_source_for_no_second_copy_of_what_it_owes) {
  Joiner j;
  const StateImage image = j.image(5);
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.offer(kBert, offer_of(image));
  j.after(5s);
  EXPECT_TRUE(j.fetch.waiting_for().empty()) << "both are given up";
  const std::vector<wire::ChunkAsk> owed = j.chunk_asks[kAnna];
  ASSERT_EQ(owed.size(), 4U);
  j.after(1s);
  for (std::size_t i = owed.size(); i-- > 0;) j.chunk(kAnna, image, owed[i].index);
  std::set<std::uint32_t> asked;
  for (const wire::ChunkAsk& ask : j.chunk_asks[kAnna])
    EXPECT_TRUE(asked.insert(ask.index).second) << "chunk " << ask.index;
  EXPECT_GT(asked.size(), owed.size()) << "it is slow, and goes on";
}

TEST(Fetch, asks_nobody_for_second_copies_as_long_as_its_line_is_busy_with_what_it_wanted_before) {
  Joiner j;
  Fetch::Options hasty = options();
  hasty.rarely = [](std::string_view site) { return site == "fetch.timeout"; };
  hasty.window = 12;
  j.fetch = Fetch(hasty);
  const StateImage before = j.image(4), image = j.image(5);
  for (const StateImage& wanted : {before, image}) {
    j.chunk_asks.clear();
    j.want_state({kAnna});
    j.offer(kAnna, offer_of(wanted));
  }
  for (std::uint32_t i = 0; i < 12; ++i) {
    j.after(4s);
    j.chunk(kAnna, before, i);
  }
  EXPECT_EQ(j.chunk_asks[kAnna].size(), 12U);
  while (j.answer(kAnna, image)) {
  }
  EXPECT_TRUE(j.fetch.take_state());
}

TEST(Fetch, gives_up_a_source_that_sends_chunks_nobody_asked_for) {
  for (const Round sent : {4, 5}) {  // of another object; of this one, the same chunk again and again
    SCOPED_TRACE(sent);
    Joiner j;
    const StateImage image = j.image(5);
    j.want_state({kAnna});
    j.offer(kAnna, offer_of(image));
    j.answer(kAnna, image);
    bool given_up = false;
    for (int i = 0; i < 10; ++i) {
      j.after(500ms);
      given_up = given_up || j.fetch.waiting_for().empty();
      j.chunk(kAnna, j.image(sent), 0);
    }
    EXPECT_TRUE(given_up);
  }
}

TEST(Fetch, waits_twice_as_long_each_time_for_a_source_that_stays_silent) {
  Joiner j;
  const StateImage image = j.image(5);
  j.want_state({kAnna});
  j.offer(kAnna, offer_of(image));
  std::size_t asks = 0;
  for (const Duration patience : {5s, 10s, 20s, 40s, 80s, 80s}) {
    asks += 4;
    EXPECT_EQ(j.chunk_asks[kAnna].size(), asks);
    EXPECT_EQ(j.fetch.next_step(), j.now + patience);
    j.after(patience);
    EXPECT_EQ(j.fetch.next_step(), j.now + patience) << "given up, and avoided as long";
    j.after(patience);
  }
}

TEST(Fetch, relieves_a_slow_source_of_its_queue_near_the_end) {
  Joiner j;
  j.fetch = Fetch(options(8));
  const StateImage image = j.image(5);
  ASSERT_GE(image.chunks.size(), 16U);
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.offer(kBert, offer_of(image));
  while (j.answer(kBert, image)) {
  }
  const FetchProgress before = j.fetch.progress();
  EXPECT_LE(before.total - before.done, 3 * sample::kChunkBytes);
  while (j.answer(kAnna, image)) {
  }
  EXPECT_TRUE(j.fetch.take_state());
}

// thin_lines 280921241191: a second source offered the state before the first chunk had come, and was asked
// for half of them. The peer's own line was the slow one.
TEST(Fetch, asks_a_source_that_has_sent_nothing_for_one_chunk_of_the_queue_of_another) {
  Joiner j;
  const StateImage image = j.image(5);
  j.fetch = Fetch(options(image.chunks.size()));
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.after(500ms);
  ASSERT_EQ(j.chunk_asks[kAnna].size(), image.chunks.size());
  j.offer(kBert, offer_of(image));
  EXPECT_EQ(j.chunk_asks[kBert].size(), 1U);
  j.answer(kBert, image);
  EXPECT_GT(j.chunk_asks[kBert].size(), 2U) << "it is faster";
}

// The same seed: a source fell behind, and was none any more, but what it had been asked for kept the line
// busy for a minute. All others were given up meanwhile, and all their chunks asked for twice.
TEST(Fetch, knows_what_still_comes_from_a_linked_peer_that_is_no_source_any_more) {
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    Joiner j;
    const StateImage image = j.image(5);
    j.want_state({kAnna, kBert});
    j.offer(kAnna, offer_of(image));
    j.offer(kBert, offer_of(image));
    if (closes) j.fetch.on_close(kAnna);
    j.fetch.set_sources(j.now, {kBert});
    j.collect();
    for (std::uint32_t i = 0; i < 3; ++i) {
      j.after(4s);
      j.chunk(kAnna, image, i);
    }
    EXPECT_EQ(closes, j.fetch.waiting_for().empty()) << "the other one is given up";
  }
}

TEST(Fetch, repeats_a_state_ask_that_all_declined_after_half_a_second) {
  Joiner j;
  j.want_state({kAnna, kBert});
  j.decline(kAnna);
  EXPECT_EQ(j.fetch.next_step(), j.now + 10s) << "when the other one is asked again";
  j.decline(kBert);
  EXPECT_EQ(j.fetch.next_step(), j.now + 500ms);
  j.after(499ms);
  EXPECT_EQ(j.object_asks[kAnna], 1);
  j.after(1ms);
  EXPECT_EQ(j.object_asks[kAnna], 2);
  EXPECT_EQ(j.object_asks[kBert], 2);
  EXPECT_FALSE(j.fetch.gone());
}

// storm 20261126104890: an ask was garbled, and the peer waited for its answer to the end of the run.
TEST(Fetch, asks_those_again_who_do_not_answer) {
  Joiner j;
  j.want_state({kAnna, kBert});
  j.decline(kBert);
  EXPECT_EQ(j.fetch.next_step(), j.now + 10s);
  j.after(10s);
  EXPECT_EQ(2, j.object_asks[kAnna]);
  EXPECT_EQ(1, j.object_asks[kBert]);
  j.after(10s);
  EXPECT_EQ(3, j.object_asks[kAnna]);
}

TEST(Fetch, waits_for_another_state_than_the_one_that_is_here) {
  Joiner j;
  const StateImage here = j.image(5), newer = j.image(6);
  j.fetch.keep_to(j.records[5]);
  j.fetch.want_other_state(j.now, j.records[5], {kAnna});
  j.collect();
  j.offer(kAnna, offer_of(here));
  EXPECT_TRUE(j.chunk_asks.empty()) << "it would bring nothing";
  EXPECT_EQ(j.fetch.progress().total, 0U);
  j.after(500ms);
  EXPECT_EQ(j.object_asks[kAnna], 2) << "asked again";
  j.offer(kAnna, offer_of(newer));
  while (j.answer(kAnna, newer)) {
  }
  EXPECT_TRUE(j.fetch.take_state());
  j.want_state({kAnna});
  j.offer(kAnna, offer_of(here));
  EXPECT_FALSE(j.chunk_asks[kAnna].empty()) << "wanted again where the state here may be wrong";
}

TEST(Fetch, takes_the_state_of_its_own_record_or_of_the_one_before_and_none_that_ranks_behind) {
  for (const Round offered : {3, 4, 5, 6}) {
    Joiner j;
    j.fetch.keep_to(j.records[5]);
    j.want_state({kAnna});
    j.offer(kAnna, offer_of(j.image(offered)));
    EXPECT_EQ(offered < 4 ? 0U : 4U, j.chunk_asks[kAnna].size()) << "round " << offered;
    EXPECT_TRUE(j.fetch.take_refusals().empty()) << "it may be newer the next time";
  }
  Joiner j;
  j.fetch.keep_to(j.records[5]);
  j.want_state({kAnna});
  j.offer(kAnna, offer_of(sample::image(sample::history(1, 20)[4])));
  EXPECT_EQ(4U, j.chunk_asks[kAnna].size());
  Joiner other;
  other.fetch.keep_to(other.records[5]);
  other.want_state({kAnna});
  wire::Record beside = other.records[4];
  beside.mean = Digest{1, 1};
  other.offer(kAnna, offer_of(sample::image(beside)));
  EXPECT_TRUE(other.chunk_asks.empty()) << "as old as the one before, of another history";
}

TEST(Fetch, fetches_nothing_more_once_stopped_and_says_so_only_when_it_has_finished) {
  Joiner j;
  j.want_state({kAnna});
  j.fetch.stop();
  j.offer(kAnna, offer_of(j.image(5)));
  EXPECT_TRUE(j.chunk_asks.empty());
  EXPECT_EQ(j.fetch.next_step(), kNever);
  j.fetch.finish();
  const wire::Outbox out = j.fetch.take_messages();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<wire::SyncDone>(out[0].message));
}

TEST(Fetch, starts_over_with_what_others_offer_when_the_chosen_state_is_gone) {
  Joiner j;
  const StateImage old = j.image(5);
  const StateImage newer = j.image(6);
  j.want_state({kAnna});
  j.offer(kAnna, offer_of(old));
  j.answer(kAnna, old);
  j.fetch.set_sources(j.now, {kAnna, kBert});
  j.offer(kBert, offer_of(newer));
  j.fetch.on_gone(j.now, kAnna, {{ObjectKind::state, 5}});
  j.collect();
  while (j.answer(kBert, newer)) {
  }
  const auto state = j.fetch.take_state();
  ASSERT_TRUE(state);
  EXPECT_TRUE(sample::same(*state, newer));
}

TEST(Fetch, goes_on_with_the_others_when_a_link_closes_and_waits_when_none_is_left) {
  Joiner j;
  const StateImage image = j.image(5);
  j.want_state({kAnna, kBert});
  j.offer(kAnna, offer_of(image));
  j.offer(kBert, offer_of(image));
  j.fetch.set_sources(j.now, {kBert});
  j.collect();
  j.answer(kBert, image);
  j.fetch.set_sources(j.now, {});
  EXPECT_EQ(j.fetch.next_step(), kNever);
  j.fetch.set_sources(j.now, {kCleo});
  j.collect();
  j.offer(kCleo, offer_of(image));
  while (j.answer(kCleo, image)) {
  }
  EXPECT_TRUE(j.fetch.take_state());
}

TEST(Fetch, takes_the_mean_that_follows_a_record_and_no_other) {
  Joiner j;
  const auto chunks = sample::segments(1, 6);
  ObjectOffer good{{ObjectKind::mean, 6}, j.records[6], j.records[6].mean, sample::kMeanBytes, {}};
  for (const Blob& chunk : chunks) good.chunks.push_back(digest_of(chunk.bytes()));
  ObjectOffer fork = good;
  fork.record = sample::history(2, 6)[6];
  fork.content = fork.record.mean;
  ObjectOffer unrelated = good;
  unrelated.content.low ^= 1;
  j.fetch.want_mean(j.now, j.records[5], {kAnna, kBert, kCleo});
  j.offer(kAnna, fork);
  j.offer(kCleo, unrelated);
  j.offer(kBert, good);
  EXPECT_EQ(j.fetch.take_refusals().size(), 2U);
  j.chunk_asks.clear();
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    j.fetch.on_chunk(j.now, kBert, {{ObjectKind::mean, 6}, i, chunks[i]});
  }
  EXPECT_FALSE(j.fetch.take_state());
  const auto mean = j.fetch.take_mean();
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->record, j.records[6]);
  EXPECT_EQ(sample::bytes_of(mean->segments), sample::bytes_of(chunks));
}

TEST(Fetch, knows_how_long_the_mean_of_each_round_is_where_fragments_take_turns) {
  for (const bool its_turn : {true, false}) {
    Joiner j;
    Fetch::Options turns = options();
    turns.means = {{8, 4}, turns.means.front()};
    if (!its_turn) std::ranges::reverse(turns.means);
    j.fetch = Fetch(turns);
    ObjectOffer good{{ObjectKind::mean, 5}, j.records[5], j.records[5].mean, sample::kMeanBytes, {}};
    for (const Blob& chunk : sample::segments(1, 5)) good.chunks.push_back(digest_of(chunk.bytes()));
    j.fetch.want_mean(j.now, j.records[4], {kBert});
    j.offer(kBert, good);
    EXPECT_EQ(its_turn ? 0U : 1U, j.fetch.take_refusals().size());
  }
}

TEST(Fetch, says_gone_when_nobody_has_the_mean) {
  Joiner j;
  j.fetch.want_mean(j.now, j.records[5], {kAnna, kBert});
  j.fetch.on_gone(j.now, kAnna, {{ObjectKind::mean, 6}});
  j.fetch.on_gone(j.now, kBert, {{ObjectKind::mean, 5}});
  EXPECT_FALSE(j.fetch.gone()) << "that was an answer to another ask";
  j.fetch.on_gone(j.now, kBert, {{ObjectKind::mean, 6}});
  EXPECT_TRUE(j.fetch.gone());
  j.want_state({kAnna});
  EXPECT_FALSE(j.fetch.gone());
}

TEST(Fetch, ignores_what_it_did_not_ask_for) {
  Joiner j;
  const StateImage image = j.image(5);
  j.chunk(kAnna, image, 0);
  j.offer(kAnna, offer_of(image));
  j.want_state({kAnna});
  j.offer(kBert, offer_of(image));
  j.chunk(kBert, image, 0);
  j.offer(kAnna, offer_of(image));
  j.offer(kAnna, offer_of(j.image(6)));
  j.chunk(kBert, image, 0);
  j.chunk(kAnna, j.image(6), 0);
  EXPECT_EQ(j.fetch.progress().done, 0U);
  j.chunk(kAnna, image, 0);
  j.chunk(kAnna, image, 0);
  EXPECT_EQ(j.fetch.progress().done, sample::kChunkBytes);
  EXPECT_TRUE(j.fetch.take_refusals().empty());
}

TEST(Fetch, tells_everybody_it_asked_when_it_is_done) {
  Joiner j;
  j.want_state({kAnna, kBert});
  j.want_state({kCleo});
  j.fetch.finish();
  std::vector<PeerId> told;
  for (const wire::Envelope& envelope : j.fetch.take_messages()) {
    EXPECT_TRUE(std::holds_alternative<wire::SyncDone>(envelope.message));
    told.push_back(envelope.to);
  }
  EXPECT_EQ(told, (std::vector{kAnna, kBert, kCleo}));
  j.fetch.finish();
  EXPECT_TRUE(j.fetch.take_messages().empty());
}

}  // namespace
}  // namespace tw::sync
