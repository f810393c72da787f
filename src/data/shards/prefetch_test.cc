// SPDX-License-Identifier: Apache-2.0
#include "data/shards/prefetch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "base/prng.h"
#include "data/sample_order.h"
#include "data/shards/index_shards.h"
#include "data/shards/test_tar.h"

namespace tw::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// 40 samples in two shards: input n, target 1000 + n.
class Fetching : public testing::Test {
 protected:
  Fetching() {
    for (int shard = 0; shard < 2; ++shard) {
      std::vector<std::pair<std::string, std::string>> files;
      for (int i = 20 * shard; i < 20 * shard + 20; ++i) {
        files.emplace_back(fmt::format("{:03}.txt", i), fmt::format("{}", i));
        files.emplace_back(fmt::format("{:03}.cls", i), fmt::format("{}", 1000 + i));
      }
      store_.objects[fmt::format("{}.tar", shard)] = test_tar(files);
    }
    index_ = index_shards({"0.tar", "1.tar"}, store_, {}).value();
    looked_ = store_.asked().size();
  }

  Prefetch open(Prefetch::Settings settings = {}) {
    return {index_, store_, std::move(settings),
            [](const ShardIndex::Sample& sample) {
              return std::vector<FieldPlace>(sample.fields.begin(), sample.fields.end());
            },
            [](const Pick&, const std::vector<std::string_view>& fields) {
              const auto number = [](std::string_view text) {
                return Array{{}, std::vector<std::int64_t>{std::stoll(std::string(text))}};
              };
              return Example{{number(fields[0]), number(fields[1])}};
            }};
  }

  static std::vector<Pick> picks(std::uint64_t first, std::uint64_t count) {
    std::vector<Pick> all;
    for (std::uint64_t i = first; i < first + count; ++i) all.push_back({i, i});
    return all;
  }

  /// Reads of samples so far.
  std::vector<world::Extent> reads() const {
    std::vector<world::Extent> all = store_.asked();
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(looked_));
    return all;
  }

  MemoryStore store_;
  ShardIndex index_;
  std::size_t looked_ = 0;
};

std::int64_t number_in(const FieldValue& field) { return std::get<1>(std::get<Array>(field).values).at(0); }

TEST_F(Fetching, gives_the_samples_that_were_asked_for) {
  Prefetch prefetch = open({.threads = 3});
  const auto taken = prefetch.take(std::vector<Pick>{{21, 0}, {3, 1}, {3, 1}, {3, 9}});
  ASSERT_TRUE(taken) << taken.error().message;
  ASSERT_EQ(taken.value().size(), 3U);
  EXPECT_EQ(number_in(taken.value().at({21, 0}).fields[0]), 21);
  EXPECT_EQ(number_in(taken.value().at({3, 9}).fields[1]), 1003);
  EXPECT_EQ(prefetch.held_bytes(), 0U);
}

TEST_F(Fetching, reads_neighbours_at_once_and_each_shard_by_itself) {
  Prefetch prefetch = open();
  prefetch.expect(picks(10, 20));
  ASSERT_TRUE(prefetch.take(picks(10, 20)));
  ASSERT_EQ(reads().size(), 2U);
  EXPECT_EQ(reads()[0].object, "0.tar");
  EXPECT_EQ(reads()[1].object, "1.tar");
  EXPECT_EQ(reads()[1].offset, 512U);
  EXPECT_EQ(reads()[1].version, index_.shards()[1].version);
}

TEST_F(Fetching, asks_for_what_is_expected_before_it_is_needed_and_once) {
  store_.holds_back = true;
  Prefetch prefetch = open();
  prefetch.expect(picks(0, 8));
  while (reads().empty()) std::this_thread::yield();
  prefetch.expect(picks(4, 8));  // the first four were done, or went to other peers
  while (prefetch.reads() < 2) std::this_thread::yield();
  store_.holds_back = false;
  store_.answer_all();
  ASSERT_TRUE(prefetch.take(picks(4, 8)));
  EXPECT_EQ(prefetch.reads(), 2U) << "the second one for the last four alone";
}

