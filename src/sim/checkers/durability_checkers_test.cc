// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/durability_checkers.h"

#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "sim/checkers/test_story.h"
#include "sim/virtual/files.h"
#include "sync/checkpoint.h"

namespace tw::sim {
namespace {

using world::Phase;

const std::vector<float> kState(40, 0.5F);

/// A disk with the checkpoint of round 1 (and of round 2) of a story.
struct Disk {
  Disk() : j(rules()) {
    const wire::Record zero = j.story.genesis();
    one = j.story.next(zero, {1, 1});
    two = j.story.next(one, {2, 2});
    for (const wire::Record& record : {one, two})
      j.checker.on_applied({kAnn, record, digest_of(record), parameters()});
  }

  static Rules rules() {
    Rules rules = kRules;
    rules.checkpoint_folder = rules.checkpoint_copies = "saved";
    return rules;
  }

  static Digest parameters() { return digest_of_parameters(kState); }

  void save(const wire::Record& record, const std::vector<float>& state = kState,
            const std::string& writer = "11") {
    const std::span<const float> part(state);
    sync::CheckpointStore store(files, {"saved", 2, writer});
    ASSERT_TRUE(store.save(sync::freeze(record, {&part, 1}, 64)).ok());
  }

  void says(Round round, const std::string& why = {}) { tells<event::Checkpoint>(round, why); }

  void copied(Round round, const std::string& why = {}) { tells<event::Copy>(round, why); }

  template <class Kind>
  void tells(Round round, const std::string& why) {
    Kind told{.digest = to_string(digest_of(round == 1 ? one : two))};
    if (!why.empty()) told.cause = event::Cause::failed;
    j.checker.on_event(kAnn, {.round = round, .why = why, .fact = std::move(told)});
  }

  std::string verdict_of_store() {
    j.checker.on_store(files);
    return j.story.verdict();
  }

  std::string verdict() {
    j.checker.on_disk(kAnn, files);
    j.checker.on_end({});
    return j.story.verdict();
  }

