// SPDX-License-Identifier: Apache-2.0
#include "train/session/checkpoints.h"

#include <gtest/gtest.h>

#include <deque>

namespace tw::train {
namespace {

using namespace std::chrono_literals;

class StoppedClock final : public world::Clock {
 public:
  Instant now() override { return time; }

  Instant time{};

  std::int64_t unix_nanos() override { return 0; }

  void at(Instant, std::function<void()>) override {}
};

/// A disk that is empty, and full.
class FullDisk final : public world::Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) override { return Error{path + ": none"}; }

  Status write(const std::string& path, std::span<const std::span<const std::byte>>) override {
    return Error{path + ": no space left on device"};
  }

  Status rename(const std::string&, const std::string&) override { return Unit{}; }

  Status remove(const std::string&) override { return Unit{}; }

  Result<std::vector<std::string>> list(const std::string&) override { return std::vector<std::string>{}; }

  Status make_folder(const std::string&) override { return Unit{}; }
};

class Later final : public world::Executor {
 public:
  void submit(world::Task job) override { jobs.push_back(std::move(job)); }

  void run_all() {
    for (; !jobs.empty(); jobs.pop_front()) {
      jobs.front().run();
      jobs.front().done(2s);
    }
  }

  std::deque<world::Task> jobs;
};

class CheckpointsTest : public ::testing::Test {
 protected:
  Checkpoints kept_every(Round rounds, const std::string& folder = "ckpt") {
    return {{.folder = folder, .every = rounds}, {"1", {}}, {clock, files, disk, disk, waits, [this] {
                                                               ++pumped;
                                                             }}};
  }

  static wire::Record record_of(Round round, bool last = false) {
    wire::Record record;
    record.round = round;
    record.last = last;
    return record;
  }

  StoppedClock clock;
  FullDisk files;
  Later disk;
  Waits waits;
  int pumped = 0;
};

TEST_F(CheckpointsTest, are_due_after_some_rounds_and_after_the_last_one) {
  const Checkpoints some = kept_every(10);
  EXPECT_FALSE(some.is_due(record_of(9)));
  EXPECT_TRUE(some.is_due(record_of(10)));
  EXPECT_TRUE(some.is_due(record_of(11, true)));
  EXPECT_TRUE(kept_every(0).is_due(record_of(11, true)));
  EXPECT_FALSE(kept_every(0).is_due(record_of(11)));
  EXPECT_FALSE(kept_every(10, "").is_due(record_of(10, true)));
}

TEST_F(CheckpointsTest, say_what_became_of_a_save_and_how_long_it_took) {
  Checkpoints checkpoints = kept_every(1);
  sync::StateImage image;
  image.record = record_of(7);
  image.chunks = {Blob(std::vector<std::byte>(16))};
  image.digests = {Digest{1, 2}};
  std::string why;
  checkpoints.save(std::make_shared<const sync::StateImage>(image), 0,  // owners: the job
                   [&](const Status& saved, Duration took) {
                     why = saved.ok() ? "saved" : saved.error().message;
                     EXPECT_EQ(Duration(2s), took);
                   });
  EXPECT_EQ(swarm::Wait::Kind::saving, waits.disk().current().kind);
  EXPECT_EQ(7U, waits.disk().current().round);
  disk.run_all();
  EXPECT_NE(std::string::npos, why.find("no space left")) << why;
  EXPECT_EQ(swarm::Wait::Kind::nothing, waits.disk().current().kind);
  EXPECT_EQ(1, pumped);
}

TEST_F(CheckpointsTest, that_failed_do_not_count_and_are_due_again_after_a_while) {
  Checkpoints checkpoints = kept_every(10);
  sync::StateImage image;
  image.record = record_of(10);
  image.chunks = {Blob(std::vector<std::byte>(16))};
  image.digests = {Digest{1, 2}};
  checkpoints.save(std::make_shared<const sync::StateImage>(image), 0,  // owners: the job
                   [](const Status&, Duration) {});
  disk.run_all();
  EXPECT_TRUE(checkpoints.lacks(record_of(10))) << "the last one to leave has to try once more";
  EXPECT_FALSE(checkpoints.is_due(record_of(11)));
  clock.time += Checkpoints::kRetry;
  EXPECT_TRUE(checkpoints.is_due(record_of(11)));
}

TEST_F(CheckpointsTest, wait_for_the_one_that_is_being_saved_except_for_the_last_one) {
  Checkpoints checkpoints = kept_every(10);
  sync::StateImage image;
  image.record = record_of(10);
  image.chunks = {Blob(std::vector<std::byte>(16))};
  image.digests = {Digest{1, 2}};
  EXPECT_TRUE(checkpoints.is_time_for(record_of(10)));
  checkpoints.save(std::make_shared<const sync::StateImage>(image), 0,  // owners: the job
                   [](const Status&, Duration) {});
  EXPECT_FALSE(checkpoints.is_time_for(record_of(11)));
  EXPECT_FALSE(checkpoints.is_time_for(record_of(20)));
  EXPECT_FALSE(checkpoints.is_time_for(record_of(30)));
  EXPECT_TRUE(checkpoints.is_time_for(record_of(31, true)));
  disk.run_all();
  EXPECT_TRUE(checkpoints.is_time_for(record_of(31))) << "that of round 30 is owed";
  image.record = record_of(31);
  checkpoints.save(std::make_shared<const sync::StateImage>(image), 0,  // owners: the job
                   [](const Status&, Duration) {});
  disk.run_all();
  EXPECT_FALSE(checkpoints.is_time_for(record_of(32)));
}

TEST_F(CheckpointsTest, say_that_there_is_none) {
  Checkpoints checkpoints = kept_every(1);
  bool none = false;
  checkpoints.load({}, [&](Checkpoints::Loaded& loaded) { none = loaded.ok() && !loaded.value(); });
  EXPECT_EQ(swarm::Wait::Kind::loading, waits.disk().current().kind);
  disk.run_all();
  EXPECT_TRUE(none);
}

TEST_F(CheckpointsTest, that_are_gone_tell_nobody) {
  bool told = false;
  {
    Checkpoints checkpoints = kept_every(1);
    checkpoints.load({}, [&](Checkpoints::Loaded&) { told = true; });
  }
  disk.run_all();
  EXPECT_FALSE(told);
  EXPECT_EQ(0, pumped);
}

TEST_F(CheckpointsTest, are_loaded_only_where_they_are_kept) {
  Checkpoints none = kept_every(1, "");
  EXPECT_FALSE(none.are_kept());
  EXPECT_DEATH(none.load({}, {}), "are_kept");
}

}  // namespace
}  // namespace tw::train
