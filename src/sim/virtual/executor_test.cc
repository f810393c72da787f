// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/executor.h"

#include <gtest/gtest.h>

#include <string>

namespace tw::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Machine {
  Scheduler scheduler;
  Process process{scheduler};
  VirtualExecutor executor{process, Pace{.weight_per_s = 10, .least = {}, .jitter = 0}, 1};
  std::string log;

  void submit(const std::string& name, double weight) {
    executor.submit({[this, name] { log += name + "-runs "; },
                     [this, name](Duration took) {
                       log += name + "-took-" + std::to_string(took / milliseconds(1)) + " ";
                     },
                     weight});
  }
};

TEST(VirtualExecutor, takes_weight_by_speed_one_job_after_the_other) {
  Machine m;
  m.submit("a", 10);
  m.submit("b", 5);
  EXPECT_EQ(m.log, "") << "nothing runs inside submit";
  m.scheduler.run_for(milliseconds(999));
  EXPECT_EQ(m.log.find("took"), std::string::npos);
  m.scheduler.run_for(milliseconds(1));
  EXPECT_NE(m.log.find("a-took-1000"), std::string::npos) << m.log;
  m.scheduler.run_for(milliseconds(500));
  EXPECT_NE(m.log.find("b-took-500"), std::string::npos);
  EXPECT_LT(m.log.find("a-runs"), m.log.find("a-took"));
  EXPECT_LT(m.log.find("a-runs"), m.log.find("b-runs"));
  EXPECT_FALSE(m.executor.busy());
}

TEST(VirtualExecutor, halts_while_the_process_is_stopped) {
  Machine m;
  m.submit("a", 10);
  m.scheduler.run_for(milliseconds(400));
  m.process.stop();
  m.scheduler.run_for(seconds(5));
  m.process.resume();
  m.scheduler.run_for(milliseconds(599));
  EXPECT_TRUE(m.executor.busy());
  m.scheduler.run_for(milliseconds(1));
  EXPECT_NE(m.log.find("a-took-6000"), std::string::npos) << m.log;
}

TEST(VirtualExecutor, finishes_nothing_after_death) {
  Machine m;
  m.submit("a", 10);
  m.scheduler.run_for(milliseconds(400));
  m.process.kill();
  m.scheduler.run_for(seconds(5));
  EXPECT_EQ(m.log.find("took"), std::string::npos);
}

TEST(VirtualExecutor, works_sometimes_at_the_beginning_and_sometimes_at_the_end_of_a_job) {
  Machine m;
  int early = 0;
  for (int i = 0; i < 100; ++i) {
    m.log.clear();
    m.submit("x", 10);
    m.scheduler.run_for(milliseconds(500));
    early += m.log.empty() ? 0 : 1;
    m.scheduler.run_for(milliseconds(500));
  }
  EXPECT_GT(early, 20);
  EXPECT_LT(early, 80);
}

TEST(VirtualExecutor, gives_back_a_gradient_whose_thread_is_away_and_does_the_rest_later) {
  Machine m;
  m.executor.go_away(m.scheduler.now() + seconds(5));
  m.submit("update", 1);
  m.executor.submit({[&m] { m.log += "gradient "; }, [](Duration) {}, 1, true});
  m.submit("next", 1);
  m.scheduler.run_for(milliseconds(50));
  EXPECT_FALSE(m.executor.take_back()) << "the thread is inside the engine";
  EXPECT_EQ(m.executor.deserted_for(), seconds(0));
  m.scheduler.run_for(seconds(1));
  EXPECT_NE(m.log.find("update-took-100"), std::string::npos) << m.log;
  EXPECT_TRUE(m.executor.take_back());
  EXPECT_FALSE(m.executor.take_back());
  m.scheduler.run_for(seconds(3));
  EXPECT_EQ(m.log.find("next"), std::string::npos);
  m.scheduler.run_for(seconds(2));
  EXPECT_NE(m.log.find("next-took-100"), std::string::npos) << m.log;
  EXPECT_EQ(m.log.find("gradient"), std::string::npos);
}

TEST(VirtualExecutor, gives_back_a_gradient_that_stands_behind_other_jobs) {
  Machine m;
  m.executor.stand(m.scheduler.now() + seconds(5));
  m.submit("copy", 1);
  m.executor.submit({[&m] { m.log += "gradient "; }, [](Duration) {}, 1, true});
  m.scheduler.run_for(seconds(1));
  EXPECT_EQ(m.executor.deserted_for(), seconds(1));
  EXPECT_TRUE(m.executor.take_back());
  m.scheduler.run_for(seconds(5));
  EXPECT_EQ(m.executor.deserted_for(), seconds(0));
  EXPECT_EQ(m.log.find("gradient"), std::string::npos) << m.log;
  EXPECT_NE(m.log.find("copy-took-100"), std::string::npos) << m.log;
}

TEST(VirtualExecutor, comes_back_early) {
  Machine m;
  m.executor.stand(m.scheduler.now() + seconds(100));
  m.submit("a", 1);
  m.scheduler.run_for(seconds(1));
  EXPECT_EQ(m.log, "");
  m.executor.come_back();
  m.scheduler.run_for(seconds(1));
  EXPECT_NE(m.log.find("a-took-100"), std::string::npos) << m.log;
}

}  // namespace
}  // namespace tw::sim
