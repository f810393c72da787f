// SPDX-License-Identifier: Apache-2.0
#include "train/session/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/learn/test_learner.h"

namespace tw::train {
namespace {

using ::testing::ElementsAre;

class StillClock final : public world::Clock {
 public:
  Instant now() override { return time; }

  std::int64_t unix_nanos() override { return 0; }

  void at(Instant, std::function<void()>) override {}

  Instant time{};
};

wire::Record record_of(Round round) {
  wire::Record record;
  record.round = round;
  return record;
}

swarm::WorkItem item_of(Round round, std::uint64_t samples) {
  return {round, 0, RangeSet(Range{7, 1}), RangeSet(Range{0, samples})};
}

class WorkerTest : public ::testing::Test {
 protected:
  StillClock clock;
  Waits waits;
  int pumped = 0;
  std::unique_ptr<CountingLearner> made = std::make_unique<CountingLearner>();
  CountingLearner& learner = *made;
  int backs = 0;
  Worker worker{std::move(made), {clock, waits, [this] { ++pumped; }, [this] { ++backs; }}};
};

TEST_F(WorkerTest, passes_on_which_sample_is_missing) {
  learner.missing = data::MissingSample{5, "a.tar, bytes 0-9: 404"};
  worker.open(3);
  std::optional<data::MissingSample> told;
  worker.work(item_of(3, 8), [&](const WorkDone& did) { told = did.missing; });
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(told, learner.missing);
  EXPECT_EQ(worker.done().missing, 1U);
  EXPECT_EQ(worker.done().samples, 0U);
}

TEST_F(WorkerTest, collects_sums_once_before_they_are_complete) {
  int collected = 0;
  const auto collect = [&] { return worker.collect(3, [&] { ++collected; }); };
  EXPECT_TRUE(collect()) << "nothing is missing";
  learner.uncollected = true;
  EXPECT_FALSE(collect());
  EXPECT_FALSE(collect());
  EXPECT_EQ(swarm::Wait::Kind::collecting, waits.compute().current().kind);
  EXPECT_THAT(learner.given, ElementsAre("collect"));
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(1, collected);
  EXPECT_TRUE(collect());
}

TEST_F(WorkerTest, counts_samples_losses_and_speed_of_its_round) {
  worker.open(3);
  int done = 0;
  worker.work(item_of(3, 8), [&](const WorkDone& did) { done += static_cast<int>(did.microbatches); });
  EXPECT_EQ(Worker::State::computing, worker.state());
  EXPECT_EQ(swarm::Wait::Kind::computing, waits.compute().current().kind);
  clock.time += std::chrono::seconds(9);
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(Worker::State::idle, worker.state());
  EXPECT_EQ(1, done);
  EXPECT_EQ(1, pumped);
  EXPECT_EQ(8U, worker.done().samples);
  EXPECT_EQ(4.0, worker.done().loss_sum);
  EXPECT_EQ(clock.time, worker.done().until);
  EXPECT_EQ(8.0, worker.samples_per_s());

  worker.work(item_of(3, 16), [](const WorkDone&) {});
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(24U, worker.done().samples);
  EXPECT_EQ(10.0, worker.samples_per_s()) << "a quarter of the difference";
}

TEST_F(WorkerTest, leaves_out_losses_that_the_program_does_not_know) {
  worker.open(3);
  for (const double loss : {0.5, std::nan(""), 2.0}) {
    learner.loss = loss;
    worker.work(item_of(3, 8), [](const WorkDone&) {});
    ASSERT_TRUE(learner.run_next());
  }
  EXPECT_EQ(24U, worker.done().samples);
  EXPECT_EQ(16U, worker.done().loss_samples);
  EXPECT_EQ(20.0, worker.done().loss_sum);
}

TEST_F(WorkerTest, does_not_count_what_is_of_an_earlier_round) {
  worker.open(3);
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  worker.open(4);
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(0U, worker.done().samples);
  EXPECT_EQ(8.0, worker.samples_per_s());
}

TEST_F(WorkerTest, is_in_the_state_of_the_first_job_of_its_queue) {
  worker.initialise([](const Digest&) {});
  worker.apply({record_of(1), {}}, [](const Digest&, Duration) {});
  worker.freeze(record_of(1), [](const Learner::Image&) {});
  worker.replay({.record = record_of(2), .missed = true}, [](const Result<Digest>&) {});
  worker.restore(std::make_shared<const sync::StateImage>(),
                 [](const Result<Digest>&) {});  // owners: the job
  EXPECT_THAT(learner.given,
              ElementsAre("initialise", "apply 1", "freeze 1 in order", "replay 2", "restore"));
  EXPECT_EQ(1U, worker.updates_under_way());
  std::vector<Worker::State> states;
  do {
    states.push_back(worker.state());
  } while (learner.run_next());
  EXPECT_THAT(states,
              ElementsAre(Worker::State::initialising, Worker::State::applying, Worker::State::freezing,
                          Worker::State::replaying, Worker::State::restoring, Worker::State::idle));
  EXPECT_EQ(5, pumped);
}

TEST_F(WorkerTest, passes_on_why_a_state_could_not_be_taken) {
  learner.trouble = "damaged";
  std::string why;
  const auto told = [&](const Result<Digest>& parameters) { why = parameters.error().message; };
  worker.restore(std::make_shared<const sync::StateImage>(), told);  // owners: the job
  EXPECT_TRUE(worker.is_taking_over());
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ("damaged", why);
  EXPECT_FALSE(worker.is_taking_over());
}

TEST_F(WorkerTest, freezes_for_a_joiner_beside_a_microbatch_but_not_beside_an_update) {
  const auto image = [](const Learner::Image&) {};
  worker.work(item_of(1, 8), [](const WorkDone&) {});
  worker.freeze_soon(record_of(0), image);
  EXPECT_EQ(swarm::Wait::Kind::freezing, waits.disk().current().kind);
  EXPECT_EQ(0U, worker.jobs(Worker::State::freezing));
  worker.freeze_soon(record_of(0), image);  // the disk is busy
  while (learner.run_next()) {
  }
  worker.apply({record_of(1), {}}, [](const Digest&, Duration) {});
  worker.freeze_soon(record_of(1), image);
  EXPECT_THAT(learner.given,
              ElementsAre("work 7", "freeze 0 beside", "freeze 0 in order", "apply 1", "freeze 1 in order"));
  while (learner.run_next()) {
  }
  EXPECT_EQ(swarm::Wait::Kind::nothing, waits.disk().current().kind);
}

TEST(Worker, that_is_gone_tells_nobody) {
  StillClock clock;
  Waits waits;
  auto learner = std::make_unique<CountingLearner>();
  const auto jobs = learner->jobs;
  bool told = false;
  {
    Worker worker(std::move(learner), {clock, waits, [&] { told = true; }});
    worker.work(item_of(1, 8), [&](const WorkDone&) { told = true; });
    worker.freeze_soon(record_of(0), [&](const Learner::Image&) { told = true; });
  }
  while (CountingLearner::run_next(*jobs)) {
  }
  EXPECT_FALSE(told);
}

TEST_F(WorkerTest, forgets_sums_when_it_computes_nothing) {
  worker.forget_sums(3);
  EXPECT_EQ(1, learner.forgotten);
  worker.work(item_of(1, 8), [](const WorkDone&) {});
  EXPECT_DEATH(worker.forget_sums(3), "is_computing");
}

using WorkerDeathTest = WorkerTest;

TEST_F(WorkerDeathTest, takes_one_microbatch_at_a_time_and_updates_of_their_kind) {
  worker.work(item_of(1, 8), [](const WorkDone&) {});
  EXPECT_DEATH(worker.work(item_of(1, 8), [](const WorkDone&) {}), "is_computing");
  EXPECT_DEATH(worker.apply({.record = {}, .missed = true}, {}), "missed");
  EXPECT_DEATH(worker.replay({}, {}), "missed");
  EXPECT_DEATH(worker.restore(nullptr, {}), "image");
}

TEST_F(WorkerTest, takes_back_what_its_thread_does_not_come_for) {
  using namespace std::chrono_literals;
  learner.gives_back = true;
  worker.open(1);
  worker.work(item_of(1, 8), [](const WorkDone&) {});
  EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + 10s)) << "nobody knows how long it takes";
  ASSERT_TRUE(learner.run_next());  // a second
  worker.work(item_of(1, 8), [](const WorkDone&) { FAIL() << "nothing of it was done"; });
  EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + 4s));
  EXPECT_FALSE(worker.is_elsewhere());
  EXPECT_TRUE(worker.take_back_when_late(clock.time + 4001ms).has_value());
  EXPECT_EQ(Worker::State::away, worker.state());
  EXPECT_TRUE(worker.is_elsewhere());
  EXPECT_FALSE(worker.stands_ready());
  EXPECT_EQ("the program's own thread, away for 0 s", text_of(waits.compute().current()));
  EXPECT_EQ(0, backs);
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(1, backs);
  EXPECT_FALSE(worker.is_elsewhere());
}