  Judged<CheckpointsLast> j;
  VirtualFiles files;
  wire::Record one, two;
};

TEST(I7, accepts_the_last_durable_checkpoint_and_one_that_is_newer_than_the_log_says) {
  Disk disk;
  disk.save(disk.one);
  disk.says(1);
  disk.says(2, "no space left");
  EXPECT_EQ(disk.verdict(), "");
  disk.save(disk.two);
  EXPECT_EQ(disk.verdict(), "");
}

TEST(I7, fires_when_what_was_durable_does_not_load) {
  Disk older;
  older.save(older.one);
  older.says(2);
  EXPECT_NE(older.verdict().find("round 2 was durable on the disk of peer 11, but that of round 1 loads"),
            std::string::npos);
  Disk empty;
  empty.says(1);
  EXPECT_NE(empty.verdict().find("but there is none"), std::string::npos);
}

TEST(I7, demands_of_the_store_the_newest_copy_that_any_log_tells) {
  Disk disk;
  disk.copied(1);
  EXPECT_EQ(disk.verdict_of_store(), "the checkpoint of round 1 was copied to the store, but there is none");
  Disk older;
  older.save(older.one);
  older.copied(1);
  older.copied(2, "the store does not answer");
  EXPECT_EQ(older.verdict_of_store(), "");
  older.copied(2);
  EXPECT_EQ(older.verdict_of_store(),
            "the checkpoint of round 2 was copied to the store, but that of round 1 loads");
}

TEST(I7, does_not_excuse_a_disk_whose_peer_was_only_killed) {
  Disk disk;
  disk.says(1);
  disk.j.checker.on_strike({FaultKind::kill, {kAnn}, {}});
  EXPECT_NE(disk.verdict(), "");
}

TEST(I7, excuses_a_disk_that_was_damaged_but_never_torn_content) {
  Disk disk;
  disk.save(disk.one);
  disk.says(2);
  disk.j.checker.on_disk(kAnn, disk.files);
  disk.j.checker.on_strike({FaultKind::lost_fsync, {kAnn}, {}});
  EXPECT_EQ(disk.verdict(), "") << "although the strike was told after the disk was seen";
  std::vector<float> torn = kState;
  torn[3] = 7;
  disk.save(disk.two, torn);
  EXPECT_NE(disk.verdict().find("holds a state that nobody had"), std::string::npos);
}

/// Its process ends and comes back, and the run begins anew from this record.
std::string verdict_when_resumed_from(Disk& disk, const wire::Record& record) {
  disk.j.checker.on_disk(kAnn, disk.files);
  disk.j.checker.on_event(kAnn,
                          {.round = record.round, .fact = event::Restore{.cause = event::Cause::checkpoint}});
  wire::Record anew = record;
  anew.parent = digest_of(record);
  disk.j.apply(kAnn, anew, Disk::parameters(), true);
  return disk.j.story.verdict();
}

TEST(I7, demands_that_a_run_resumes_what_most_had_and_not_the_history_with_most_rounds) {
  Disk disk;
  wire::Record alone = disk.one;
  for (int i = 0; i < 3; ++i) alone = disk.j.story.next(alone, {3, 3}, true);
  disk.j.apply(kAnn, alone, Disk::parameters());
  disk.save(disk.two);
  disk.save(alone, kState, "12");
  EXPECT_EQ(verdict_when_resumed_from(disk, disk.two), "");
  EXPECT_NE(verdict_when_resumed_from(disk, alone).find("of round 2, which goes before"), std::string::npos);
}

TEST(I7, demands_the_newest_checkpoint_on_any_disk_after_a_loss_of_all) {
  const auto verdict = [](std::optional<FaultKind> before) {
    Disk ann, bob;
    ann.save(ann.one);
    bob.save(bob.two);
    if (before) ann.j.checker.on_strike({*before, {kBob}, {}});
    ann.j.checker.on_strike({FaultKind::loss_of_all, {kAnn, kBob}, {}});
    ann.j.checker.on_disk(kBob, bob.files);
    return verdict_when_resumed_from(ann, ann.one);
  };
  EXPECT_NE(verdict({}).find("though the disk of peer 12 holds round 2, which goes before"),
            std::string::npos);
  EXPECT_NE(verdict(FaultKind::kill), "");
  EXPECT_EQ(verdict(FaultKind::partition), "") << "it may not reach the others";
  EXPECT_EQ(verdict(FaultKind::bit_flip), "") << "that disk is damaged";
}

using Preempted = Judged<CheapPreemption>;

world::Event reissue(double at_s, PeerId payer, Round round = 1) {
  return {Preempted::at(at_s), round, payer, "3-4", event::Reissue{}};
}

TEST(I9, accepts_what_is_given_out_again_of_a_victim_and_fires_when_another_pays) {
  Preempted j;
  j.checker.on_strike({FaultKind::preempt_0s, {kBob}, j.at(1)});
  j.checker.on_event(kAnn, reissue(2, kBob));
  EXPECT_EQ(j.story.verdict(), "");
  j.checker.on_event(kAnn, reissue(2, kEve));
  EXPECT_NE(j.story.verdict().find("of peer 13 are given out again, though nothing struck it"),
            std::string::npos);
}

TEST(I9, knows_that_one_of_two_processes_of_an_id_missed_a_decision) {
  Rules rules = kRules;
  rules.mode = train::Mode::delayed;
  const auto verdict = [&](Round missed) {
    Preempted j(rules);
    j.checker.on_twin_event(kBob, {.at = j.at(1), .round = missed, .fact = event::Restore{}});
    j.checker.on_event(kAnn, reissue(2, kBob, 3));
    return j.story.verdict();
  };
  EXPECT_EQ(verdict(2), "");
  EXPECT_NE(verdict(1), "");
}

TEST(I9, is_silent_about_the_round_in_which_something_else_struck_however_long_it_takes) {
  Preempted j;
  j.commit(kAnn, j.story.genesis());
  j.checker.on_strike({FaultKind::wrong_length, {kBob}, j.at(1), std::chrono::seconds(2)});
  j.look({kAnn, kBob}, 1, 60);
  j.checker.on_event(kAnn, reissue(60, kEve, 1));
  EXPECT_EQ(j.story.verdict(), "");
  j.checker.on_event(kAnn, reissue(60, kEve, 2));
  EXPECT_NE(j.story.verdict().find("though nothing struck it"), std::string::npos);
}

TEST(I9, fires_when_a_decided_round_is_given_out_again) {
  Preempted j;
  j.commit(kAnn, j.story.next(j.story.genesis(), {1, 1}));
  j.checker.on_strike({FaultKind::kill, {kBob}, j.at(1)});
  j.checker.on_event(kAnn, reissue(2, kBob, 2));
  EXPECT_EQ(j.story.verdict(), "");
  j.checker.on_event(kAnn, reissue(2, kBob, 1));
  EXPECT_NE(j.story.verdict().find("though the round is decided"), std::string::npos);
}

TEST(I9, excuses_what_follows_from_a_broken_network_until_some_time_after_it) {
  Preempted j;
  j.checker.on_strike({FaultKind::partition, {kBob}, j.at(1), std::chrono::seconds(5)});
  j.look({kAnn}, 1, 20);
  j.checker.on_event(kAnn, reissue(7, kEve));
  EXPECT_EQ(j.story.verdict(), "") << "14 s after the partition: its aftermath";
  j.look({kAnn}, 20, 60);
  j.checker.on_event(kAnn, reissue(7, kEve, 2));
  EXPECT_NE(j.story.verdict(), "") << "the clock of a peer may be wrong";
}

TEST(I9, excuses_nothing_that_comes_some_time_after_the_world_became_calm) {
  Preempted j;
  j.checker.on_strike({FaultKind::partition, {kBob}, j.at(1)});
  j.look({kAnn}, 1, 100);
  j.checker.on_event(kAnn, reissue(100, kEve));
  EXPECT_EQ(j.story.verdict(), "") << "it lasts until the calm";
  j.checker.on_calm(j.at(100));
  j.look({kAnn}, 100, 120);
  j.checker.on_event(kAnn, reissue(120, kEve, 2));
  EXPECT_NE(j.story.verdict(), "");
}

TEST(I9, excuses_a_leader_that_was_struck_itself_and_a_peer_whose_gradient_was_refused) {
  Preempted struck;
  struck.checker.on_strike({FaultKind::kill, {kAnn}, struck.at(1)});
  struck.checker.on_event(kAnn, reissue(2, kBob));
  EXPECT_EQ(struck.story.verdict(), "");
  Preempted refused;
  refused.checker.on_event(
      kAnn, {{}, 1, kBob, "its gradient is not finite", event::Lost{.cause = event::Cause::verdict}});
  refused.checker.on_event(kAnn, reissue(2, kBob));
  EXPECT_EQ(refused.story.verdict(), "");
}

TEST(I9, asks_nothing_of_a_notice_in_which_neither_a_round_nor_a_hand_over_fits) {
  for (const auto& [round_s, handover_s, excused] :
       {std::tuple(16, 31, true), {16, 29, false}, {14, 31, false}}) {
    Rules rules = kRules;
    rules.round_time = std::chrono::seconds(round_s);
    rules.handover_time = std::chrono::seconds(handover_s);
    Preempted j(rules);
    j.checker.on_strike({FaultKind::preempt_30s, {kBob}, j.at(1)});
    j.look({kAnn, kBob}, 1, 40);
    EXPECT_EQ(j.checker.violations().empty(), excused) << round_s << ", " << handover_s;
  }
}

TEST(I9, asks_of_a_notice_that_nothing_is_given_out_again_and_the_victim_goes_in_time) {
  Preempted j;
  j.checker.on_strike({FaultKind::preempt_30s, {kBob}, j.at(1)});
  j.look({kAnn, kBob}, 1, 30);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kAnn, kBob}, 30, 32);
  EXPECT_EQ(j.story.verdict(), "peer 12 had notice and has not gone when it ended");

