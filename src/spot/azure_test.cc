// SPDX-License-Identifier: Apache-2.0
#include "spot/azure.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text/date.h"
#include "spot/test_source.h"

namespace tw::spot {
namespace {

const std::string kEventsUrl = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01";

/// Scheduled Events, as Microsoft documents them; the machine is vm1.
class ScheduledEvents : public testing::Test {
 protected:
  ScheduledEvents() { talk.wall_s = *parse_date("2016-09-19T18:29:17Z"); }

  void say_the_name() {
    EXPECT_EQ(talk.asks().url,
              "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    expect_quiet(talk.hears(200, "vm1"));
  }

  Heard events(const std::string& list) {
    return talk.hears(200, fmt::format(R"({{"DocumentIncarnation":1,"Events":[{}]}})", list));
  }

  static std::string event(const std::string& type, const std::string& resources = R"("vm1")",
                           const std::string& id = "A", int lasts_s = -1) {
    return fmt::format(
        R"({{"EventId":"{}","EventType":"{}","ResourceType":"VirtualMachine","Resources":[{}],)"
        R"("EventStatus":"Scheduled","NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT","Description":"",)"
        R"("EventSource":"Platform","DurationInSeconds":{}}})",
        id, type, resources, lasts_s);
  }

  /// Goes on until events are asked for; there are none so far.
  void ask_for_events() {
    if (!named_) say_the_name();
    named_ = true;
    EXPECT_EQ(talk.asks().url, kEventsUrl);
  }

  Azure azure;
  Conversation talk{azure};

 private:
  bool named_ = false;
};

TEST_F(ScheduledEvents, may_take_two_minutes_for_their_first_answer_and_come_each_second_then) {
  say_the_name();
  EXPECT_EQ(talk.asks(),
            (world::HttpRequest{.url = kEventsUrl, .headers = {{"Metadata", "true"}}, .patience = 150s}));
  EXPECT_FALSE(azure.has_looked());
  talk.now += 120s;
  expect_quiet(events(""));
  EXPECT_TRUE(azure.has_looked());
  const Instant then = talk.now;
  EXPECT_EQ(talk.asks().patience, 5s);
  EXPECT_EQ(talk.now, then + 1s);
}

TEST_F(ScheduledEvents, announce_a_preemption_once) {
  ask_for_events();
  expect_notice(events(event("Preempt")), NoticeKind::preempt, talk.now + 30s, "Preempt");
  ask_for_events();
  expect_quiet(events(event("Preempt")));
}

TEST_F(ScheduledEvents, of_other_machines_of_the_scale_set_are_not_heard) {
  ask_for_events();
  expect_quiet(events(event("Preempt", R"("vm2","vm10")")));
  ask_for_events();
  EXPECT_EQ(
      events(event("Preempt", R"("vm2")") + "," + event("Preempt", R"("vm2","vm1")", "B")).notices.size(),
      1U);
}

TEST_F(ScheduledEvents, a_quarter_of_an_hour_ahead_are_notices_a_minute_before) {
  talk.wall_s -= 870;
  ask_for_events();
  expect_quiet(events(event("Reboot")));
  talk.now = Conversation::kBegin + 840s;
  ask_for_events();
  expect_notice(events(event("Reboot")), NoticeKind::maintenance, Conversation::kBegin + 900s, "Reboot");
}

TEST_F(ScheduledEvents, that_vanish_before_are_no_notices) {
  talk.wall_s -= 870;
  ask_for_events();
  expect_quiet(events(event("Redeploy")));
  talk.now = Conversation::kBegin + 860s;
  ask_for_events();
  expect_quiet(events(""));
}

TEST_F(ScheduledEvents, let_a_machine_stand_still_for_a_short_or_a_long_time) {
  ask_for_events();
  expect_notice(events(event("Freeze", R"("vm1")", "A", 5)), NoticeKind::freeze, talk.now + 30s, "Freeze");
  ask_for_events();
  expect_notice(events(event("Freeze", R"("vm1")", "B", 30)), NoticeKind::maintenance, talk.now + 29s,
                "Freeze");
  ask_for_events();
  EXPECT_EQ(events(event("Freeze", R"("vm1")", "C", -1)).notices.at(0).kind, NoticeKind::maintenance)
      << "nobody says how long";
}

TEST_F(ScheduledEvents, two_notices_are_both_heard) {
  ask_for_events();
  expect_notice(events(event("Reboot")), NoticeKind::maintenance, talk.now + 30s, "Reboot");
  ask_for_events();
  expect_notice(events(event("Reboot") + "," + event("Preempt", R"("vm1")", "B")), NoticeKind::preempt,
                talk.now + 29s, "Preempt");
}

TEST_F(ScheduledEvents, are_approved_once_the_peer_has_left) {
  ask_for_events();
  events(event("Preempt"));
  EXPECT_TRUE(azure.say_gone());
  EXPECT_EQ(talk.asks(),
            (world::HttpRequest{.method = "POST",
                                .url = kEventsUrl,
                                .headers = {{"Metadata", "true"}, {"Content-Type", "application/json"}},
                                .body = R"({"StartRequests":[{"EventId":"A"}]})"}));
  EXPECT_TRUE(azure.say_gone()) << "it is under way";
  expect_quiet(talk.hears(200));
  EXPECT_FALSE(azure.say_gone());
}

TEST_F(ScheduledEvents, that_concern_other_machines_too_are_not_approved_for_them) {
  ask_for_events();
  events(event("Preempt", R"("vm1","vm2")"));
  EXPECT_FALSE(azure.say_gone());
}

TEST_F(ScheduledEvents, that_are_refused_or_unreadable_are_told_of) {
  say_the_name();
  for (int i = 0; i < 2; ++i) {
    talk.asks();
    expect_quiet(talk.hears(400));
  }
  talk.asks();
  EXPECT_EQ(
      talk.hears(200, "[]").trouble,
      "azure: no answer of the metadata service (expected a JSON object with a list Events), so no notice "
      "of Azure can come");
}

TEST_F(ScheduledEvents, that_have_begun_have_no_time_left) {
  ask_for_events();
  std::string begun = event("Preempt");
  begun.replace(begun.find("Mon, 19 Sep 2016 18:29:47 GMT"), 29, "");
  expect_notice(events(begun), NoticeKind::preempt, talk.now, "Preempt");
}

}  // namespace
}  // namespace tw::spot
