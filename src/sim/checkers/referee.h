// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/blob.h"
#include "base/digest.h"
#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// The checkers of one world, and what they judge by: all records that were decided or proposed.
class Referee {
 public:
  /// names: of checker_names(); empty: all.
  Referee(const Rules& rules, const std::vector<std::string>& names);
  Referee(const Referee&) = delete;
  Referee& operator=(const Referee&) = delete;

  /// Calls each checker.
  void tell(const auto& call) {
    for (const auto& checker : checkers_) call(*checker);
  }

  void struck(const Strike& strike) {
    tell([&](Checker& checker) { checker.on_strike(strike); });
  }

  /// A message as its session sent it. Plans are remembered.
  void on_sent(const Frame& frame);

  void found(Violation violation) { own_.push_back(std::move(violation)); }

  std::vector<Violation> violations() const;

  /// Records that were proposed but not decided (as far as anybody knows) for the round after the newest.
  std::vector<wire::Record> open_drafts() const;

  Ledger& ledger() { return ledger_; }

  const Ledger& ledger() const { return ledger_; }

 private:
  Ledger ledger_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  std::map<Digest, wire::Record> drafts_;
  std::vector<Violation> own_;  ///< that are no checker's
};

}  // namespace tw::sim
