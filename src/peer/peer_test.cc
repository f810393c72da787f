// SPDX-License-Identifier: Apache-2.0
#include "peer/peer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "host/executor_thread.h"
#include "host/identity/authority.h"
#include "monitor/logs/test_logs.h"
#include "train/learn/test_learner.h"

namespace tw::peer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using train::Ending;

constexpr Duration kSoon = 20s;

/// Four floats that every sample pushes a little.
class FourFloats final : public train::Model {
 public:
  std::vector<std::uint64_t> tensor_sizes() const override { return {4}; }

  void initial_parameters(std::span<float> out) override { std::fill(out.begin(), out.end(), 1.0F); }

  train::WorkDone work(std::span<const float>, const swarm::WorkItem& item, std::span<float> sum) override {
    const std::uint64_t samples = item.samples.count();
    for (float& value : sum) value += static_cast<float>(samples);
    return {item.microbatches.count(), samples, 1};
  }
};

class SeenEvents final : public world::EventSink {
 public:
  void emit(const world::Event& event) override { events.push_back(event); }

  bool has(world::Phase phase) const {
    return std::ranges::any_of(events, [&](const world::Event& event) { return event.phase() == phase; });
  }

  std::vector<world::Event> events;
};

train::RunOptions small_run(Round rounds) {
  train::RunOptions run;
  run.model = "small";
  run.batch.size = 8;
  run.microbatch = 4;
  run.rounds = rounds;
  run.optimizer.kind = train::OptimizerKind::sgd;
  return run;
}

/// A front: it hears, and stops the loop when its peer is over.
class Process {
 public:
  Process(host::Loop& loop, Options options)
      : loop_(loop), compute_(loop, {}), peer(loop, compute_, std::move(options), front(), trainer_) {}

  Process(host::Loop& loop, Options options, std::unique_ptr<train::Learner> learner)
      : loop_(loop),
        compute_(loop, {}),
        peer(loop, compute_, std::move(options), front(), std::move(learner)) {}

  bool runs_until_over() {
    return loop_.run_until([this] { return over > 0; }, kSoon);
  }

  bool runs_until_round(Round round) {
    return loop_.run_until([this, round] { return peer.view().round >= round; }, kSoon);
  }

  std::vector<std::string> warnings() const {
    std::vector<std::string> lines;
    for (const world::Event& event : shown.events)
      if (event.phase() == world::Phase::warn) lines.push_back(event.why);
    return lines;
  }

  SeenEvents shown;
  int over = 0;

 private:
  Front front() {
    return {.shown = &shown, .over = [this] { ++over; }};
  }

  FourFloats trainer_;
  host::Loop& loop_;
  host::ThreadExecutor compute_;

 public:
  Peer peer;
};

class APeer : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tw-peer-" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  Options options(const LinkOptions& given, Round rounds) const {
    auto read = read_links(given, Spelling::python);
    EXPECT_TRUE(read) << read.error().message;
    read.value().session.run = small_run(rounds);
    return std::move(read).value();
  }

  std::vector<monitor::LogEntry> log_of(const Process& process) const {
    const auto log =
        monitor::read_event_log(folder_ + "/" + monitor::event_log_name(process.peer.options().session.self));
    EXPECT_TRUE(log) << log.error().message;
    return log ? log.value() : std::vector<monitor::LogEntry>{};
  }

  std::string folder_;
  host::Loop loop_;
};

TEST_F(APeer, takes_part_until_the_run_is_over_and_logs_all_that_it_shows) {
  Process process(loop_, options({.out = folder_}, 3));
  const auto address = process.peer.start();
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_THAT(address.value(), HasSubstr("127.0.0.1:"));
  EXPECT_FALSE(process.peer.finished());
  EXPECT_EQ(process.over, 0) << "never from inside start()";
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_TRUE(process.peer.finished());
  EXPECT_EQ(process.peer.view().failure, "");
  EXPECT_EQ(process.peer.view().round, 3U);
  process.peer.farewell();
  EXPECT_EQ(process.warnings(), std::vector<std::string>());

  const auto log = log_of(process);
  ASSERT_EQ(log.size(), process.shown.events.size());
  for (std::size_t i = 0; i < log.size(); ++i)
    EXPECT_EQ(log[i].event.phase(), process.shown.events[i].phase()) << i;
  ASSERT_TRUE(log.front().event.as<event::Start>());
  EXPECT_FALSE(log.front().event.as<event::Start>()->insecure);
  const auto commit = std::ranges::find(log, world::Phase::commit,
                                        [](const monitor::LogEntry& e) { return e.event.phase(); });
  ASSERT_NE(commit, log.end());
  EXPECT_GT(use_in(commit->event)->cpu_s.value_or(0), 0);
  const world::Event& stop = log.back().event;
  EXPECT_EQ(stop.phase(), world::Phase::stop);
  EXPECT_EQ(stop.round, 3U);
  EXPECT_EQ(stop.why, process.peer.view().ended);
}

