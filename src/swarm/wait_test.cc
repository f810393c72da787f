// SPDX-License-Identifier: Apache-2.0
#include "swarm/wait.h"

#include <gtest/gtest.h>

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirst = static_cast<int>(Wait::Kind::nothing) + 1;
constexpr auto kLast = static_cast<int>(Wait::kLast);

bool is_for_peers(Wait::Kind kind) {
  const bool nobody_is_known =
      kind == Wait::Kind::company || kind == Wait::Kind::others || kind == Wait::Kind::answer;
  return !nobody_is_known && !is_own_work(kind);
}

TEST(Wait, of_each_kind_names_its_peers_or_is_own_work) {
  for (int i = kFirst; i <= kLast; ++i) {
    Wait wait{static_cast<Wait::Kind>(i), {PeerId{2}, PeerId{31}}, 7, 3, 12, 64};
    wait.unanswered = {"127.0.0.1:7100", "connection refused", 3};
    wait.past = {"its event log is here"};
    const std::string text = text_of(wait);
    EXPECT_TRUE(is_named(wait)) << i;
    EXPECT_GT(text.size(), 15U) << i << ": " << text;
    EXPECT_EQ(text.find("nobody"), std::string::npos) << i << ": " << text;
    EXPECT_FALSE(text.ends_with(": ") || text.ends_with(":")) << i << ": " << text;
    EXPECT_EQ(text.find("peers 2, 31") != std::string::npos, is_for_peers(wait.kind)) << i << ": " << text;
    EXPECT_FALSE(text.starts_with("waiting") && is_own_work(wait.kind)) << i << ": " << text;
  }
}

TEST(Wait, of_each_kind_that_is_for_peers_is_unnamed_without_one) {
  for (int i = kFirst; i <= kLast; ++i) {
    const Wait wait{static_cast<Wait::Kind>(i)};
    const bool names_no_peer = wait.kind == Wait::Kind::answer || wait.kind == Wait::Kind::others;
    const bool needs_name = is_for_peers(wait.kind) || names_no_peer;
    EXPECT_EQ(is_named(wait), !needs_name) << i;
  }
}

TEST(Wait, tells_how_far_it_has_come) {
  Wait state{Wait::Kind::state, {PeerId{1}}};
  state.done = 300'000'000;
  state.total = 1'020'000'000;
  EXPECT_EQ(text_of(state), "waiting for peer 1: the state of the run, 300.0 of 1020.0 MB");
  state.bytes_per_s = 2.1e8;
  EXPECT_EQ(text_of(state), "waiting for peer 1: the state of the run, 300.0 of 1020.0 MB at 210.0 MB/s");
  EXPECT_EQ(text_of({.kind = Wait::Kind::saving, .total = 2'500'000}), "saving a checkpoint: 2.5 MB");
  Wait copy{.kind = Wait::Kind::copying, .place = "s3://bucket/run"};
  EXPECT_EQ(text_of(copy), "copying a checkpoint to s3://bucket/run");
  copy.round = 3;
  copy.total = 12'000'000;
  EXPECT_EQ(text_of(copy), "copying the checkpoint of round 3 to s3://bucket/run: 12.0 MB");
  copy.done = 2'100'000;
  EXPECT_EQ(text_of(copy), "copying the checkpoint of round 3 to s3://bucket/run, 2.1 of 12.0 MB");
}

TEST(Wait, says_what_others_do_for_slow_peers) {
  EXPECT_EQ(text_of({Wait::Kind::relief, {PeerId{2}}}),
            "peer 2 is slow: others reduce the rest of its share");
  EXPECT_EQ(text_of({Wait::Kind::relief, {PeerId{2}, PeerId{3}}}),
            "peers 2, 3 are slow: others reduce the rest of their shares");
}

TEST(Wait, tells_what_is_known_of_an_address_that_does_not_answer) {
  Wait wait{.kind = Wait::Kind::answer};
  wait.unanswered = {"127.0.0.1:7100", "Connection refused", 5};
  wait.left = 25'600ms;
  EXPECT_EQ(text_of(wait),
            "waiting: no link to 127.0.0.1:7100: Connection refused, 5 attempts, gives up in 26 s");
  wait = {Wait::Kind::members, {PeerId{1}}};
  wait.unanswered = {"127.0.0.1:7100", {}, 1};
  EXPECT_EQ(text_of(wait),
            "waiting for peer 1: any member of the run to answer; no link to 127.0.0.1:7100, 1 attempt");
}

TEST(Wait, goes_on_while_its_numbers_change_and_begins_anew_with_other_peers) {
  const Wait before{Wait::Kind::segments, {PeerId{1}}, 7, 0, 3, 8},
      later{Wait::Kind::segments, {PeerId{1}}, 7, 0, 4, 8};
  EXPECT_TRUE(goes_on(before, later));
  EXPECT_FALSE(goes_on(before, {Wait::Kind::segments, {PeerId{2}}, 7}));
  EXPECT_FALSE(goes_on(before, {Wait::Kind::votes, {PeerId{1}}, 7}));
}

}  // namespace
}  // namespace tw::swarm
