// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>

#include "e2e/program.h"

namespace tw {
namespace {

using testing::HasSubstr;

/// The data of these tests as a folder of samples, then in tar files that `tar` writes.
class Shards : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::filesystem::create_directories(path("samples"));
    const std::string pictures = content_of(path("train-x")), labels = content_of(path("train-y"));
    for (std::size_t i = 0; i < kSamples; ++i) {
      std::ofstream(sample(i) + ".npy", std::ios::binary)
          << npy(pictures.substr(kHeadX + i * kPixels, kPixels));
      std::ofstream(sample(i) + ".cls") << static_cast<int>(labels[kHeadY + i]);
    }
    pack();
  }

  void pack() {
    for (const char shard : {'0', '1', '2', '3'}) {
      const std::string pack =
          "cd " + path("samples") + " && tar --sort=name -cf ../train-" + shard + ".tar ./0" + shard + "*";
      ASSERT_EQ(std::system(pack.c_str()), 0);
    }
    Program index = tw({"data", "index", path("train-{0..3}.tar"), "-o", path("train.twi")}, "index");
    ASSERT_EQ(index.wait(), 0) << index.output();
  }

  /// Four shards of 128 samples each.
  std::string sample(std::size_t i) const {
    return path("samples/0") + std::to_string(i / 128) + std::to_string(1000 + i % 128);
  }

  /// No decoder reads the picture of this sample from now on.
  void break_sample(std::size_t i) {
    std::ofstream(sample(i) + ".npy") << "nothing that is a picture";
    pack();
  }

  static std::string npy(const std::string& picture) {
    std::string head = "{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }";
    head.resize(117, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + "\n" + picture;
  }

  std::string write_shard_run(std::uint64_t rounds, const std::string& more = "") const {
    std::ofstream(path("shards.yaml"))
        << "model: mnist-cnn\ndata:\n  index: train.twi\n  inputs: npy\n  targets: cls\n"
        << more << "training:\n  target_batch_size: 256\n  microbatch: 32\n  codec: fp32\n"
        << "  exact_batches: true\n  rounds: " << rounds
        << "\noptimizer:\n  kind: adamw\nschedule:\n  learning_rate: 0.001\n";
    return path("shards.yaml");
  }

  /// The digest of the parameters after the last round.
  std::string digest_of(std::uint64_t id) const {
    const auto applied = events_of(id, world::Phase::apply);
    return applied.empty() ? "" : applied.back().digest;
  }

  static constexpr std::size_t kSamples = 512, kPixels = 784, kHeadX = 16, kHeadY = 8;
};

TEST_F(Shards, train_the_same_parameters_as_the_files_that_they_were_made_of) {
  Program files = peer(write_run({.rounds = 3, .exact_batches = true}), 1, {"--listen", "127.0.0.1:0"});
  ASSERT_EQ(files.wait(), 0) << files.output();
  Program shards = peer(write_shard_run(3, "  shuffle: samples\n"), 2, {"--listen", "127.0.0.1:0"});
  ASSERT_EQ(shards.wait(), 0) << shards.output();
  EXPECT_NE(digest_of(1), "");
  EXPECT_EQ(digest_of(1), digest_of(2));
}

TEST_F(Shards, give_each_sample_once_when_a_peer_is_killed) {
  const std::string run = write_shard_run(20);
  Program first = peer(run, 1, {"--listen", "127.0.0.1:0", "--wait-for", "3"});
  Program second = peer(run, 2, {"--join", address_of(1)});
  const Program third = peer(run, 3, {"--join", address_of(1)});
  ASSERT_TRUE(wait_for_round(3, 5)) << third.output();
  third.send(SIGKILL);
  ASSERT_EQ(first.wait(), 0) << first.output();
  ASSERT_EQ(second.wait(), 0) << second.output();
  const monitor::Summary told = summary();
  EXPECT_EQ(told.rounds, 20U);
  EXPECT_EQ(told.samples, 20U * 256);
  EXPECT_EQ(told.identical, true);
}

TEST_F(Shards, are_trained_without_a_broken_sample_where_that_is_allowed) {
  break_sample(130);
  const std::string run = write_shard_run(4, "  skip_broken: 1\n");
  Program first = peer(run, 1, {"--listen", "127.0.0.1:0", "--wait-for", "2"});
  Program second = peer(run, 2, {"--join", address_of(1)});
  ASSERT_EQ(first.wait(), 0) << first.output();
  ASSERT_EQ(second.wait(), 0) << second.output();
  const monitor::Summary told = summary();
  EXPECT_EQ(told.samples, 4U * 256);
  EXPECT_EQ(told.samples_skipped, 2U) << "once in each epoch";
  EXPECT_THAT(first.output() + second.output(), HasSubstr("goes on without a sample: "));
  EXPECT_THAT(first.output() + second.output(), HasSubstr("train-1.tar: ./011002"));
}

TEST_F(Shards, that_changed_since_they_were_indexed_are_named) {
  std::ofstream(path("train-2.tar"), std::ios::app) << "more";
  Program peer_of_others = peer(write_shard_run(3), 1, {"--listen", "127.0.0.1:0"});
  EXPECT_EQ(peer_of_others.wait(), 1);
  EXPECT_THAT(peer_of_others.output(), HasSubstr("train-2.tar: it changed since its index was made"));
}

}  // namespace
}  // namespace tw
