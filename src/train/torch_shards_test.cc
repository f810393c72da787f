// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/prng.h"
#include "data/shards/index_shards.h"
#include "data/shards/test_tar.h"
#include "train/torch_trainer.h"

namespace tw::train {
namespace {

using testing::HasSubstr;

constexpr int kDigits = 24, kPixels = 28 * 28;

std::string big_endian_word(std::uint32_t word) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 0xffU);
  return bytes;
}

/// The same digits as two IDX files and as a tar in a store.
class DigitsInShards : public testing::Test {
 protected:
  DigitsInShards() {
    std::filesystem::create_directories(folder_);
    std::string pictures =
        big_endian_word(0x803) + big_endian_word(kDigits) + big_endian_word(28) + big_endian_word(28);
    std::string labels = big_endian_word(0x801) + big_endian_word(kDigits);
    std::vector<std::pair<std::string, std::string>> files;
    const std::string head = "{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }";
    Prng prng(5);
    for (int i = 0; i < kDigits; ++i) {
      std::string picture;
      for (int p = 0; p < kPixels; ++p) picture += static_cast<char>(prng.below(256));
      pictures += picture;
      labels += static_cast<char>(i % 10);
      files.emplace_back(
          fmt::format("{}.npy", i),
          std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(head.size()) + '\0' + head + picture);
      files.emplace_back(fmt::format("{}.cls", i), std::to_string(i % 10));
    }
    std::ofstream(folder_ + "/pictures", std::ios::binary) << pictures;
    std::ofstream(folder_ + "/labels", std::ios::binary) << labels;
    store_.objects["s3://bucket/a.tar"] = data::test_tar(files);
    const auto index = data::index_shards({"s3://bucket/a.tar"}, store_, {});
    std::ofstream(folder_ + "/a.twi", std::ios::binary) << index.value().encode();
  }

  ~DigitsInShards() override { std::filesystem::remove_all(folder_); }

  RunOptions idx() const {
    RunOptions run{.microbatch = 8};
    run.data.train_inputs = folder_ + "/pictures";
    run.data.train_targets = folder_ + "/labels";
    return run;
  }

  RunOptions shards() const {
    RunOptions run{.microbatch = 8};
    run.data.kind = DataKind::shards;
    run.data.shards = {
        .index = folder_ + "/a.twi", .inputs = "npy", .targets = "cls", .shuffle = Shuffle::samples};
    return run;
  }

  std::vector<float> gradient(Trainer& trainer, SampleSpan samples) const {
    std::vector<float> parameters(trainer.parameter_count()), sum(parameters.size());
    trainer.initial_parameters(parameters);
    trainer.accumulate(parameters, samples, sum);
    return sum;
  }

  data::MemoryStore store_;
  std::string folder_ = testing::TempDir() + "tradewind_digits_" + std::to_string(::getpid());
};

TEST_F(DigitsInShards, have_the_gradients_of_the_same_digits_in_idx_files) {
  auto from_idx = make_torch_trainer(idx());
  auto from_shards = make_torch_trainer(shards(), 1, {.store = &store_});
  ASSERT_TRUE(from_idx) << from_idx.error().message;
  ASSERT_TRUE(from_shards) << from_shards.error().message;
  from_shards.value()->expect(RangeSet({16, 32}));
  for (const SampleSpan span : {SampleSpan{16, 8}, {24, 8}, {24, 16}})
    EXPECT_EQ(gradient(*from_shards.value(), span), gradient(*from_idx.value(), span)) << span.first;
}

TEST_F(DigitsInShards, that_are_broken_end_the_peer_or_are_left_out) {
  auto trainer = make_torch_trainer(shards(), 1, {.store = &store_});
  ASSERT_TRUE(trainer) << trainer.error().message;
  RunOptions patient = shards();
  patient.data.shards.skip_broken = 8;
  auto skipping = make_torch_trainer(patient, 1, {.store = &store_});
  store_.broken["s3://bucket/a.tar"] = "answered with 503";
  try {
    gradient(*trainer.value(), {8, 8});
    FAIL() << "a gradient of nothing";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("s3://bucket/a.tar, bytes "));
    EXPECT_THAT(e.what(), HasSubstr("answered with 503"));
  }
  EXPECT_THROW(gradient(*skipping.value(), {8, 8}), std::runtime_error) << "no fault of the samples";
  const auto missing = skipping.value()->load(RangeSet({8, 8}), false);
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->why, HasSubstr("answered with 503"));
  store_.broken.clear();
  std::string& tar = store_.objects["s3://bucket/a.tar"];
  for (std::size_t at = 0; (at = tar.find("NUMPY", at)) != std::string::npos;) tar.replace(at, 5, "nothn");
  EXPECT_THAT(gradient(*skipping.value(), {8, 8}), testing::Each(0.0F));
  const std::vector<data::MissingSample> skipped = skipping.value()->take_load_news().skipped;
  ASSERT_EQ(skipped.size(), 8U);
  EXPECT_EQ(skipped.front().sample, 8U) << "by its number in the run";
  EXPECT_THROW(gradient(*skipping.value(), {16, 1}), std::runtime_error);
}

}  // namespace
}  // namespace tw::train