TEST_F(WorkerTest, lets_nobody_wait_for_the_first_step_of_a_joiner) {
  using namespace std::chrono_literals;
  learner.gives_back = true;
  worker.open(3);
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + 1s));
  EXPECT_TRUE(worker.take_back_when_late(clock.time + 1001ms).has_value());
}

// A machine that swaps: each step took longer than four usual ones, so that none ever counted.
TEST_F(WorkerTest, gives_steps_twice_the_time_after_it_took_one_back) {
  using namespace std::chrono_literals;
  learner.gives_back = true;
  worker.open(3);
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  ASSERT_TRUE(learner.run_next());  // a second
  for (const Duration late : {4s, 8s, 16s}) {
    worker.work(item_of(3, 8), [](const WorkDone&) {});
    EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + late));
    EXPECT_TRUE(worker.take_back_when_late(clock.time + late + 1ms).has_value());
    clock.time += 1min;
    ASSERT_TRUE(learner.run_next());  // it is back
  }
  for (const Duration late : {32s, 4s}) {
    worker.work(item_of(3, 8), [](const WorkDone&) {});
    EXPECT_EQ(wire::Presence::here, worker.presence(clock.time + late));
    EXPECT_EQ(wire::Presence::away, worker.presence(clock.time + late + 1ms));
    ASSERT_TRUE(learner.run_next());  // a second
  }
}

