// SPDX-License-Identifier: Apache-2.0
#include "spot/aws.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/text/date.h"
#include "spot/test_source.h"

namespace tw::spot {
namespace {

const std::string kMetadata = "http://169.254.169.254/latest/meta-data/";

/// The instance metadata of AWS, as its documentation has them.
class AwsMetadata : public testing::Test {
 protected:
  AwsMetadata() { talk.wall_s = *parse_date("2026-09-18T08:20:00Z"); }

  void give_token(const std::string& token = "AQAEA") {
    EXPECT_EQ(talk.asks().method, "PUT");
    expect_quiet(talk.hears(200, token));
  }

  /// Answers requests until one for this document comes: 404 for actions, [] for maintenance.
  void ask_until(const std::string& path) {
    for (int i = 0; i < 20; ++i) {
      const world::HttpRequest request = talk.asks();
      if (request.url == kMetadata + path) return;
      expect_quiet(request.method == "PUT"              ? talk.hears(200, "AQAEA")
                   : request.url.ends_with("scheduled") ? talk.hears(200, "[]")
                                                        : talk.hears(404));
    }
    FAIL() << path << " is not asked for";
  }

  Aws aws;
  Conversation talk{aws};
};

TEST_F(AwsMetadata, are_asked_with_a_token_of_six_hours) {
  EXPECT_EQ(talk.asks(), (world::HttpRequest{.method = "PUT",
                                             .url = "http://169.254.169.254/latest/api/token",
                                             .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                                             .patience = 2s}));
  expect_quiet(talk.hears(200, "AQAEA"));
  EXPECT_EQ(talk.asks(), (world::HttpRequest{.url = kMetadata + "spot/instance-action",
                                             .headers = {{"X-aws-ec2-metadata-token", "AQAEA"}},
                                             .patience = 2s}));
  EXPECT_FALSE(aws.has_looked());
  expect_quiet(talk.hears(404));
  EXPECT_TRUE(aws.has_looked());
}

TEST_F(AwsMetadata, are_asked_for_a_termination_every_two_seconds_and_for_the_rest_every_ten) {
  std::map<std::string, std::vector<Duration>> asked;
  while (talk.now < Conversation::kBegin + 30s) {
    const world::HttpRequest request = talk.asks();
    asked[request.url].push_back(talk.now - Conversation::kBegin);
    request.method == "PUT" ? talk.hears(200, "AQAEA") : talk.hears(404);
  }
  EXPECT_EQ(asked[kMetadata + "spot/instance-action"].size(), 16U) << "from 0 to 30 s";
  EXPECT_EQ(asked[kMetadata + "events/recommendations/rebalance"], (std::vector<Duration>{0s, 10s, 20s}));
  EXPECT_EQ(asked[kMetadata + "events/maintenance/scheduled"], (std::vector<Duration>{0s, 10s, 20s}));
}

TEST_F(AwsMetadata, announce_a_termination_by_the_calendar) {
  ask_until("spot/instance-action");
  expect_notice(talk.hears(200, R"({"action":"terminate","time":"2026-09-18T08:22:00Z"})"),
                NoticeKind::preempt, talk.now + 120s, "spot instance action terminate");
  ask_until("spot/instance-action");
  expect_quiet(talk.hears(200, R"({"action":"terminate","time":"2026-09-18T08:22:00Z"})"));
}

TEST_F(AwsMetadata, count_the_time_left_from_the_date_of_their_answer_not_from_a_wrong_clock) {
  talk.wall_s += 3600;
  ask_until("spot/instance-action");
  expect_notice(talk.hears(200, R"({"action":"stop","time":"2026-09-18T08:22:00Z"})",
                           {{"date", "Fri, 18 Sep 2026 08:20:30 GMT"}}),
                NoticeKind::preempt, talk.now + 90s, "spot instance action stop");
}

TEST_F(AwsMetadata, hibernate_at_once) {
  ask_until("spot/instance-action");
  expect_notice(talk.hears(200, R"({"action":"hibernate"})"), NoticeKind::preempt, talk.now,
                "spot instance action hibernate");
}

TEST_F(AwsMetadata, leave_two_minutes_where_the_time_cannot_be_read) {
  ask_until("spot/instance-action");
  expect_notice(talk.hears(200, R"({"action":"stop","time":"soon"})"), NoticeKind::preempt, talk.now + 120s,
                "spot instance action stop");
}

TEST_F(AwsMetadata, say_nothing_by_an_unknown_action_but_that_it_is_one_once) {
  ask_until("spot/instance-action");
  const Heard first = talk.hears(200, R"({"action":"none"})");
  EXPECT_TRUE(first.notices.empty());
  EXPECT_EQ(first.trouble,
            "aws: spot/instance-action: action \"none\": expected terminate, stop or hibernate");
  ask_until("spot/instance-action");
  expect_quiet(talk.hears(200, "{}"));
}

TEST_F(AwsMetadata, that_give_a_second_action_are_heard_again) {
  ask_until("spot/instance-action");
  expect_notice(talk.hears(200, R"({"action":"stop","time":"2026-09-18T08:22:00Z"})"), NoticeKind::preempt,
                talk.now + 120s, "spot instance action stop");
  ask_until("spot/instance-action");
  const Instant deadline = talk.now + 58s;
  expect_notice(talk.hears(200, R"({"action":"terminate","time":"2026-09-18T08:21:00Z"})"),
                NoticeKind::preempt, deadline, "spot instance action terminate");
}

// AWS's mock does this: always two minutes from now.
TEST_F(AwsMetadata, that_put_an_action_off_give_no_second_notice_but_an_earlier_one_is) {
  const auto terminates = [this](const std::string& time) {
    ask_until("spot/instance-action");
    return talk.hears(200, R"({"action":"terminate","time":"2026-09-18T)" + time + R"(Z"})");
  };
  EXPECT_EQ(terminates("08:22:00").notices.size(), 1U);
  expect_quiet(terminates("08:22:02"));
  expect_quiet(terminates("08:21:59"));
  EXPECT_EQ(terminates("08:21:30").notices.size(), 1U);
}

TEST_F(AwsMetadata, that_come_back_to_the_first_of_two_actions_give_no_third_notice) {
  const auto say = [this](const std::string& action, const std::string& time) {
    ask_until("spot/instance-action");
    return talk.hears(200, R"({"action":")" + action + R"(","time":"2026-09-18T)" + time + R"(Z"})");
  };
  EXPECT_EQ(say("stop", "08:22:00").notices.size(), 1U);
  EXPECT_EQ(say("terminate", "08:30:00").notices.size(), 1U);
  expect_quiet(say("stop", "08:22:00"));
}

TEST_F(AwsMetadata, that_cannot_be_read_are_told_once) {
  ask_until("spot/instance-action");
  EXPECT_EQ(talk.hears(200, "<html>").trouble,
            "aws: spot/instance-action: expected a JSON object with action and time");
  ask_until("spot/instance-action");
  expect_quiet(talk.hears(200, "<html>"));
}

TEST_F(AwsMetadata, recommend_a_rebalance_once) {
  ask_until("events/recommendations/rebalance");
  expect_notice(talk.hears(200, R"({"noticeTime":"2026-09-18T08:22:00Z"})"), NoticeKind::at_risk, kNever,
                "rebalance recommendation");
  ask_until("events/recommendations/rebalance");
  expect_quiet(talk.hears(200, R"({"noticeTime":"2026-09-18T08:22:00Z"})"));
}

constexpr const char* kReboot =
    R"([{"NotBefore":"18 Sep 2026 08:30:00 GMT","Code":"system-reboot","Description":"reboot",)"
    R"("EventId":"instance-event-0d5993728","NotAfter":"18 Sep 2026 11:00:00 GMT","State":"active"}])";

TEST_F(AwsMetadata, announce_maintenance_days_ahead_which_is_a_notice_a_minute_before) {
  while (talk.now < Conversation::kBegin + 530s) {
    ask_until("events/maintenance/scheduled");
    expect_quiet(talk.hears(200, kReboot));
  }
  ask_until("events/maintenance/scheduled");
  expect_notice(talk.hears(200, kReboot), NoticeKind::maintenance, Conversation::kBegin + 600s,
                "system-reboot");
  ask_until("events/maintenance/scheduled");
  expect_quiet(talk.hears(200, kReboot));
}

TEST_F(AwsMetadata, that_cancel_maintenance_give_no_notice_of_it) {
  ask_until("events/maintenance/scheduled");
  expect_quiet(talk.hears(200, kReboot));
  talk.now = Conversation::kBegin + 550s;
  ask_until("events/maintenance/scheduled");
  std::string cancelled = kReboot;
  cancelled.replace(cancelled.find("active"), 6, "canceled");
  expect_quiet(talk.hears(200, cancelled));
}

TEST_F(AwsMetadata, get_another_token_when_they_refuse_the_one_they_gave) {
  ask_until("spot/instance-action");
  expect_quiet(talk.hears(401));
  const Instant then = talk.now;
  give_token("another");
  EXPECT_EQ(talk.asks().headers[0].second, "another");
  EXPECT_EQ(talk.now, then) << "at once";
  expect_quiet(talk.hears(404));
}

TEST_F(AwsMetadata, that_refuse_every_token_are_not_asked_without_a_pause) {
  int requests = 0;
  while (talk.now < Conversation::kBegin + 20s) {
    talk.asks().method == "PUT" ? talk.hears(200, "AQAEA") : talk.hears(401);
    ++requests;
  }
  EXPECT_LE(requests, 2 * 11 + 2);
}

TEST_F(AwsMetadata, get_another_token_a_minute_before_the_end_of_theirs) {
  give_token();
  talk.now = Conversation::kBegin + 21600s - 61s;
  EXPECT_EQ(talk.asks().method, "GET");
  expect_quiet(talk.hears(404));
  talk.now = Conversation::kBegin + 21600s - 60s;
  EXPECT_EQ(talk.asks().method, "PUT");
}

TEST_F(AwsMetadata, that_do_not_answer_are_told_of_once_until_they_do) {
  for (int i = 0; i < 2; ++i) {
    talk.asks();
    expect_quiet(talk.hears_nothing("connection refused"));
  }
  EXPECT_TRUE(aws.has_looked()) << "joining waits for nobody who is not there";
  talk.asks();
  EXPECT_TRUE(talk.hears_nothing("connection refused")
                  .trouble.starts_with("aws: no answer of the instance metadata (connection refused), so"));
  EXPECT_GE(talk.now, Conversation::kBegin + 4s);
  talk.asks();
  expect_quiet(talk.hears_nothing("connection refused"));
  ask_until("spot/instance-action");
  expect_quiet(talk.hears(404));
  for (int i = 0; i < 2; ++i) {
    talk.asks();
    expect_quiet(talk.hears(503));
  }
  talk.asks();
  EXPECT_NE(talk.hears(503).trouble.find("HTTP status 503"), std::string::npos);
}

TEST_F(AwsMetadata, with_a_token_that_is_none_have_not_answered) {
  for (const std::string& body : {std::string(), std::string("a b"), std::string("a\r\nX: b")}) {
    EXPECT_EQ(talk.asks().method, "PUT");
    talk.hears(200, body);
  }
  EXPECT_EQ(talk.asks().method, "PUT");
}

}  // namespace
}  // namespace tw::spot
