// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tw::monitor {

/// A checker's complaint about the run of one seed.
struct SimFailure {
  std::uint64_t seed = 0;
  std::string checker;
  std::string message;
};

/// Over all seeds: how often a kind of fault was drawn, and how often it did something.
struct SimFault {
  std::string name;
  int drawn = 0;
  int fired = 0;
};

/// What `tw sim` tells.
struct SimResults {
  std::uint64_t seeds = 0;           ///< that were run
  std::vector<SimFailure> failures;  ///< by seed
  std::uint64_t events = 0;          ///< calls of the virtual scheduler, of each seed once
  double events_per_s = 0;           ///< of real time, on all cores, second runs included
  double simulated_s = 0;            ///< virtual time, of each seed once
  std::vector<SimFault> faults;
  std::vector<std::pair<std::string, int>> rare;            ///< rarely taken branches: how often taken
  std::vector<std::pair<std::string, int>> kills_by_phase;  ///< last phase that the victim reached
};

/// Indented, with a line end. rare: [{"name", "taken"}]; kills_by_phase: {"gather": 12, ...}.
std::string to_json(const SimResults& results);

}  // namespace tw::monitor