TEST_F(WorkerTest, does_not_take_an_order_that_was_given_back_for_a_step) {
  using namespace std::chrono_literals;
  learner.gives_back = true;
  learner.missing = data::MissingSample{5, "none of it is done"};
  worker.open(1);
  worker.work(item_of(1, 8), [](const WorkDone&) {});
  ASSERT_TRUE(learner.run_next());
  worker.work(item_of(1, 8), [](const WorkDone&) {});
  EXPECT_EQ(wire::Presence::here, worker.presence(clock.time + 10s)) << "as for the first step";
}

TEST_F(WorkerTest, takes_back_what_stands_behind_a_copy_that_nobody_makes) {
  using namespace std::chrono_literals;
  learner.gives_back = true;
  worker.open(3);
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  ASSERT_TRUE(learner.run_next());  // a second
  worker.freeze(record_of(2), [](const Learner::Image&) {});
  worker.work(item_of(3, 8), [](const WorkDone&) { FAIL() << "nothing of it was done"; });
  learner.gives_back = false;
  EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + 1h)) << "the thread makes the copy";
  learner.gives_back = true;
  EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + 4s));
  EXPECT_TRUE(worker.take_back_when_late(clock.time + 4001ms).has_value());
  EXPECT_EQ(Worker::State::freezing, worker.state());
  EXPECT_TRUE(worker.is_elsewhere());
  ASSERT_TRUE(learner.run_next());
  ASSERT_TRUE(learner.run_next());
  EXPECT_EQ(1, backs);
  EXPECT_FALSE(worker.is_elsewhere());
}

TEST_F(WorkerTest, takes_nothing_back_that_runs_already) {
  worker.open(3);
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  ASSERT_TRUE(learner.run_next());
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  EXPECT_EQ(std::nullopt, worker.take_back_when_late(clock.time + std::chrono::hours(1)));
  EXPECT_EQ(Worker::State::computing, worker.state());
}

TEST_F(WorkerTest, gives_back_at_once_what_its_owner_will_not_do) {
  learner.gives_back = true;
  worker.open(3);
  worker.work(item_of(3, 8), [](const WorkDone&) {});
  EXPECT_EQ(8U, worker.pause()->samples.count());
  EXPECT_TRUE(worker.is_elsewhere());
  EXPECT_TRUE(worker.stands_ready()) << "updates are applied as ever";
  EXPECT_EQ(std::nullopt, worker.pause());
  EXPECT_EQ(wire::Presence::away, worker.presence(clock.time));
  worker.resume();
  EXPECT_FALSE(worker.is_elsewhere());
  EXPECT_EQ(wire::Presence::here, worker.presence(clock.time));
}

TEST_F(WorkerTest, is_away_while_an_update_takes_longer_than_usual) {
  using namespace std::chrono_literals;
  const auto apply = [&](Round round) {
    worker.apply({record_of(round), {}}, [](const Digest&, Duration) {});
  };
  apply(1);
  EXPECT_EQ(wire::Presence::here, worker.presence(clock.time + 1s));
  EXPECT_EQ(wire::Presence::away, worker.presence(clock.time + 1001ms));
  ASSERT_TRUE(learner.run_next());  // a second
  EXPECT_EQ(wire::Presence::here, worker.presence(clock.time + 1h)) << "there is none";
  apply(2);
  EXPECT_EQ(wire::Presence::here, worker.presence(clock.time + 4s)) << "it is as slow as the others";
  EXPECT_EQ(wire::Presence::away, worker.presence(clock.time + 4001ms));
  apply(3);
  EXPECT_EQ(wire::Presence::full, worker.presence(clock.time)) << "two means wait";
}

TEST_F(WorkerTest, has_room_for_an_update_behind_one_that_is_late) {
  worker.open(4);
  swarm::WorkItem ahead = item_of(5, 8);
  ahead.moved_on = true;
  worker.work(ahead, [](const WorkDone&) {});
  EXPECT_EQ(Worker::State::moving_on, worker.state());
  EXPECT_FALSE(worker.stands_ready());
  worker.apply({record_of(4), {}}, [](const Digest&, Duration) {});
  EXPECT_EQ(1U, worker.updates_under_way());
  EXPECT_EQ(wire::Presence::here, worker.presence(clock.time)) << "the mean of one record waits";
}

}  // namespace
}  // namespace tw::train
