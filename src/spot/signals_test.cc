// SPDX-License-Identifier: Apache-2.0
#include "spot/signals.h"

#include <gtest/gtest.h>

namespace tw::spot {
namespace {

using namespace std::chrono_literals;
using Meaning = Signals::Meaning;

constexpr Instant kThen{1000s};

TEST(Signals, sigterm_is_a_notice_with_the_grace) {
  Signals signals({.source = Source::slurm, .grace = 10s});
  const Signals::Said said = signals.take(Signal::terminate, kThen);
  ASSERT_EQ(said.meaning, Meaning::notice);
  EXPECT_EQ(said.notice, (Notice{Source::slurm, NoticeKind::preempt, kThen + 10s, "SIGTERM"}));
  EXPECT_FALSE(signals.interrupted());
}

// scancel and Slurm's end of the grace time send it twice within 20 ms.
TEST(Signals, second_sigterm_counts_a_second_after_the_first) {
  Signals signals({});
  EXPECT_EQ(signals.take(Signal::terminate, kThen).meaning, Meaning::notice);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 20ms).meaning, Meaning::nothing);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 999ms).meaning, Meaning::nothing);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 1s).meaning, Meaning::leave_at_once);
}

// Advice of Slurm sites: --signal=USR1@25, then SIGTERM at the end (lightning#4265, pytorch#154849).
TEST(Signals, user_signal_is_a_notice_once_and_sigterm_after_it_another_one) {
  Signals signals({.grace = 25s});
  const Signals::Said first = signals.take(Signal::user, kThen);
  ASSERT_EQ(first.meaning, Meaning::notice);
  EXPECT_EQ(first.notice.deadline, kThen + 25s);
  EXPECT_EQ(signals.take(Signal::user, kThen + 5s).meaning, Meaning::nothing);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 25s).meaning, Meaning::notice);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 26s).meaning, Meaning::leave_at_once);
}

TEST(Signals, user_signal_after_sigterm_says_nothing_new) {
  Signals signals({});
  EXPECT_EQ(signals.take(Signal::terminate, kThen).meaning, Meaning::notice);
  EXPECT_EQ(signals.take(Signal::user, kThen + 5s).meaning, Meaning::nothing);
}

// A shell and the kernel both send it when a terminal closes.
TEST(Signals, hangup_is_a_notice_once_and_sigterm_after_it_another_one) {
  Signals signals({.grace = 25s});
  const Signals::Said first = signals.take(Signal::hangup, kThen);
  ASSERT_EQ(first.meaning, Meaning::notice);
  EXPECT_EQ(first.notice, (Notice{Source::signal, NoticeKind::preempt, kThen + 25s, "SIGHUP"}));
  EXPECT_EQ(signals.take(Signal::hangup, kThen + 5s).meaning, Meaning::nothing);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 6s).meaning, Meaning::notice);
  EXPECT_EQ(Signals({.grace = std::nullopt}).take(Signal::hangup, kThen).meaning, Meaning::leave);
}

TEST(Signals, person_at_the_terminal_has_no_deadline_and_is_heard_at_once_the_second_time) {
  Signals signals({});
  EXPECT_EQ(signals.take(Signal::interrupt, kThen).meaning, Meaning::leave);
  EXPECT_TRUE(signals.interrupted());
  EXPECT_EQ(signals.take(Signal::interrupt, kThen + 1ms).meaning, Meaning::leave_at_once);
}

TEST(Signals, person_is_heard_at_once_after_a_notice_too) {
  Signals signals({});
  EXPECT_EQ(signals.take(Signal::terminate, kThen).meaning, Meaning::notice);
  EXPECT_EQ(signals.take(Signal::interrupt, kThen + 1ms).meaning, Meaning::leave_at_once);
}

TEST(Signals, without_notices_sigterm_is_as_a_person) {
  Signals signals({.grace = std::nullopt});
  EXPECT_EQ(signals.take(Signal::terminate, kThen).meaning, Meaning::leave);
  EXPECT_EQ(signals.take(Signal::terminate, kThen + 2s).meaning, Meaning::leave_at_once);
  EXPECT_FALSE(signals.interrupted());
}

TEST(Notice, reads_as_a_line) {
  const Notice notice{Source::aws, NoticeKind::preempt, kThen + 118s, "spot instance action terminate"};
  EXPECT_EQ(text_of(notice, kThen), "aws: preempt in 118 s (spot instance action terminate)");
  EXPECT_EQ(text_of({Source::file, NoticeKind::at_risk}, kThen), "file: at_risk");
  EXPECT_EQ(notice_kind_named("at_risk"), NoticeKind::at_risk);
  EXPECT_EQ(notice_kind_named("atrisk"), std::nullopt);
}

}  // namespace
}  // namespace tw::spot
