// SPDX-License-Identifier: Apache-2.0
#include "data/shards/shard_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "data/shards/index_shards.h"
#include "data/shards/test_tar.h"

namespace tw::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr auto kLong = std::chrono::hours(1);

/// Two samples; the first has a caption, the second a picture under another name.
class Reading : public testing::Test {
 protected:
  Reading() {
    store_.objects["a.tar"] = test_tar({{"x/0.txt", "1 2"},
                                        {"x/0.cls", "7"},
                                        {"x/0.cap", "a cat"},
                                        {"x/1.json", "[3, 4]"},
                                        {"x/1.cls", "eight"}});
    const ShardIndex index = index_shards({"a.tar"}, store_, {}).value();
    std::ofstream(options_.index, std::ios::binary) << index.encode();
    // The index names its shard relative to itself.
    store_.objects[read_shard_index(options_.index).value().shards()[0].object] = store_.objects["a.tar"];
  }

  ~Reading() override { std::filesystem::remove(options_.index); }

  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  std::unique_ptr<ShardReader> open() {
    auto reader = ShardReader::open(options_, store_);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    return std::move(reader).value();
  }

  static std::vector<ShardReader::Sample> read(ShardReader& reader, std::vector<std::uint64_t> samples) {
    auto read = reader.read(samples, kLong);
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return std::move(*read.value());
  }

  ReaderOptions options_{.index =
                             (std::filesystem::temp_directory_path() / "shard_reader_test.twi").string()};
  MemoryStore store_;
};

const std::string& bytes_in(const FieldValue& field) { return std::get<std::string>(field); }

TEST_F(Reading, gives_all_fields_of_a_sample_as_bytes) {
  const auto reader = open();
  EXPECT_THAT(reader->fields(), testing::ElementsAre("txt", "cls", "cap", "json"));
  const auto samples = read(*reader, {1, 0, 1});
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[1].key, "x/0");
  EXPECT_EQ(bytes_in(samples[1].fields[2]), "a cat");
  EXPECT_EQ(samples[1].fields[3].index(), 0U) << "no json";
  EXPECT_EQ(bytes_in(samples[0].fields[3]), "[3, 4]");
  EXPECT_EQ(samples[0].fields, samples[2].fields);
}

TEST_F(Reading, takes_the_names_of_the_index_as_they_are) {
  store_.objects["a.tar"] = test_tar({{"x/0.a;b", "1"}, {"x/1.cls", "7"}, {"x/1.a;b", "2"}});
  std::ofstream(options_.index, std::ios::binary) << index_shards({"a.tar"}, store_, {}).value().encode();
  store_.objects[read_shard_index(options_.index).value().shards()[0].object] = store_.objects["a.tar"];
  const auto reader = open();
  EXPECT_THAT(reader->fields(), testing::ElementsAre("a;b", "cls"));
  const auto samples = read(*reader, {0, 1});
  EXPECT_EQ(bytes_in(samples[0].fields[0]), "1");
  EXPECT_EQ(bytes_in(samples[1].fields[0]), "2");
}

TEST_F(Reading, decodes_what_it_can_and_leaves_the_rest_as_it_is) {
  options_.fields = {"cap;json", "txt;json", "cls"};
  options_.decodes = true;
  const auto reader = open();
  const auto samples = read(*reader, {0});
  EXPECT_EQ(bytes_in(samples[0].fields[0]), "a cat");
  EXPECT_EQ(std::get<Array>(samples[0].fields[1]), (Array{{2}, std::vector<std::int64_t>{1, 2}}));
  EXPECT_EQ(std::get<Array>(samples[0].fields[2]), (Array{{}, std::vector<std::int64_t>{7}}));
}

TEST_F(Reading, of_a_broken_field_names_object_and_bytes) {
  options_.fields = {"cls"};
  options_.decodes = true;
  const auto reader = open();
  const auto broken = reader->read(std::vector<std::uint64_t>{0, 1}, kLong);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("a.tar: x/1: cls, bytes 4608-4612: expected a whole number"));
  EXPECT_EQ(read(*reader, {0}).size(), 1U) << "the others are still there";
}

TEST_F(Reading, of_an_empty_field_says_so) {
  store_.objects["a.tar"] = test_tar({{"x/0.cls", ""}});
  std::ofstream(options_.index, std::ios::binary) << index_shards({"a.tar"}, store_, {}).value().encode();
  store_.objects[read_shard_index(options_.index).value().shards()[0].object] = store_.objects["a.tar"];
  options_.fields = {"cls"};
  options_.decodes = true;
  const auto empty = open()->read(std::vector<std::uint64_t>{0}, kLong);
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("x/0: cls, empty, at byte 512: expected a whole number"));
}

TEST_F(Reading, of_samples_without_a_field_that_is_asked_for_is_refused_before_anything_is_read) {
  options_.fields = {"cls", "cap"};
  EXPECT_THAT(
      ShardReader::open(options_, store_).error().message,
      AllOf(
          HasSubstr("twi: 1 of 2 samples has no field cap, the first of them "),
          HasSubstr("a.tar: x/1 (it has json, cls); leave such samples out of the shards, or name a field")));
  options_.fields = {"cls", "cap;json"};
  EXPECT_TRUE(ShardReader::open(options_, store_)) << "each has one of the two";
  options_.fields = {};
  EXPECT_TRUE(ShardReader::open(options_, store_)) << "each as it is";
}

TEST_F(Reading, waits_no_longer_than_it_may_and_goes_on_then) {
  const auto reader = open();
  store_.holds_back = true;
  const std::vector<std::uint64_t> first = {0};
  const auto nothing = reader->read(first, std::chrono::milliseconds(1));
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing.value());
  store_.holds_back = false;
  store_.answer_all();
  EXPECT_EQ(read(*reader, first)[0].key, "x/0");
}

TEST_F(Reading, of_an_index_elsewhere_or_of_shards_without_versions_is_refused) {
  ShardIndex index;
  ASSERT_TRUE(index.add({"http://host/a.tar", 2048}, {{"0.cls", 512, 1}}));
  std::ofstream(options_.index, std::ios::binary) << index.encode();
  EXPECT_THAT(
      ShardReader::open(options_, store_).error().message,
      HasSubstr("twi: http://host/a.tar has no version, so a read may mix two (the server sent neither "
                "ETag nor Last-Modified)"));
  EXPECT_EQ(read_shard_index("s3://b/x.twi").error().message,
            "s3://b/x.twi: an index is read from this machine alone; copy it here first");
}

TEST_F(Reading, of_a_field_that_no_sample_has_names_the_nearest) {
  options_.fields = {"cls", "clss"};
  EXPECT_THAT(
      ShardReader::open(options_, store_).error().message,
      HasSubstr("twi: no sample has the field clss; there are txt, cls, cap, json; did you mean \"cls\"?"));
}

}  // namespace
}  // namespace tw::data