  Preempted wasteful;
  wasteful.checker.on_strike({FaultKind::preempt_30s, {kBob}, j.at(1)});
  wasteful.checker.on_event(kAnn, reissue(2, kBob));
  EXPECT_NE(wasteful.story.verdict().find("though it had notice"), std::string::npos);
}

TEST(I9, is_silent_when_the_victim_of_a_notice_goes_in_time_or_meets_another_fault) {
  Preempted j;
  j.checker.on_strike({FaultKind::preempt_30s, {kBob}, j.at(1)});
  Survivor gone = finished(kBob);
  gone.now = j.at(20);
  j.checker.on_look(gone);
  j.look({kAnn}, 20, 60);
  j.checker.on_strike({FaultKind::preempt_120s, {kEve}, j.at(60)});
  j.checker.on_strike({FaultKind::kill, {kEve}, j.at(70)});
  j.checker.on_event(kAnn, reissue(71, kEve));
  j.look({kAnn}, 70, 200);
  EXPECT_EQ(j.story.verdict(), "");
}

struct Logged {
  Logged() {
    one = story.next(story.genesis(), {1, 1});
    checker.on_event(kAnn, {.fact = event::Start{}});
  }

  void says(Phase phase, Round round, const Digest& digest) {
    world::Fact fact = world::fact_of(phase);
    for (std::string* told :
         {member<event::Commit>(fact), member<event::Apply>(fact), member<event::Restore>(fact)})
      if (told != nullptr) *told = to_string(digest);
    checker.on_event(kAnn, {.round = round, .fact = std::move(fact)});
  }

  template <class Kind>
  static std::string* member(world::Fact& fact) {
    auto* found = std::get_if<Kind>(&fact);
    return found ? &found->digest : nullptr;
  }

  void ends_at(Round round) {
    Survivor ann = finished(kAnn);
    ann.view.round = round;
    checker.on_end({&ann, 1});
  }

