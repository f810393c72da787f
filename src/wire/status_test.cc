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
  status.site = "aws:us-east-1:a";
  status.hardware = "AMD EPYC 7B13, 8 cores";
  status.doing = Doing::computing;
  status.round = 12;
  status.last = {.round = 11, .begun_ago_s = 9, .called_ago_s = 3, .committed_ago_s = 1};
  status.shares = {{.round = 11, .committed_ago_s = 1, .samples = 64, .loss = 2.3}};
  status.sent = {{"aws:us-east-1:a", 1000}, {"gcp:us-west1:b", 2000}};
  status.stores = {{"s3:us-east-1", 30, 1'000'000, 20, 2'000'000}};
  status.usd_per_h = 0.25;
  return status;
}

TEST(Status, takes_a_few_hundred_bytes) {
  EXPECT_TRUE(is_sound(usual()));
  EXPECT_LE(encode(usual()).size(), 470U);
}

TEST(Status, whose_values_are_beyond_their_bounds_is_not_sound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<const char*, std::function<void(Status&)>>> cases = {
      {"a long site", [](Status& s) { s.site.assign(65, 'x'); }},
      {"a long hardware", [](Status& s) { s.hardware.assign(97, 'x'); }},
      {"many sites", [](Status& s) { s.sent.resize(17); }},
      {"a long site of receivers", [](Status& s) { s.sent[0].site.assign(65, 'x'); }},
      {"no number", [&](Status& s) { s.samples_per_s = nan; }},
      {"a negative age", [](Status& s) { s.last.called_ago_s = -1; }},
      {"endless hours", [](Status& s) { s.usage.hours = std::numeric_limits<double>::infinity(); }},
      {"a negative price", [](Status& s) { s.usd_per_h = -0.1; }},
      {"a loss that is no number", [&](Status& s) { s.shares[0].loss = nan; }},
      {"many rounds", [](Status& s) { s.shares.resize(17); }},
      {"many that were left out", [](Status& s) { s.shares[0].left_out.resize(9); }},
      {"a long reason",
       [](Status& s) {
         s.shares[0].left_out = {{PeerId{1}, std::string(81, 'x')}};
       }},
      {"cost of the gone", [](Status& s) { s.gone.machines_usd = -1; }},
      {"a line that takes more than all", [&](Status& s) { s.line.up_mbit_s = nan; }},
      {"a long wait", [](Status& s) { s.wait = {.text = std::string(201, 'x')}; }},
      {"a wait for many", [](Status& s) { s.wait = {.text = "x", .peers = std::vector<PeerId>(9)}; }},
      {"a long notice", [](Status& s) { s.notice = {.source = std::string(17, 'x')}; }},
      {"a deadline that is no number", [&](Status& s) { s.notice = {.deadline_in_s = nan}; }},
  };
  for (const auto& [what, spoil] : cases) {
    Status status = usual();
    spoil(status);
    EXPECT_FALSE(is_sound(status)) << what;
  }
}

TEST(Status, may_have_a_deadline_that_has_passed) {
  Status status = usual();
  status.notice = {.source = "aws", .kind = "preempt", .told_ago_s = 40, .deadline_in_s = -10};
  EXPECT_TRUE(is_sound(status));
}

}  // namespace
}  // namespace tw::wire
