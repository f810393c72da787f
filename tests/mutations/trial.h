// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace tw {

/// A row of mutations.txt.
struct Bug {
  std::uint32_t number = 0;  ///< 0: no bug at all
  std::string name;
  std::string scenario;
  std::string test;  ///< by its full name; where the scenario is kUnit
  std::string text;
};

enum class Outcome {
  survived,  ///< no checker saw it
  found,
  crashed,  ///< by something that is no check of ours: the bug is not one that a checker could judge
};

struct Finding {
  Bug bug;
  Outcome outcome = Outcome::survived;
  std::uint64_t seeds = 0;  ///< up to the one that shows it, which is seeds - 1
  std::string checker;      ///< I1 ...; "TW_CHECK" for a broken invariant, "endless" for a seed without end
  std::string message;
  double cpu_s = 0;
  std::map<std::string, std::uint64_t> broken;  ///< without a bug: how many seeds broke each law
};

/// Named as the scenario of a bug: every order of events within bounds (tests/explorer) instead of seeds.
inline constexpr const char* kExplorer = "explorer";

/// Named as the scenario of a bug: a unit test that passes without the bug must fail with it.
inline constexpr const char* kUnit = "unit";

/// A process that runs seeds 0, 1, 2 ... with a bug switched on until a checker sees it; without one, all
/// seeds.
class Trial {
 public:
  /// `noise`: the share of seeds that break a law without any bug. Such a law counts only while fewer than
  /// kNoise of them are to be expected up to this seed.
  Trial(Bug bug, std::uint64_t seeds, const std::map<std::string, double>& noise = {});

  static constexpr double kNoise = 0.1;

  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// What it tells comes from here.
  int descriptor() const { return pipe_; }

  /// The descriptor can be read: false once the process has ended.
  bool read();

  /// Once it has ended.
  Finding finding();

 private:
  Bug bug_;
  pid_t process_ = -1;
  int pipe_ = -1;
  std::string told_;
};

}  // namespace tw