  LogReplays checker;
  Story story{checker};
  wire::Record one;
};

TEST(I11, accepts_a_log_that_tells_what_was_done) {
  Logged l;
  l.story.apply(kAnn, l.story.genesis(), {1, 1});
  l.says(Phase::commit, 1, digest_of(l.one));
  l.story.commit(kAnn, l.one);
  l.says(Phase::apply, 1, {2, 2});
  l.story.apply(kAnn, l.one, {2, 2});
  l.ends_at(1);
  EXPECT_EQ(l.story.verdict(), "");
}

TEST(I11, begins_anew_with_each_process) {
  Logged l;
  l.says(Phase::commit, 1, digest_of(l.one));  // killed before it could do what it said
  l.checker.on_event(kAnn, {.fact = event::Start{}});
  l.ends_at(0);
  EXPECT_EQ(l.story.verdict(), "");
}

TEST(I11, fires_when_the_log_is_silent_tells_otherwise_or_tells_too_much) {
  Logged silent;
  silent.story.commit(kAnn, silent.one);
  EXPECT_NE(silent.story.verdict().find("the log of peer 11 says: nothing; it was: commit of round 1"),
            std::string::npos);

  Logged otherwise;
  otherwise.says(Phase::apply, 1, {2, 3});
  otherwise.story.apply(kAnn, otherwise.one, {2, 2});
  EXPECT_EQ(otherwise.checker.violations().size(), 1U);

  Logged boasting;
  boasting.says(Phase::commit, 1, digest_of(boasting.one));
  boasting.ends_at(1);
  EXPECT_NE(boasting.story.verdict().find("which it did not"), std::string::npos);
}

TEST(I11, fires_when_the_log_leads_to_another_round_than_the_peer_shows) {
  Logged l;
  l.says(Phase::restore, 1, {2, 2});
  l.story.apply(kAnn, l.one, {2, 2}, true);
  l.ends_at(2);
  EXPECT_EQ(l.story.verdict(), "peer 11 ended at round 2, its log at round 1");
}

TEST(I11, knows_that_a_peer_shows_the_head_it_had_while_it_catches_up) {
  Logged l;
  l.checker.on_event(kAnn, {{}, 0, {}, "round 1 was decided without this peer", event::Restore{}});
  l.says(Phase::restore, 1, {2, 2});
  l.story.apply(kAnn, l.one, {2, 2}, true);
  l.ends_at(0);
  l.ends_at(9);
  EXPECT_EQ(l.story.verdict(), "") << "it may give up a history that is longer";
  l.checker.on_event(kAnn, {.round = 2, .fact = event::Accumulate{}});
  l.ends_at(0);
  EXPECT_EQ(l.checker.violations().size(), 1U);
}

TEST(I11, knows_that_a_leaver_ends_with_the_record_that_lets_it_go) {
  Logged l;
  l.says(Phase::restore, 1, {2, 2});
  l.story.apply(kAnn, l.one, {2, 2}, true);
  l.checker.on_event(kAnn, {.round = 2, .peer = kAnn, .fact = event::Leave{}});
  l.ends_at(2);
  EXPECT_EQ(l.story.verdict(), "");
}

TEST(I11, knows_that_a_busy_peer_applies_after_it_has_committed_later_rounds) {
  Logged l;
  const wire::Record two = l.story.next(l.one, {2, 2});
  l.says(Phase::commit, 1, digest_of(l.one));
  l.story.commit(kAnn, l.one);
  l.says(Phase::commit, 2, digest_of(two));
  l.story.commit(kAnn, two);
  l.says(Phase::apply, 1, {2, 2});
  l.story.apply(kAnn, l.one, {2, 2});
  l.ends_at(2);
  EXPECT_EQ(l.story.verdict(), "");
}

TEST(I12, fires_once_for_a_peer_that_holds_more_than_its_bound) {
  BoundedMemory checker;
  checker.on_look({kAnn, {}, {}, {}, 100, 100});
  checker.on_look({kAnn, {}, {}, {}, 100, 0});
  EXPECT_TRUE(checker.violations().empty());
  checker.on_look({kAnn, {}, {}, {}, 101, 100});
  checker.on_look({kAnn, {}, {}, {}, 102, 100});
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(I12, fires_for_a_peer_that_keeps_a_third_mean) {
  BoundedMemory checker;
  Survivor ann{kAnn, {}, {}, {}, 0, 0};
  ann.view.waiting_updates = 2;
  checker.on_look(ann);
  EXPECT_TRUE(checker.violations().empty());
  ann.view.waiting_updates = 3;
  checker.on_look(ann);
  EXPECT_EQ(checker.violations().size(), 1U);
}

}  // namespace
}  // namespace tw::sim