/// What a peer that is not as expected says of itself.
std::string told(const Process& process) {
  const monitor::Board board = process.peer.live().journal().board();
  std::string text = "round " + std::to_string(process.peer.view().round) + ", " +
                     std::to_string(process.shown.events.size()) + " events, failure '" +
                     process.peer.view().failure + "', " + std::to_string(board.links.size()) + " links";
  for (const monitor::BoardPeer& peer : board.peers)
    text += "\n  " + to_string(peer.peer) + ": " + std::to_string(peer.samples) + " samples, " +
            (peer.usd_per_h ? "price known" : "no price") + ", ended '" + peer.ended + "'";
  for (const std::string& line : process.warnings()) text += "\n  " + line;
  const std::size_t all = process.shown.events.size();
  for (std::size_t i = all - std::min<std::size_t>(all, 12); i < all; ++i)
    text += "\n  " + monitor::to_json_line({process.peer.options().session.self, 0, process.shown.events[i]});
  return text;
}

TEST_F(APeer, joins_another_one_with_the_token_of_the_run) {
  const std::string token = to_text(host::token_for_one_run("words", 3600));
  Process first(loop_, options({.wait_for = "2", .token = token}, 5));
  const auto address = first.peer.start();
  ASSERT_TRUE(address) << address.error().message;
  Process second(loop_, options({.join = {address.value()}, .token = token}, 5));
  ASSERT_TRUE(second.peer.start());
  const auto both = [&] { return first.over > 0 && second.over > 0; };
  if (!loop_.run_until(both, kSoon)) FAIL() << told(first) << "\n" << told(second);
  for (Process* process : {&first, &second}) {
    EXPECT_EQ(process->peer.view().failure, "");
    EXPECT_EQ(process->peer.view().round, 5U);
    process->peer.farewell();
  }
}

const monitor::BoardPeer* find(const monitor::Board& board, PeerId id) {
  const auto found = std::ranges::find(board.peers, id, &monitor::BoardPeer::peer);
  return found == board.peers.end() ? nullptr : &*found;
}

TEST_F(APeer, shows_every_peer_of_the_run_and_what_it_costs) {
  const std::string token = to_text(host::token_for_one_run("words", 3600));
  Process first(loop_, options({.wait_for = "2", .token = token, .usd_per_h = "2"}, 1'000'000));
  const auto address = first.peer.start();
  ASSERT_TRUE(address) << address.error().message;
  Process second(
      loop_,
      options({.join = {address.value()}, .site = "aws:us-east-1:a", .token = token, .usd_per_h = "0.5"},
              1'000'000));
  ASSERT_TRUE(second.peer.start());
  const PeerId other = second.peer.options().session.self;
  // Either may compute all of these tiny rounds: the leader is faster than a word through a socket.
  const auto seen = [&] {
    const monitor::Board board = first.peer.live().journal().board();
    const monitor::BoardPeer* peer = find(board, other);
    const auto samples = [](const monitor::BoardPeer& one) { return one.samples > 0; };
    return peer != nullptr && peer->usd_per_h && std::ranges::any_of(board.peers, samples) &&
           board.identical == true && !board.links.empty();
  };
  if (!loop_.run_until(seen, kSoon)) FAIL() << told(first) << "\n" << told(second);
  const monitor::Board board = first.peer.live().journal().board();
  ASSERT_EQ(board.peers.size(), 2U);
  const monitor::BoardPeer& peer = *find(board, other);
  EXPECT_EQ(peer.site, "aws:us-east-1:a");
  EXPECT_EQ(peer.usd_per_h, 0.5);
  EXPECT_THAT(peer.hardware, HasSubstr("core"));
  EXPECT_GT(peer.usage.hours, 0);
  EXPECT_EQ(peer.ended, "");
  EXPECT_EQ(board.identical, true);
  EXPECT_NEAR(board.money.usd_per_h.value_or(0), 2.5, 0.5) << "and what the traffic costs";
  EXPECT_EQ(board.last_round, 1'000'000U);
}

