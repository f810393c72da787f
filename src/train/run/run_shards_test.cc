// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "data/shards/shard_index.h"
#include "train/run/run_data.h"
#include "train/run/run_facts.h"
#include "train/run/run_file_yaml.h"

namespace tw::train {
namespace {

using testing::HasSubstr;

/// A folder with two indexes; gone at the end of the test.
class ShardsOfARun : public testing::Test {
 protected:
  ShardsOfARun() {
    std::filesystem::create_directories(folder_);
    write_index("one.twi", 100);
    write_index("two.twi", 200);
  }

  ~ShardsOfARun() override { std::filesystem::remove_all(folder_); }

  void write_index(const std::string& name, std::uint64_t bytes) const {
    data::ShardIndex index;
    ASSERT_TRUE(index.add({"a.tar", bytes, "v"},
                          {{"0.npy", 10, 5}, {"0.cls", 20, 1}, {"1.npy", 30, 5}, {"1.cls", 40, 1}}));
    std::ofstream(folder_ + "/" + name, std::ios::binary) << index.encode();
  }

  Result<RunOptions> read(const std::string& data) const {
    std::ofstream(folder_ + "/run.yaml") << "data: {" << data << "}\n";
    return read_run_file(folder_ + "/run.yaml");
  }

  std::string facts_of(const std::string& data) const {
    const auto run = read(data);
    EXPECT_TRUE(run) << run.error().message;
    return RunFacts(run.value(), 1).at(11);
  }

  std::string folder_ = testing::TempDir() + "tradewind_shards_" + std::to_string(::getpid());
};

TEST_F(ShardsOfARun, are_known_by_their_index) {
  const auto run =
      read("index: one.twi, inputs: npy, targets: cls, cache: kept, cache_limit: 1GB, memory: 64MiB");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run.value().data.kind, DataKind::shards);
  const ShardData& shards = run.value().data.shards;
  EXPECT_EQ(shards.index, folder_ + "/one.twi");
  EXPECT_EQ(shards.cache, folder_ + "/kept");
  EXPECT_EQ(shards.cache_limit, 1'000'000'000U);
  EXPECT_EQ(shards.memory, 64U << 20);
  EXPECT_EQ(shards.identity.size(), 32U);
}

TEST_F(ShardsOfARun, are_part_of_the_name_of_the_run) {
  const std::string one = facts_of("index: one.twi, inputs: npy, targets: cls");
  EXPECT_THAT(one, HasSubstr("data: shards index="));
  EXPECT_NE(facts_of("index: two.twi, inputs: npy, targets: cls"), one);
  EXPECT_NE(facts_of("index: one.twi, inputs: npy, targets: cls, shuffle: samples"), one);
  EXPECT_NE(facts_of("index: one.twi, test_index: two.twi, inputs: npy, targets: cls"), one);
  EXPECT_EQ(facts_of("index: one.twi, inputs: npy, targets: cls, cache: kept, skip_broken: 3"), one);
}

TEST_F(ShardsOfARun, need_index_and_fields) {
  const auto complaint = [&](const std::string& data) { return read(data).error().message; };
  EXPECT_THAT(complaint("kind: shards, inputs: npy, targets: cls"), HasSubstr("data.index: missing"));
  EXPECT_THAT(complaint("index: one.twi, targets: cls"), HasSubstr("data.inputs: missing"));
  EXPECT_THAT(complaint("index: run.yaml, inputs: npy, targets: cls"),
              HasSubstr("data.index: " + folder_ + "/run.yaml: not an index of shards"));
  EXPECT_THAT(
      complaint("index: one.twi, inputs: npy, targets: cls, memory: much"),
      HasSubstr("data.memory: expected a size such as 512MiB or 10GB, at most 1 TiB, found \"much\""));
}

TEST_F(ShardsOfARun, say_nonsense_in_no_key_without_a_word) {
  const std::string sound = "index: one.twi, inputs: npy, targets: cls";
  const auto complaint = [&](const std::string& data) {
    const auto run = read(data);
    return run ? "none" : run.error().message;
  };
  EXPECT_EQ(complaint(sound + ", block: 1"), "none");
  EXPECT_THAT(
      complaint(sound + ", block: 2"),
      HasSubstr("data.block: expected fewer than the 2 samples of data.index, or nothing is permuted"));
  EXPECT_EQ(complaint(sound + ", block: 2, shuffle: samples"), "none");
  EXPECT_THAT(complaint(sound + ", memory: 10"), HasSubstr("data.memory: expected at least 1 MiB, found 10"));
  EXPECT_THAT(complaint(sound + ", channels: 2"), HasSubstr("data.channels: expected 0, 1 or 3, found 2"));
  EXPECT_THAT(complaint(sound + ", tokens: run.yaml"),
              HasSubstr("data.index: there is data.tokens as well; give one of them"));
  EXPECT_THAT(
      complaint("index: s3://b/x.twi, inputs: npy, targets: cls"),
      HasSubstr("data.index: expected a file of this machine, found s3://b/x.twi; copy it here first"));
}

/// A store that is never asked.
class NoStore final : public world::Store {
 public:
  void read(const world::Extent&, Read done) override { done(Error{"asked"}); }

  void look(const std::string&, Looked done) override { done(Error{"asked"}); }
};

TEST_F(ShardsOfARun, without_a_field_that_is_wanted_are_refused_before_anything_is_read) {
  NoStore store;
  const auto open = [&](const std::string& data) {
    return open_run_data(read(data).value().data, {.store = &store});
  };
  EXPECT_TRUE(open("index: one.twi, inputs: jpg;npy, targets: cls"));
  EXPECT_THAT(
      read("index: one.twi, inputs: png, targets: cls").error().message,
      HasSubstr("run.yaml:1: data.inputs: data.index: no sample has the field png; there are npy, cls"));
  EXPECT_THAT(read("index: one.twi, inputs: npy, targets: mp4").error().message,
              HasSubstr("data.targets: data.index: no decoder for the field mp4"));
}

}  // namespace
}  // namespace tw::train
