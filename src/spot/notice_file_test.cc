// SPDX-License-Identifier: Apache-2.0
#include "spot/notice_file.h"

#include <gtest/gtest.h>

#include "spot/test_source.h"

namespace tw::spot {
namespace {

constexpr Instant kNow{1000s};

Notice read(const std::string& line) {
  const auto notice = read_notice_line(line, kNow, 25s);
  EXPECT_TRUE(notice) << notice.error().message;
  return notice ? notice.value() : Notice{};
}

std::string complaint(const std::string& line) {
  const auto notice = read_notice_line(line, kNow, 25s);
  return notice ? "" : notice.error().message;
}

TEST(NoticeLine, has_a_kind_seconds_and_words) {
  EXPECT_EQ(read("preempt 30"), (Notice{Source::file, NoticeKind::preempt, kNow + 30s}));
  EXPECT_EQ(read("preempt 12.5 the owner is back"),
            (Notice{Source::file, NoticeKind::preempt, kNow + 12500ms, "the owner is back"}));
  EXPECT_EQ(read("maintenance new kernel"),
            (Notice{Source::file, NoticeKind::maintenance, kNow + 25s, "new kernel"}));
  EXPECT_EQ(read("preempt"), (Notice{Source::file, NoticeKind::preempt, kNow + 25s}));
  EXPECT_EQ(read("at_risk"), (Notice{Source::file, NoticeKind::at_risk, kNever}));
  EXPECT_EQ(read("freeze 5"), (Notice{Source::file, NoticeKind::freeze, kNow + 5s}));
}

TEST(NoticeLine, may_be_json) {
  EXPECT_EQ(read(R"({"kind": "preempt", "seconds": 30, "text": "owner"})"),
            (Notice{Source::file, NoticeKind::preempt, kNow + 30s, "owner"}));
  EXPECT_EQ(read(R"({"kind": "at_risk"})"), (Notice{Source::file, NoticeKind::at_risk, kNever}));
}

TEST(NoticeLine, that_cannot_be_read_is_named_with_what_was_expected) {
  EXPECT_EQ(complaint("prempt 30"),
            "\"prempt 30\": expected preempt, at_risk, maintenance or freeze, and perhaps seconds, such as "
            "preempt 30; did you mean \"preempt\"?");
  EXPECT_EQ(complaint("preempt -5"), "\"preempt -5\": expected seconds from 0 to 604800");
  EXPECT_EQ(complaint("preempt nan"), "\"preempt nan\": expected seconds from 0 to 604800");
  EXPECT_EQ(complaint("{\"kind\": "), "\"{\"kind\": \": expected a JSON object with kind and seconds");
  EXPECT_EQ(complaint(R"({"kind": "preempt", "seconds": "30"})"),
            "\"{\"kind\": \"preempt\", \"seconds\": \"30\"}\": seconds: expected a number");
}

class ANoticeFile : public testing::Test {
 protected:
  Heard holds(const std::string& text) {
    EXPECT_EQ(talk.asks(), (world::HttpRequest{.url = "file:///run/notice"}));
    return talk.hears(200, text);
  }

  Heard is_missing() {
    talk.asks();
    return talk.hears(404);
  }

  NoticeFile file{"/run/notice", 25s};
  Conversation talk{file};
};

TEST_F(ANoticeFile, is_looked_at_twice_a_second) {
  EXPECT_FALSE(file.has_looked());
  expect_quiet(is_missing());
  EXPECT_TRUE(file.has_looked());
  expect_quiet(holds(""));
  EXPECT_EQ(talk.now, Conversation::kBegin + 500ms);
}

TEST_F(ANoticeFile, counts_by_its_last_line) {
  expect_quiet(holds("# written by the scheduler\n\n"));
  const Heard heard = holds("# written by the scheduler\nat_risk\n  preempt 30 \n\n");
  expect_notice(heard, NoticeKind::preempt, talk.now + 30s, "");
}

TEST_F(ANoticeFile, gives_a_notice_once_until_it_changes) {
  EXPECT_EQ(holds("at_risk\n").notices.size(), 1U);
  expect_quiet(holds("at_risk\n"));
  EXPECT_EQ(holds("preempt 30\n").notices.size(), 1U);
  expect_quiet(is_missing());
  EXPECT_EQ(holds("preempt 30\n").notices.size(), 1U) << "written anew";
}

TEST_F(ANoticeFile, is_doubted_only_when_it_stays_as_it_is) {
  expect_quiet(holds("preem"));
  EXPECT_EQ(holds("preempt 30").notices.size(), 1U);
  expect_quiet(holds("go away"));
  EXPECT_TRUE(holds("go away").trouble.starts_with("file: /run/notice: \"go away\": expected preempt, "));
  expect_quiet(holds("go away"));
}

TEST_F(ANoticeFile, that_cannot_be_opened_is_told_once) {
  for (int i = 0; i < 2; ++i) {
    talk.asks();
    expect_quiet(talk.hears_nothing("/run/notice: Permission denied"));
  }
  talk.asks();
  EXPECT_EQ(talk.hears_nothing("/run/notice: Permission denied").trouble,
            "file: /run/notice: Permission denied");
}

}  // namespace
}  // namespace tw::spot
