// SPDX-License-Identifier: Apache-2.0
#include "wire/status.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "wire/frame.h"

namespace tw::wire {
namespace {

Status usual() {
  Status status;
  status.now_s = 1'767'225'600;
  status.peer = {.peer = PeerId{7},
                 .site = "aws:us-east-1:a",
                 .hardware = "AMD EPYC 7B13, 8 cores",
                 .state = Doing::computing,
                 .since_s = status.now_s - 1,
                 .round = 12,
                 .digest = "a4147034a6a32c6d4b901ae6044dea4b",
                 .digest_round = 11,
                 .usd_per_h = 0.25};
  status.rounds = {{.round = 11,
                    .begun_s = status.now_s - 9,
                    .called_s = status.now_s - 3,
                    .committed_s = status.now_s - 1,
                    .samples = 64,
                    .contributors = {PeerId{7}},
                    .loss = 2.3}};
  status.links = {{.from = "aws:us-east-1:a", .to = "gcp:us-west1:b", .bytes = 2000},
                  {.from = "s3:us-east-1", .to = "aws:us-east-1:a", .bytes = 1000, .store = "s3:us-east-1"}};
  return status;
}

TEST(Status, takes_a_few_hundred_bytes) {
  EXPECT_TRUE(is_sound(usual()));
  EXPECT_LE(encode(usual()).size(), 700U);
}

TEST(Status, whose_values_are_beyond_their_bounds_is_not_sound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<const char*, std::function<void(Status&)>>> cases = {
      {"a long site", [](Status& s) { s.peer.site.assign(201, 'x'); }},
      {"many links", [](Status& s) { s.links.resize(33); }},
      {"a long name of a link", [](Status& s) { s.links[0].to.assign(201, 'x'); }},
      {"no number", [&](Status& s) { s.peer.samples_per_s = nan; }},
      {"a negative price", [](Status& s) { s.peer.usd_per_h = -1; }},
      {"a negative time", [](Status& s) { s.rounds[0].begun_s = -1; }},
      {"endless hours", [](Status& s) { s.peer.usage.hours = std::numeric_limits<double>::infinity(); }},
      {"a loss that is no number", [&](Status& s) { s.rounds[0].loss = nan; }},
      {"many that were left out", [](Status& s) { s.rounds[0].left_out.resize(33); }},
      {"a long reason",
       [](Status& s) {
         s.rounds[0].left_out = {{PeerId{1}, std::string(201, 'x')}};
       }},
      {"cost of the gone", [](Status& s) { s.gone.machines_usd = -1; }},
      {"a line that takes more than all", [&](Status& s) { s.peer.up_mbit_s = nan; }},
      {"a long wait", [](Status& s) { s.peer.wait = {.text = std::string(201, 'x')}; }},
      {"a wait for many", [](Status& s) { s.peer.wait = {.text = "x", .peers = std::vector<PeerId>(33)}; }},
      {"a state since the future", [](Status& s) { s.peer.since_s = s.now_s + 1e6; }},
      {"a round of the future", [](Status& s) { s.rounds[0].committed_s = s.now_s + 1e6; }},
      {"a wait since the future", [](Status& s) { s.peer.wait = {.text = "x", .since_s = s.now_s + 1e6}; }},
      {"a deadline in a year", [](Status& s) { s.peer.notice = {.deadline_s = s.now_s + 3e7}; }},
      {"a deadline that is no number", [&](Status& s) { s.peer.notice = {.deadline_s = nan}; }},
  };
  for (const auto& [what, spoil] : cases) {
    Status status = usual();
    spoil(status);
    EXPECT_FALSE(is_sound(status)) << what;
  }
}

TEST(Status, with_the_loss_of_a_run_that_diverges_is_sound) {
  Status status = usual();
  for (const double loss : {-3.0, 1e30}) {
    status.rounds[0].loss = loss;
    EXPECT_TRUE(is_sound(status)) << loss;
  }
}

TEST(Status, of_a_peer_whose_clock_was_set_back_an_hour_is_sound) {
  Status status = usual();
  status.now_s -= 3600;
  EXPECT_TRUE(is_sound(status));
}

TEST(Status, with_a_maintenance_in_two_weeks_is_sound) {
  Status status = usual();
  status.peer.notice = {.source = "aws", .kind = "maintenance", .deadline_s = status.now_s + 14 * 86'400};
  EXPECT_TRUE(is_sound(status));
}

TEST(Status, that_is_cut_is_sound) {
  Status status = usual();
  status.peer.hardware.assign(1000, 'x');
  status.rounds[0].left_out.resize(100);
  EXPECT_FALSE(is_sound(status));
  cut(status);
  EXPECT_TRUE(is_sound(status));
  EXPECT_EQ(status.peer.site, usual().peer.site);
}

TEST(Status, moves_its_times_to_another_clock_but_no_durations) {
  Status status = usual();
  status.rounds[0].calc_s = 6;
  status.peer.notice = {.source = "aws", .kind = "preempt", .told_s = 1000, .deadline_s = 1030};
  const Status later = moved(status, 100);
  EXPECT_EQ(later.peer.since_s, status.peer.since_s + 100);
  EXPECT_EQ(later.peer.heard_s, 0) << "not known";
  EXPECT_EQ(later.peer.notice->deadline_s, 1130);
  EXPECT_EQ(later.rounds[0].committed_s, *status.rounds[0].committed_s + 100);
  EXPECT_EQ(later.rounds[0].calc_s, 6);
  EXPECT_EQ(moved(later, -100), status);
}

}  // namespace
}  // namespace tw::wire