// A lease names a sample until it is computed.
TEST_F(Fetching, does_not_ask_again_for_what_was_taken) {
  Prefetch prefetch = open();
  prefetch.expect(picks(0, 8));
  ASSERT_TRUE(prefetch.take(picks(0, 8)));
  prefetch.expect(picks(0, 12));
  ASSERT_TRUE(prefetch.take(picks(8, 4)));
  EXPECT_EQ(prefetch.reads(), 2U);
  EXPECT_EQ(prefetch.held_bytes(), 0U);
  ASSERT_TRUE(prefetch.take(picks(0, 1))) << "computed again all the same";
}

TEST_F(Fetching, holds_no_more_than_its_memory_ahead) {
  Prefetch prefetch = open({.memory_bytes = 1});
  prefetch.expect(picks(0, 1));
  ASSERT_TRUE(prefetch.take(picks(0, 1)));
  store_.holds_back = true;
  prefetch.expect(std::vector<Pick>{{0, 100}, {39, 101}, {5, 102}});
  while (prefetch.reads() < 2) std::this_thread::yield();
  store_.holds_back = false;
  store_.answer_all();
  // The sample that was read ahead fills the memory; needed ones are read all the same.
  ASSERT_TRUE(prefetch.take(std::vector<Pick>{{39, 101}, {5, 102}}));
  EXPECT_EQ(prefetch.reads(), 4U);
}

// A sample that is leased to another peer meanwhile is then not read in vain.
TEST_F(Fetching, reads_no_further_ahead_than_it_takes_to_be_in_time) {
  Prefetch prefetch = open({.reads_at_once = 1});
  constexpr std::uint64_t kBefore = 20;  // only unexpected samples are late
  for (std::uint64_t i = 0; i < kBefore; ++i) ASSERT_TRUE(prefetch.take(picks(i, 1)));
  std::vector<Pick> apart;  // each needs a read of its own
  for (std::uint64_t i = 0; i < 20; ++i) apart.push_back({(13 * i + 5) % 40, 100 + i});
  prefetch.expect(apart);
  for (std::size_t at = 0; at < 3; ++at) ASSERT_TRUE(prefetch.take(std::span(apart).subspan(at, 1)));
  EXPECT_LE(prefetch.reads() - kBefore, 3U + 8U) << "what is late doubles the one, three times at most";
}

TEST_F(Fetching, of_what_cannot_be_read_names_object_and_bytes) {
  store_.broken["1.tar"] = "answered with 503";
  Prefetch prefetch = open();
  const auto some = prefetch.take(std::vector<Pick>{{20, 1}, {0, 0}, {1, 2}});
  ASSERT_FALSE(some);
  EXPECT_THAT(some.error().message, HasSubstr("1.tar, bytes "));
  EXPECT_THAT(some.error().message, HasSubstr("answered with 503"));
  EXPECT_EQ(prefetch.held_bytes(), 0U) << "the others are not kept";
}

TEST_F(Fetching, reads_once_more_what_cannot_be_decoded) {
  std::atomic<int> decoded = 0;
  std::atomic<int> breaks = 1;
  const auto open_breaking = [&] {
    return Prefetch(
        index_, store_, {},
        [](const ShardIndex::Sample& sample) {
          return std::vector<FieldPlace>(sample.fields.begin(), sample.fields.end());
        },
        [&](const Pick&, const std::vector<std::string_view>&) {
          return ++decoded <= breaks ? Example{.broken = "no picture"} : Example{};
        });
  };
  Prefetch once = open_breaking();
  EXPECT_TRUE(once.take(picks(7, 1)));
  EXPECT_EQ(once.reads(), 2U);
  EXPECT_FALSE(reads()[0].anew);
  EXPECT_TRUE(reads()[1].anew) << "not what a cache has";
  breaks = 100;
  Prefetch always = open_breaking();
  EXPECT_EQ(always.take(picks(7, 1)).error().message, "0.tar: 007: no picture");
  EXPECT_EQ(always.reads(), 2U);
}

