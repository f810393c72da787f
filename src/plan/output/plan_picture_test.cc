// SPDX-License-Identifier: Apache-2.0
#include "plan/output/plan_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/prng.h"
#include "market/catalog.h"

namespace tw::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr Box kAll{0, 0, PlanPicture::kWidth, PlanPicture::kHeight};

bool lies_within(const Box& inner, const Box& outer) {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

void expect_readable(const PlanPicture& picture) {
  for (std::size_t a = 0; a < picture.labels.size(); ++a) {
    EXPECT_TRUE(lies_within(picture.labels[a].box, kAll)) << picture.labels[a].text;
    for (std::size_t b = a + 1; b < picture.labels.size(); ++b)
      EXPECT_FALSE(overlap(picture.labels[a].box, picture.labels[b].box))
          << picture.labels[a].text << " lies on " << picture.labels[b].text;
  }
  for (const PlanPicture::Dot& dot : picture.dots) {
    EXPECT_TRUE(lies_within({dot.x, dot.y, 0, 0}, PlanPicture::kFrame)) << dot.hint;
    EXPECT_TRUE(lies_within(dot.range, kAll)) << dot.hint;
  }
  for (const Scale* scale : {&picture.hours, &picture.usd})
    for (const double tick : scale->ticks)
      EXPECT_NEAR(tick / scale->step, std::round(tick / scale->step), 1e-9);
}

std::vector<std::string> texts_in(const PlanPicture& picture) {
  std::vector<std::string> texts;
  for (const PlanPicture::Label& label : picture.labels) texts.push_back(label.text);
  return texts;
}

/// ConvNextLarge with the built-in prices.
Recommendation planned(const std::function<void(Job&)>& change) {
  Job job;
  job.model = "CONV";
  job.target_batch_size = 32768;
  job.samples = 5e6;
  job.gpus = {"T4", "A10"};
  job.peers_max = 8;
  change(job);
  Workload workload;
  workload.model = Models::built_in().find("CONV").value();
  workload.target_batch_size = job.target_batch_size;
  const Knowledge knowledge;
  const auto market = market_space({.job = job,
                                    .workload = workload,
                                    .offers = market::built_in_offers(),
                                    .knowledge = knowledge,
                                    .tariffs = market::Tariffs::built_in(),
                                    .seen = {}});
  return recommend(job, market.value(), 1'700'000'000).value();
}

TEST(PlanPicture, of_every_goal_has_round_ticks_and_labels_apart_from_each_other) {
  for (const Goal goal : {Goal::cheapest, Goal::fastest, Goal::pareto}) {
    for (const double deadline_h : {0.0, 6.0, 10.0}) {
      Job job;
      job.goal = goal;
      job.deadline_h = deadline_h;
      const Recommendation plan = planned([&](Job& planned) {
        planned.goal = goal;
        planned.deadline_h = deadline_h;
      });
      const PlanPicture picture = picture_of(job, plan);
      EXPECT_EQ(picture.logarithmic, goal == Goal::pareto);
      EXPECT_TRUE(deadline_h == 0 || picture.limits.size() + picture.outside.size() > 0);
      expect_readable(picture);
      EXPECT_THAT(texts_in(picture), Contains(HasSubstr("chosen")));
      const std::string svg = to_svg(picture);
      EXPECT_THAT(svg, HasSubstr(">hours</text>"));
      EXPECT_THAT(svg, Not(HasSubstr("e+")));
    }
  }
}

Option option(const std::string& name, double hours, double usd) {
  Option one;
  one.name = name;
  one.peers = parse_peers("2xT4@gcp:us").value();
  one.hours = hours;
  one.usd = usd;
  one.hours_spread = {0.9 * hours, hours, 1.2 * hours};
  one.usd_spread = {0.9 * usd, usd, 1.3 * usd};
  return one;
}

TEST(PlanPicture, options_that_lie_on_each_other_have_labels_that_do_not) {
  Recommendation plan;
  plan.chosen = option("chosen", 10, 100);
  for (int i = 0; i < 12; ++i) plan.others.push_back(option("runner-up", 10 + 0.01 * i, 100 + 0.02 * i));
  const PlanPicture picture = picture_of({}, plan);
  expect_readable(picture);
  EXPECT_GE(picture.labels.size(), 8U);
}

TEST(PlanPicture, a_label_lies_on_no_point_where_there_is_room_beside_it) {
  Recommendation plan;
  plan.chosen = option("chosen", 20, 100);
  for (int i = 1; i <= 10; ++i) plan.front.push_back(option("front", 20 + 0.5 * i, 100 - 0.1 * i));
  const PlanPicture picture = picture_of({}, plan);
  ASSERT_EQ(picture.labels.size(), 1U);
  for (const PlanPicture::Dot& dot : picture.dots)
    EXPECT_FALSE(overlap(picture.labels.front().box, {dot.x - 4, dot.y - 4, 8, 8})) << dot.x;
}

TEST(PlanPicture, of_any_options_is_readable) {
  Prng random(11);
  for (int i = 0; i < 300; ++i) {
    Recommendation plan;
    const double hours = std::pow(10.0, random.uniform() * 5 - 2);
    const double usd = std::pow(10.0, random.uniform() * 7 - 2);
    plan.chosen = option("chosen", hours, usd);
    for (int k = 0; k < i % 9; ++k)
      plan.others.push_back(
          option("on-demand only", hours * 3 * random.uniform(), usd * 3 * random.uniform()));
    expect_readable(picture_of({}, plan));
  }
}

TEST(PlanPicture, an_option_that_would_press_the_others_into_a_corner_is_told_below) {
  Recommendation plan;
  plan.chosen = option("chosen", 10, 100);
  plan.others = {option("one machine", 900, 90), option("runner-up", 11, 105)};
  const PlanPicture picture = picture_of({}, plan);
  EXPECT_THAT(texts_in(picture), Not(Contains("one machine")));
  EXPECT_LT(picture.hours.high, 30);
  EXPECT_THAT(to_svg(picture), HasSubstr("Outside of the picture: one machine (900 h, $90.00)."));
}

TEST(PlanPicture, a_label_far_from_its_dot_has_a_line_to_it) {
  Recommendation plan;
  plan.chosen = option("chosen", 10, 100);
  constexpr const char* kLine = "stroke=\"#9aa5b1\"";
  EXPECT_THAT(to_svg(picture_of({}, plan)), Not(HasSubstr(kLine)));
  for (int i = 0; i < 9; ++i) plan.others.push_back(option("on-demand only", 10, 100));
  EXPECT_THAT(to_svg(picture_of({}, plan)), HasSubstr(kLine));
}

TEST(PlanPicture, has_the_deadline_and_the_budget_and_names_a_limit_that_is_far_away) {
  Recommendation plan;
  plan.chosen = option("chosen", 10, 100);
  Job job;
  job.deadline_h = 15;
  job.budget_usd = 5000;
  const std::string svg = to_svg(picture_of(job, plan));
  EXPECT_THAT(svg, HasSubstr("deadline 15 h"));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  EXPECT_THAT(svg, HasSubstr("Outside of the picture: budget $5,000."));
}

TEST(PlanPicture, of_a_front_has_logarithmic_axes_on_which_equal_factors_are_equally_far_apart) {
  Recommendation plan;
  plan.chosen = option("chosen", 20, 100);
  plan.front = {option("a", 10, 400), option("b", 40, 25)};
  Job job;
  job.goal = Goal::pareto;
  const PlanPicture picture = picture_of(job, plan);
  ASSERT_EQ(picture.dots.size(), 4U);
  const auto& [a, chosen, b] = std::tie(picture.dots[0], picture.dots[3], picture.dots[2]);
  EXPECT_NEAR(chosen.x - a.x, b.x - chosen.x, 1e-9);
  EXPECT_NEAR(chosen.y - a.y, b.y - chosen.y, 1e-9);
  EXPECT_THAT(to_svg(picture), HasSubstr("logarithmic"));
}

TEST(PlanPicture, of_a_front_goes_through_the_chosen_plan_and_leaves_out_what_that_beats) {
  Recommendation plan;
  plan.chosen = option("chosen", 23, 121);
  plan.front = {option("a", 22, 127), option("beaten", 24, 125), option("b", 39, 114)};
  const auto front = [&] {
    std::vector<std::string> hints;
    for (const PlanPicture::Dot& dot : picture_of({}, plan).dots)
      if (dot.role == PlanPicture::Role::front) hints.push_back(dot.hint.substr(0, dot.hint.find(':')));
    return hints;
  };
  EXPECT_THAT(front(), testing::ElementsAre("a", "chosen", "b"));
  plan.chosen = option("chosen", 30, 130);
  EXPECT_THAT(front(), testing::ElementsAre("a", "beaten", "b")) << "it is on no front";
}

TEST(PlanPicture, of_a_front_that_costs_nothing_has_linear_axes) {
  Recommendation plan;
  plan.chosen = option("chosen", 20, 0);
  plan.front = {option("a", 20, 0)};
  Job job;
  job.goal = Goal::pareto;
  const PlanPicture picture = picture_of(job, plan);
  EXPECT_FALSE(picture.logarithmic);
  expect_readable(picture);
  EXPECT_THAT(to_svg(picture), Not(HasSubstr("nan")));
}

TEST(PlanPicture, names_are_escaped) {
  Recommendation plan;
  plan.chosen = option("<b> & co", 10, 100);
  EXPECT_THAT(to_svg(picture_of({}, plan)), HasSubstr("&lt;b&gt; &amp; co"));
}

}  // namespace
}  // namespace tw::plan
