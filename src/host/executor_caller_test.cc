// SPDX-License-Identifier: Apache-2.0
#include "host/executor_caller.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using News = CallerExecutor::News;

class CallerExecutorTest : public ::testing::Test {
 protected:
  void submit(const std::string& name, bool gradient = false) {
    executor.submit({[this, name] { log.push_back(name); },
                     [this, name](Duration took) {
                       done.push_back({name, took});
                     },
                     1, gradient});
  }

  bool loop_until_done(std::size_t count) {
    return loop.run_until([&] { return done.size() >= count; }, 20s);
  }

  struct Done {
    std::string name;
    Duration took;
  };

  Loop loop;
  std::vector<std::string> failures;
  CallerExecutor executor{loop, [this](const std::string& what) { failures.push_back(what); }};
  std::vector<std::string> log;
  std::vector<Done> done;
  Duration inside = 1s;
};

using Jobs = std::vector<std::string>;

TEST_F(CallerExecutorTest, performs_jobs_on_the_thread_that_comes_until_a_gradient_is_due) {
  submit("update");
  submit("gradient", true);
  submit("next");
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(News::gradient, executor.work_until_gradient(0s));
  EXPECT_EQ(News::gradient, executor.work_until_gradient(0s)) << "again the same one";
  EXPECT_EQ((Jobs{"update"}), log);
  EXPECT_TRUE(executor.gradient_ready());
  EXPECT_FALSE(executor.gradient_ready()) << "none was handed out since";
  EXPECT_EQ(News::nothing, executor.work_until_gradient(0s));
  EXPECT_EQ((Jobs{"update", "gradient", "next"}), log);
  EXPECT_TRUE(loop_until_done(3));
}

TEST_F(CallerExecutorTest, counts_the_time_of_a_gradient_from_when_it_was_handed_out) {
  submit("gradient", true);
  ASSERT_EQ(News::gradient, executor.work_until_gradient(0s));
  const auto handed_out = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < handed_out + 2ms) {
  }
  ASSERT_TRUE(executor.gradient_ready());
  ASSERT_TRUE(loop_until_done(1));
  EXPECT_GE(done[0].took, 2ms);
}

TEST_F(CallerExecutorTest, takes_back_a_gradient_that_is_not_ready) {
  submit("first", true);
  submit("update");
  submit("second", true);
  EXPECT_TRUE(executor.take_back()) << "nobody came for it";
  ASSERT_EQ(News::gradient, executor.work_until_gradient(0s));
  EXPECT_TRUE(executor.take_back());
  EXPECT_FALSE(executor.gradient_ready()) << "it is not wanted any more";
  EXPECT_EQ((Jobs{"update"}), log);
  submit("third", true);
  EXPECT_FALSE(executor.gradient_ready()) << "it was not handed out";
  ASSERT_EQ(News::gradient, executor.work_until_gradient(0s));
  EXPECT_TRUE(executor.gradient_ready());
  EXPECT_EQ((Jobs{"update", "third"}), log);
}

TEST_F(CallerExecutorTest, takes_back_a_gradient_that_stands_behind_other_jobs) {
  submit("copy");
  submit("gradient", true);
  EXPECT_TRUE(executor.take_back());
  EXPECT_FALSE(executor.take_back());
  EXPECT_EQ(News::nothing, executor.work_until_gradient(0s));
  EXPECT_EQ((Jobs{"copy"}), log);
}

TEST_F(CallerExecutorTest, knows_how_long_jobs_have_waited_for_a_thread_that_is_elsewhere) {
  EXPECT_EQ(0s, executor.deserted_for()) << "there is no job";
  submit("update");
  const auto first = executor.deserted_for();
  EXPECT_GT(first, 0s);
  EXPECT_GT(executor.deserted_for(), first);
  executor.submit({[this] { inside = executor.deserted_for(); }, [](Duration) {}, 1});
  submit("gradient", true);
  ASSERT_EQ(News::gradient, executor.work_until_gradient(0s));
  EXPECT_EQ(0s, inside) << "it is at work, though a job waits behind";
  EXPECT_GT(executor.deserted_for(), 0s) << "it computes the gradient, or does something else";
  ASSERT_TRUE(executor.gradient_ready());
  EXPECT_EQ(0s, executor.deserted_for()) << "there is no job";
}

TEST_F(CallerExecutorTest, ends_the_wait_when_a_job_comes_or_it_is_stopped) {
  auto waiting = std::async(std::launch::async, [&] { return executor.work_until_gradient(20s); });
  submit("gradient", true);
  EXPECT_EQ(News::gradient, waiting.get());
  ASSERT_TRUE(executor.gradient_ready());
  waiting = std::async(std::launch::async, [&] { return executor.work_until_gradient(20s); });
  executor.stop();
  EXPECT_EQ(News::stopped, waiting.get());
  submit("never");
  EXPECT_EQ(News::stopped, executor.work_until_gradient(20s));
  EXPECT_EQ((Jobs{"gradient"}), log);
}

TEST_F(CallerExecutorTest, tells_what_a_job_threw_instead_of_its_done_and_stops) {
  executor.submit({[] { throw std::runtime_error("out of cheese"); }, [](Duration) { FAIL(); }});
  submit("next");
  EXPECT_EQ(News::stopped, executor.work_until_gradient(20s));
  EXPECT_EQ("out of cheese", executor.failure());
  EXPECT_TRUE(loop.run_until([&] { return !failures.empty(); }, 20s));
  EXPECT_EQ((Jobs{"out of cheese"}), failures);
  EXPECT_TRUE(log.empty()) << "what comes next would work on half an update";
}

}  // namespace
}  // namespace tw::host
