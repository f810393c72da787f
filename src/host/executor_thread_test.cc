// SPDX-License-Identifier: Apache-2.0
#include "host/executor_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/task_failure.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

TEST(ThreadExecutor, runs_jobs_in_order_on_its_thread_and_done_on_the_loop) {
  Loop loop;
  ThreadExecutor executor(loop, [](const std::string& what) { ADD_FAILURE() << what; });
  const auto here = std::this_thread::get_id();
  std::vector<int> ran;
  std::vector<int> done;
  for (int i = 0; i < 100; ++i) {
    executor.submit({[&ran, i, here] {
                       EXPECT_NE(std::this_thread::get_id(), here);
                       ran.push_back(i);
                     },
                     [&done, i, here](Duration took) {
                       EXPECT_EQ(std::this_thread::get_id(), here);
                       EXPECT_GE(took, Duration::zero());
                       done.push_back(i);
                     }});
  }
  ASSERT_TRUE(loop.run_until([&] { return done.size() == 100; }, 20s));
  EXPECT_EQ(ran, done);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(ThreadExecutor, tells_what_a_job_threw_instead_of_its_done_and_goes_on) {
  Loop loop;
  std::vector<std::string> failures;
  ThreadExecutor executor(loop, [&](const std::string& what) { failures.push_back(what); });
  int done = 0;
  executor.submit({[] { throw std::runtime_error("shapes differ: 3 and 4"); }, [](Duration) { FAIL(); }});
  executor.submit({[] { throw 7; }, [](Duration) { FAIL(); }});
  executor.submit({[] {}, [&](Duration) { ++done; }});
  ASSERT_TRUE(loop.run_until([&] { return done == 1; }, 20s));
  EXPECT_EQ(failures, (std::vector<std::string>{"shapes differ: 3 and 4", "exception of an unknown type"}));
}

// A look for peers that threw was under way for ever.
TEST(ResultOf, work_that_throws_is_an_error) {
  EXPECT_EQ(result_of<int>([]() -> Result<int> { throw std::runtime_error("bad"); }).error().message, "bad");
  EXPECT_EQ(result_of<int>([]() -> Result<int> { return 7; }).value(), 7);
  EXPECT_EQ(result_of<int>([]() -> Result<int> { return Error{"gone"}; }).error().message, "gone");
}

TEST(ThreadExecutor, finishes_the_job_that_runs_and_drops_the_others_at_its_end) {
  Loop loop;
  std::promise<void> started;
  std::promise<void> go_on;
  bool finished = false;
  // owners: the job that is dropped
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> until_dropped = held;
  auto executor = std::make_unique<ThreadExecutor>(loop, [](const std::string&) { FAIL(); });
  executor->submit({[&] {
                      started.set_value();
                      go_on.get_future().wait();
                      finished = true;
                    },
                    [](Duration) { FAIL() << "done after the end"; }});
  executor->submit({[held = std::move(held)] { FAIL() << "was to be dropped"; }, {}});
  started.get_future().wait();
  std::thread later([&] {
    while (!until_dropped.expired()) std::this_thread::yield();
    go_on.set_value();
  });
  executor.reset();
  later.join();
  EXPECT_TRUE(finished);
  loop.run_until([] { return false; }, 10ms);
}

}  // namespace
}  // namespace tw::host
