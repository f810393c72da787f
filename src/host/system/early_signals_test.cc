// SPDX-License-Identifier: Apache-2.0
#include "host/system/early_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "host/loop.h"

namespace tw::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EarlySignals, are_kept_until_the_loop_takes_them) {
  constexpr int kBoth[] = {SIGUSR1, SIGUSR2};
  catch_early_signals(kBoth);
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  Loop loop;
  std::vector<int> signals;
  loop.on_signal([&](int signal) { signals.push_back(signal); }, {SIGUSR1, SIGUSR2});
  EXPECT_THAT(signals, IsEmpty()) << "not from inside of the call";
  EXPECT_TRUE(loop.run_until([&] { return !signals.empty(); }, std::chrono::seconds(20)));
  std::raise(SIGUSR2);
  EXPECT_TRUE(loop.run_until([&] { return signals.size() == 2; }, std::chrono::seconds(20)));
  EXPECT_THAT(signals, ElementsAre(SIGUSR1, SIGUSR2));
  EXPECT_THAT(take_early_signals(), IsEmpty());
}

TEST(EarlySignals, leave_a_hangup_that_nohup_ignores) {
  constexpr int kHangup[] = {SIGHUP};
  std::signal(SIGHUP, SIG_IGN);
  catch_early_signals(kHangup);
  std::raise(SIGHUP);
  EXPECT_TRUE(ignores(SIGHUP));
  std::signal(SIGHUP, SIG_DFL);
  EXPECT_FALSE(ignores(SIGHUP));
  EXPECT_THAT(take_early_signals(), IsEmpty());
  catch_early_signals(kHangup);
  std::raise(SIGHUP);
  EXPECT_THAT(take_early_signals(), ElementsAre(SIGHUP));
  std::signal(SIGHUP, SIG_DFL);
}

TEST(EarlySignals, of_a_person_who_repeats_it_end_the_process) {
  constexpr int kInterrupt[] = {SIGINT};
  EXPECT_EXIT(
      {
        catch_early_signals(kInterrupt);
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace tw::host