TEST_F(Fetching, reads_nothing_of_a_sample_without_fields) {
  Prefetch prefetch(
      index_, store_, {}, [](const ShardIndex::Sample&) { return std::vector<FieldPlace>(); },
      [](const Pick&, const std::vector<std::string_view>&) { return Example{}; });
  EXPECT_EQ(prefetch.take(picks(7, 1)).error().message,
            "0.tar: 007: it has none of the fields that are read");
  EXPECT_EQ(prefetch.reads(), 0U);
}

TEST_F(Fetching, asks_again_for_what_could_not_be_read_ahead) {
  store_.broken["1.tar"] = "answered with 503";
  Prefetch prefetch = open();
  prefetch.expect(picks(20, 4));
  while (reads().empty()) std::this_thread::yield();
  prefetch.expect(picks(20, 4));
  store_.broken.clear();
  const auto taken = prefetch.take(picks(20, 4));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(number_in(taken.value().at({23, 23}).fields[0]), 23);
}

TEST_F(Fetching, waits_for_samples_no_longer_than_it_is_told) {
  store_.holds_back = true;
  Prefetch prefetch = open();
  const std::vector<Pick> some = picks(0, 4);
  EXPECT_FALSE(prefetch.wait(some, Duration::zero()));
  while (reads().empty()) std::this_thread::yield();
  EXPECT_FALSE(prefetch.wait(some, std::chrono::milliseconds(1)));
  store_.holds_back = false;
  store_.answer_all();
  EXPECT_TRUE(prefetch.wait(some, std::chrono::hours(1)));
  EXPECT_EQ(number_in(prefetch.take(some).value().at({3, 3}).fields[0]), 3);
  EXPECT_EQ(prefetch.reads(), 1U);
}

TEST_F(Fetching, asks_once_for_what_was_waited_for_and_could_not_be_read) {
  store_.broken["0.tar"] = "answered with 503";
  Prefetch prefetch = open();
  EXPECT_TRUE(prefetch.wait(picks(0, 1), std::chrono::hours(1)));
  EXPECT_THAT(prefetch.take(picks(0, 1)).error().message, HasSubstr("answered with 503"));
  EXPECT_EQ(prefetch.reads(), 1U);
}

TEST_F(Fetching, of_any_leases_gives_every_sample_right) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    Prefetch prefetch =
        open({.threads = 2, .memory_bytes = 1 + prng.below(5000), .reads_at_once = 1 + prng.below(4)});
    const SampleOrder order(seed, 40, 1 + prng.below(8));
    std::uint64_t next = 0;
    while (next < 120) {
      std::vector<Pick> ahead;
      for (std::uint64_t i = next; i < next + prng.below(40); ++i) ahead.push_back({order.index_of(i), i});
      prefetch.expect(ahead);
      std::vector<Pick> now;
      for (const std::uint64_t end = next + 1 + prng.below(10); next < end; ++next)
        now.push_back({order.index_of(next), next});
      const auto taken = prefetch.take(now);
      ASSERT_TRUE(taken) << taken.error().message;
      for (const Pick& pick : now)
        ASSERT_EQ(number_in(taken.value().at(pick).fields[0]), static_cast<std::int64_t>(pick.index)) << seed;
    }
  }
}

TEST_F(Fetching, ends_while_reads_are_under_way) {
  store_.holds_back = true;
  {
    Prefetch prefetch = open();
    prefetch.expect(picks(0, 8));
    while (reads().empty()) std::this_thread::yield();
  }
  store_.answer_all();
}

TEST(BlockOrder, keeps_blocks_together_and_takes_every_sample_once) {
  for (const std::uint64_t block : {1U, 4U, 7U, 100U}) {
    const SampleOrder order(3, 30, block);
    std::set<std::uint64_t> seen;
    for (std::uint64_t s = 30; s < 60; ++s) {
      const std::uint64_t index = order.index_of(s);
      EXPECT_TRUE(seen.insert(index).second);
      if ((s - 30) % block == 0) continue;
      EXPECT_EQ(index, order.index_of(s - 1) + 1);
    }
    EXPECT_EQ(*seen.rbegin(), 29U);
  }
}

}  // namespace
}  // namespace tw::data
