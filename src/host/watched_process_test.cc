// SPDX-License-Identifier: Apache-2.0
#include "host/watched_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "base/text/split.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr Instant kThen{1000s};

/// A process that waits to be ended.
struct WaitingProcess {
  pid_t number = 0;
  std::string name;

  WaitingProcess() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    number = fork();
    if (number == 0) {
      const std::string own = name_of_this_process();
      (void)!write(ends[1], own.data(), own.size());
      pause();
      _exit(0);
    }
    std::array<char, 200> text{};
    const ssize_t got = read(ends[0], text.data(), text.size());
    if (got > 0) name.assign(text.data(), static_cast<std::size_t>(got));
    for (const int end : ends) close(end);
  }

  ~WaitingProcess() { bury(); }

  /// Its parent has taken no note of it yet.
  void end() const {
    kill(number, SIGKILL);
    siginfo_t end{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(number), &end, WEXITED | WNOWAIT), 0);
  }

  void bury() {
    if (number == 0) return;
    kill(number, SIGKILL);
    waitpid(number, nullptr, 0);
    number = 0;
  }
};

TEST(WatchedProcess, is_missed_once_and_looked_for_once_a_second) {
  WaitingProcess process;
  const pid_t number = process.number;
  WatchedProcess watched(process.name);
  EXPECT_EQ(watched.take_end(kThen), std::nullopt);
  process.bury();
  EXPECT_EQ(watched.take_end(kThen + 999ms), std::nullopt);
  EXPECT_EQ(watched.take_end(kThen + 1s), number);
  EXPECT_EQ(watched.take_end(kThen + 5s), std::nullopt);
}

TEST(WatchedProcess, is_gone_when_it_has_ended_though_its_parent_takes_no_note_of_it) {
  const WaitingProcess process;
  WatchedProcess watched(process.name);
  EXPECT_EQ(watched.take_end(kThen), std::nullopt);
  process.end();
  EXPECT_EQ(watched.take_end(kThen + 1s), process.number);
}

TEST(WatchedProcess, is_gone_at_once_where_it_ended_before) {
  WaitingProcess process;
  const pid_t number = process.number;
  process.bury();
  EXPECT_EQ(WatchedProcess(process.name).take_end(kThen), number);
}

TEST(WatchedProcess, is_gone_where_another_one_has_its_number) {
  const std::vector<std::string> own = split(name_of_this_process(), ':');
  ASSERT_EQ(own.size(), 3U);
  EXPECT_EQ(WatchedProcess(name_of_this_process()).take_end(kThen), std::nullopt);
  EXPECT_EQ(WatchedProcess(fmt::format("{}:1{}:{}", own[0], own[1], own[2])).take_end(kThen), getpid());
}

TEST(WatchedProcess, is_nobody_in_another_namespace_or_where_its_name_is_none) {
  WaitingProcess process;
  const std::vector<std::string> parts = split(process.name, ':');
  ASSERT_EQ(parts.size(), 3U);
  process.bury();
  for (const std::string& name :
       {fmt::format("{}:{}:1{}", parts[0], parts[1], parts[2]), fmt::format("{}:{}:", parts[0], parts[1]),
        fmt::format("0:{}:{}", parts[1], parts[2]), fmt::format("-1:{}:{}", parts[1], parts[2]),
        fmt::format("{}:x:{}", parts[0], parts[2]), fmt::format("{}x:{}:{}", parts[0], parts[1], parts[2]),
        process.name + ":1", parts[0], std::string(), std::string("99999999999999999999:1:1")})
    EXPECT_EQ(WatchedProcess(name).take_end(kThen), std::nullopt) << name;
}

}  // namespace
}  // namespace tw::host