TEST_F(APeer, ends_the_run_when_its_budget_is_spent) {
  Options given = options({.usd_per_h = "100000"}, 1'000'000);  // 28 USD a second
  given.session.run.budget = {.usd = 20, .action = train::BudgetAction::drain};
  Process process(loop_, std::move(given));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_EQ(process.peer.ending(), Ending::complete);
  ASSERT_EQ(process.warnings().size(), 1U);
  EXPECT_THAT(process.warnings()[0],
              HasSubstr("all of its budget of 20.00 USD, and ends with the round under way"));
  const auto told = std::ranges::find(process.shown.events, world::Phase::budget, &world::Event::phase);
  ASSERT_NE(told, process.shown.events.end());
  EXPECT_GE(told->as<event::Budget>()->usd.value_or(0), 20);
  const monitor::Board board = process.peer.live().journal().board();
  EXPECT_FALSE(board.complete);
  EXPECT_EQ(board.ended, "its budget is spent");
  EXPECT_EQ(process.peer.view().ended, "the run is over: its budget is spent");
}

TEST_F(APeer, trains_only_once_what_its_budget_paid_for_in_the_usual_folder_too) {
  const auto with_budget = [&](double usd) {
    Options given = options({.usd_per_h = "100000"}, 1'000'000);
    train::RunOptions& run = given.session.run;
    run.checkpoint = {.folder = folder_ + "/usual", .every = 1'000'000, .is_usual = true};
    run.budget = {.usd = usd, .action = train::BudgetAction::drain};
    run.patience = 100ms;
    return given;
  };
  const auto first_round = [](const Process& process) {
    const auto& events = process.shown.events;
    const auto begun = std::ranges::find(events, world::Phase::accumulate, &world::Event::phase);
    return begun == events.end() ? Round{} : begun->round;
  };
  Round last = 0;
  {
    Process process(loop_, with_budget(5));
    ASSERT_TRUE(process.peer.start());
    ASSERT_TRUE(process.runs_until_over());
    last = process.peer.view().round;
  }
  {
    Process again(loop_, with_budget(5));
    ASSERT_TRUE(again.peer.start());
    ASSERT_TRUE(again.runs_until_over());
    EXPECT_EQ(again.peer.ending(), Ending::complete);
    EXPECT_EQ(first_round(again), 0U);
    EXPECT_THAT(again.peer.view().ended,
                HasSubstr(fmt::format(
                    "its budget was spent, or a program ended it, in round {} of 1000000, checkpoint "
                    "{}/usual/round-",
                    last, folder_)));
    EXPECT_THAT(again.peer.view().ended, HasSubstr("; raise budget_usd, or rounds, to go on"));
  }
  Process raised(loop_, with_budget(10));
  ASSERT_TRUE(raised.peer.start());
  ASSERT_TRUE(raised.runs_until_over());
  EXPECT_EQ(first_round(raised), last + 1);
}

TEST_F(APeer, only_warns_of_a_budget_unless_it_is_to_drain) {
  Options given = options({.usd_per_h = "100000"}, 1'000'000);
  given.session.run.budget.usd = 20;
  Process process(loop_, std::move(given));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(loop_.run_until([&] { return !process.warnings().empty(); }, kSoon));
  const Round then = process.peer.view().round;
  EXPECT_TRUE(process.runs_until_round(then + 2));
  EXPECT_FALSE(process.peer.finished());
}

TEST_F(APeer, says_in_its_log_that_it_is_without_tls) {
  Process process(loop_, options({.out = folder_, .insecure = true}, 1));
  ASSERT_TRUE(process.peer.start());
  const auto log = log_of(process);
  ASSERT_FALSE(log.empty());
  ASSERT_TRUE(log.front().event.as<event::Start>());
  EXPECT_TRUE(log.front().event.as<event::Start>()->insecure);
}

TEST_F(APeer, has_all_of_its_log_where_checkpoints_are_copied_to_when_it_ends) {
  Options with_copies = options({.out = folder_}, 1'000'000);
  with_copies.session.run.checkpoint = {
      .folder = folder_ + "/own", .every = 1'000'000, .to = folder_ + "/away"};
  Process process(loop_, std::move(with_copies));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(2));
  process.peer.fail("training failed: no memory");
  process.peer.farewell();
  const auto copies = monitor::read_event_logs(folder_ + "/away");
  ASSERT_TRUE(copies) << copies.error().message;
  ASSERT_EQ(copies.value().size(), 1U);
  EXPECT_EQ(copies.value().front().size(), log_of(process).size());
  EXPECT_EQ(copies.value().front().back().event.phase(), world::Phase::stop);
  EXPECT_EQ(process.warnings(), std::vector<std::string>());
}

