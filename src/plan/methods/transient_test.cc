// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/transient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/methods/parameter_server.h"

namespace tw::plan {
namespace {

TEST(Transient, half_of_two_workers_do_the_rest_in_twice_the_time) {
  EXPECT_EQ(duration_s({.workers = 2, .undisturbed_s = 100, .lost_at_s = {40}}), 160);
}

// Two do 3 a second, one does 2: 120 of 300 remain after 60 s.
TEST(Transient, where_workers_wait_for_a_server_losing_one_costs_less_than_its_share) {
  const TransientRun run{.workers = 2, .undisturbed_s = 100, .lost_at_s = {60}, .speeds = {2, 3}};
  EXPECT_EQ(duration_s(run), 120);
}

TEST(Transient, a_worker_that_goes_before_the_training_has_done_nothing) {
  EXPECT_EQ(duration_s({.workers = 2, .undisturbed_s = 100, .lost_at_s = {-5}}), 200);
}

TEST(Transient, a_loss_after_the_end_changes_nothing) {
  const TransientRun run{.workers = 4, .undisturbed_s = 100, .lost_at_s = {100, 300}};
  EXPECT_EQ(duration_s(run), 100);
  EXPECT_EQ(cost_usd(run, {.worker_usd_per_s = 1, .server_usd_per_s = 2}), 600);
}

TEST(Transient, without_workers_training_never_ends) {
  EXPECT_TRUE(std::isinf(duration_s({.workers = 2, .undisturbed_s = 100, .lost_at_s = {40, 10}})));
}

TEST(Transient, a_lost_worker_is_paid_until_it_goes) {
  const TransientRun run{.workers = 2, .undisturbed_s = 100, .lost_at_s = {40}};
  EXPECT_EQ(cost_usd(run, {.worker_usd_per_s = 1, .server_usd_per_s = 0}), 200);
}

TEST(Transient, a_worker_that_goes_before_the_training_is_not_paid) {
  const TransientRun run{.workers = 2, .undisturbed_s = 100, .lost_at_s = {-50}};
  EXPECT_EQ(cost_usd(run, {.worker_usd_per_s = 1, .server_usd_per_s = 0}), 200);
}

// A worker that arrives finds the other one being served half of the time, and then waits for half a service.
TEST(ParameterServer, two_workers_wait_for_each_other) {
  EXPECT_NEAR(steps_per_s({{2, 1}}, 1), 2 / (1 + 1.25), 1e-12);
}

TEST(ParameterServer, few_workers_are_not_held_up_and_many_are_bound_by_the_server) {
  EXPECT_NEAR(steps_per_s({{1, 0.99}}, 0.01), 1, 1e-12);
  EXPECT_NEAR(steps_per_s({{200, 0.99}}, 0.01), 100, 1);
}

TEST(ParameterServer, classes_of_equal_workers_are_one_class) {
  EXPECT_NEAR(steps_per_s({{3, 0.5}, {2, 0.5}}, 0.1), steps_per_s({{5, 0.5}}, 0.1), 1e-9);
}

TEST(ParameterServer, a_second_server_helps_where_one_is_the_limit) {
  EXPECT_GT(steps_per_s({{20, 0.5}}, 0.1, 2), 1.8 * steps_per_s({{20, 0.5}}, 0.1));
  EXPECT_LT(steps_per_s({{2, 5}}, 0.1, 2), 1.05 * steps_per_s({{2, 5}}, 0.1));
}

}  // namespace
}  // namespace tw::plan
