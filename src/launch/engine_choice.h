// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/deployment.h"
#include "plan/advise/replan.h"

namespace tw::launch {

/// A machine of this group of a plan.
Machine machine_of(const plan::PlannedGroup& group);

/// Which engine starts which machines: what stands after --on of `tw up`, given once or several times. A
/// value.
class EngineChoice {
 public:
  /// texts: "ENGINE" for all machines that no other text names, or "WHICH=ENGINE" with owned, on-demand,
  /// spot, anchor, a provider or a site (gcp, aws:us-east-1, onprem:eu). The first that names a machine
  /// counts. An error names the text.
  static Result<EngineChoice> parse(const std::vector<std::string>& texts);

  /// All texts, with commas between them; parse({text()}) is the same choice.
  std::string text() const;

  /// Each once, in the order of the texts.
  std::vector<std::string> engines() const;

  bool has(std::string_view engine) const;

  bool is_empty() const { return rules_.empty(); }

  /// One engine for all machines: its settings need no name in front.
  bool is_one() const { return rules_.size() == 1 && rules_.front().which.empty(); }

  /// Empty: no text names this machine.
  const std::string& engine_of(const PeerJob& peer) const;

  /// KEY of a setting of this engine, as --with names it: "ssh.control", or "control" where it is the only
  /// one.
  std::string key_of(std::string_view engine, std::string_view key) const;

  /// The error of a text that names no machine of this plan.
  Status check(const std::vector<plan::PlannedGroup>& plan) const;

 private:
  struct Rule {
    std::string which;  ///< empty: all machines
    std::string engine;
  };

  std::vector<Rule> rules_;
};

}  // namespace tw::launch