TEST_F(APeer, goes_on_and_says_once_that_its_log_is_not_copied) {
  Options with_copies = options({.out = folder_}, 1'000'000);
  std::filesystem::create_directories(folder_ + "/away");
  std::ofstream(folder_ + "/away/logs") << "a file";
  with_copies.session.run.checkpoint = {
      .folder = folder_ + "/own", .every = 1'000'000, .to = folder_ + "/away"};
  Process process(loop_, std::move(with_copies));
  ASSERT_TRUE(process.peer.start()) << "nobody needs the copies to begin";
  ASSERT_TRUE(loop_.run_until([&] { return process.shown.has(world::Phase::copy); }, kSoon));
  process.peer.leave();
  ASSERT_TRUE(process.runs_until_over());
  process.peer.farewell();
  const auto is_copy = [](const world::Event& event) { return event.phase() == world::Phase::copy; };
  EXPECT_EQ(std::ranges::count_if(process.shown.events, is_copy), 1);
  const auto told = std::ranges::find_if(process.shown.events, is_copy);
  EXPECT_EQ(told->as<event::Copy>()->cause, event::Cause::failed);
  EXPECT_THAT(told->why, HasSubstr("the event log is not copied to " + folder_ + "/away/logs"));
  EXPECT_EQ(log_of(process).back().event.phase(), world::Phase::stop);
  ASSERT_EQ(process.warnings().size(), 2U);
  EXPECT_EQ(process.warnings().front(), told->why);
  EXPECT_THAT(process.warnings().back(), HasSubstr("the end of the event log is not in "));
}

TEST_F(APeer, keeps_its_log_to_itself_where_the_run_says_so) {
  Options with_copies = options({.out = folder_}, 3);
  with_copies.session.run.checkpoint = {
      .folder = folder_ + "/own", .every = 1, .to = folder_ + "/away", .logs = false};
  Process process(loop_, std::move(with_copies));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_over());
  process.peer.farewell();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/away/logs"));
}

TEST_F(APeer, leaves_after_the_round_when_it_is_asked) {
  Process process(loop_, options({}, 1'000'000));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(2));
  process.peer.leave();
  EXPECT_EQ(process.over, 0);
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_TRUE(process.peer.finished());
  EXPECT_EQ(process.peer.view().failure, "");
  process.peer.farewell();
  EXPECT_EQ(process.shown.events.back().why, process.peer.view().ended);
}

TEST_F(APeer, that_leaves_last_copies_the_checkpoint_that_it_makes_then) {
  Options given = options({}, 1'000'000);
  given.session.anchor = true;
  given.session.run.checkpoint = {
      .folder = folder_ + "/own", .every = 1'000'000, .to = folder_ + "/away", .logs = false};
  Process process(loop_, std::move(given));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(2));
  process.peer.leave();
  ASSERT_TRUE(process.runs_until_over());
  process.peer.farewell();
  const auto copied = std::ranges::find_if(process.shown.events, [](const world::Event& event) {
    const auto* copy = event.as<event::Copy>();
    return copy && copy->cause == event::Cause::none;
  });
  ASSERT_NE(copied, process.shown.events.end());
  EXPECT_EQ(copied->round, process.peer.view().round);
  EXPECT_FALSE(std::filesystem::is_empty(folder_ + "/away"));
  EXPECT_TRUE(process.peer.finished_work());
}

TEST_F(APeer, that_is_asked_to_leave_before_it_begins_writes_nothing) {
  Process process(loop_, options({.out = folder_}, 1'000'000));
  process.peer.leave();
  const auto address = process.peer.start();
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().message, "does not join, because it was asked to leave");
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "others may train there";
}

TEST_F(APeer, ends_at_once_when_it_is_told_so) {
  Process process(loop_, options({}, 1'000'000));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(2));
  process.peer.leave_at_once();
  EXPECT_TRUE(process.peer.finished());
  ASSERT_TRUE(process.runs_until_over());
  process.peer.farewell();
  EXPECT_TRUE(process.shown.has(world::Phase::stop));
}

