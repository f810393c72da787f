// SPDX-License-Identifier: Apache-2.0
#include "e2e/siege.h"

#include <gtest/gtest.h>

#include "e2e/program.h"

namespace tw {
namespace {

/// A joiner that nobody answers gives up after 30 s. How long it takes on an idle machine is in
/// docs/security.md; here other tests may run beside this one, on the same cores as the strangers.
constexpr double kMostSeconds = 25;

class SiegeTest : public ProgramTest {
 protected:
  /// Until the siege has everything that it gets.
  static bool stands(const Siege& siege) {
    const bool dialed = wait_until([&] { return siege.dialed() >= 1000; });
    std::this_thread::sleep_for(2s);
    return dialed;
  }

  /// Seconds on the clock of this machine when a peer became a member at peer 1, from a time on; 0: it did
  /// not.
  double joined_at(std::uint64_t peer, double after) const {
    double joined = 0;
    wait_until([&] {
      for (const world::Event& event : events_of(1, world::Phase::join))
        if (event.peer == PeerId{peer} && seconds(event) >= after) joined = seconds(event);
      return joined > 0;
    });
    return joined;
  }

  static double seconds(const world::Event& event) { return to_seconds(event.at.time_since_epoch()); }

  static double now() { return to_seconds(std::chrono::steady_clock::now().time_since_epoch()); }

  void end(const std::vector<Program*>& programs) {
    for (const Program* program : programs) program->send(SIGTERM);
    for (Program* program : programs) EXPECT_EQ(program->wait(), kGoesOn) << program->output();
  }
};

TEST_F(SiegeTest, keeps_no_joiner_out_and_no_member_whose_links_broke) {
  const std::string run = write_run({.rounds = 100'000});
  Program first = peer(run, 1);
  const std::string address = address_of(1);
  ASSERT_TRUE(wait_for_round(1, 1));
  {
    const Siege siege(address, {.first_host = 1});  // the host of the joiner is one of theirs
    ASSERT_TRUE(stands(siege));
    Program second = peer(run, 2, {"join=" + address});
    ASSERT_FALSE(address_of(2).empty()) << second.output();
    const double started = seconds(events_of(2, world::Phase::start).front());
    const double joined = joined_at(2, started);
    ASSERT_GT(joined, 0) << first.output() << second.output();
    RecordProperty("join_s", std::to_string(joined - started));
    std::cerr << "joined after " << joined - started << " s\n";
    EXPECT_LT(joined - started, kMostSeconds);

    second.send(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return !events_of(1, world::Phase::lost).empty(); })) << first.output();
    std::this_thread::sleep_for(3s);
    const double goes_on = now();
    second.send(SIGCONT);
    const double back = joined_at(2, goes_on);
    ASSERT_GT(back, 0) << first.output() << second.output();
    std::cerr << "back after " << back - goes_on << " s, siege: " << siege.dialed() << " dials, "
              << siege.ended() << " ended\n";
    EXPECT_LT(back - goes_on, kMostSeconds);
    end({&second});
  }
  end({&first});
  std::size_t refusals = 0;
  for (const world::Event& event : events_of(1, world::Phase::refuse))
    refusals += event.as<event::Refuse>()->cause != event::Cause::none;
  std::cerr << "lines of refusals: " << refusals << "\n";
  const auto events = log_of(1);
  const double took = seconds(events.back().event) - seconds(events.front().event);
  EXPECT_LT(static_cast<double>(refusals), (took / 10 + 2) * 4) << "once in 10 s for each of few causes";
}

}  // namespace
}  // namespace tw