TEST_F(APeer, leaves_on_a_notice_and_says_so) {
  Process process(loop_, options({.out = folder_, .grace = "20s"}, 1'000'000));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(2));
  process.peer.take(spot::Signal::terminate);
  process.peer.take(spot::Signal::terminate);
  EXPECT_EQ(process.over, 0) << "twice within milliseconds is once";
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_EQ(process.peer.ending(), Ending::notice);
  process.peer.farewell();
  const auto log = log_of(process);
  const auto told =
      std::ranges::find(log, world::Phase::notice, [](const auto& e) { return e.event.phase(); });
  ASSERT_NE(told, log.end());
  const event::Notice& notice = *told->event.as<event::Notice>();
  EXPECT_EQ(notice.source, "signal");
  EXPECT_EQ(notice.cause, event::Cause::preempt);
  EXPECT_NEAR(notice.deadline_s.value_or(0), 20, 0.1);
  EXPECT_EQ(told->event.why, "SIGTERM");
}

TEST_F(APeer, that_a_person_interrupts_is_told_apart) {
  Process process(loop_, options({}, 1'000'000));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(1));
  process.peer.take(spot::Signal::interrupt);
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_EQ(process.peer.ending(), Ending::interrupted);
}

TEST_F(APeer, whose_run_is_complete_needs_nobody_any_more) {
  Process process(loop_, options({}, 3));
  ASSERT_TRUE(process.peer.start());
  process.peer.take(spot::Signal::user);
  ASSERT_TRUE(process.runs_until_over());
  const Ending ending = process.peer.ending();
  EXPECT_EQ(ending, process.peer.view().round == 3 ? Ending::complete : Ending::notice);
  Process other(loop_, options({}, 3));
  ASSERT_TRUE(other.peer.start());
  ASSERT_TRUE(other.runs_until_over());
  EXPECT_EQ(other.peer.ending(), Ending::complete);
}

TEST_F(APeer, does_not_join_on_a_machine_that_is_about_to_go) {
  std::filesystem::create_directories(folder_);
  const std::string file = folder_ + "/notice";
  std::ofstream(file) << "preempt 30 owner\n";
  Process process(loop_, options({.notices = "file:" + file}, 1'000'000));
  const auto address = process.peer.start();
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().message,
            "does not join, because this machine is about to go: file: preempt in 30 s (owner)");
  EXPECT_EQ(process.peer.ending(), Ending::notice);
}

TEST_F(APeer, joins_on_a_machine_that_may_go_and_leaves_when_its_file_says_so) {
  std::filesystem::create_directories(folder_);
  const std::string file = folder_ + "/notice";
  std::ofstream(file) << "at_risk\n";
  Process process(loop_, options({.notices = "file:" + file}, 1'000'000));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(1));
  EXPECT_EQ(process.peer.ending(), Ending::none);
  std::ofstream(file) << "maintenance 30\n";
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_EQ(process.peer.ending(), Ending::notice);
  process.peer.farewell();
}

TEST_F(APeer, ends_with_the_reason_when_its_process_fails) {
  Process process(loop_, options({.out = folder_}, 1'000'000));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(process.runs_until_round(1));
  process.peer.fail("training failed: no memory");
  ASSERT_TRUE(process.runs_until_over());
  EXPECT_TRUE(process.peer.finished());
  EXPECT_EQ(process.peer.view().failure, "training failed: no memory");
  process.peer.farewell();
  EXPECT_EQ(log_of(process).back().event.why, "training failed: no memory");
}

TEST_F(APeer, does_not_start_where_it_cannot_log_or_listen) {
  std::ofstream(folder_) << "a file";
  Process process(loop_, options({.out = folder_}, 1));
  const auto started = process.peer.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr(folder_));

  Process first(loop_, options({}, 1));
  const auto address = first.peer.start();
  ASSERT_TRUE(address);
  Process second(loop_, options({.listen = address.value(), .insecure = true}, 1));
  const auto taken = second.peer.start();
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("in use"));
}

TEST_F(APeer, trains_with_a_learner_from_elsewhere) {
  auto learner = std::make_unique<train::CountingLearner>();
  train::CountingLearner& jobs = *learner;
  Process process(loop_, options({}, 2), std::move(learner));
  ASSERT_TRUE(process.peer.start());
  ASSERT_TRUE(loop_.run_until(
      [&] {
        jobs.run_next();
        return process.over > 0;
      },
      kSoon));
  EXPECT_EQ(process.peer.view().failure, "");
  EXPECT_EQ(process.peer.view().round, 2U);
  EXPECT_THAT(jobs.given, testing::Contains("apply 2"));
}

}  // namespace
}  // namespace tw::peer
