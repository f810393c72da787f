// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "plan/advise/spot_policy.h"

namespace tw::launch {

/// A user's own spot policy: a program that reads one line of JSON for each decision and answers with one
/// (docs/planner.md). It is started once, and ends when its input ends.
class PolicyProgram : public plan::SpotPolicy {
 public:
  /// command: for the shell.
  static Result<PolicyProgram> start(const std::string& command);

  PolicyProgram(PolicyProgram&& other) noexcept;
  PolicyProgram& operator=(PolicyProgram&&) = delete;
  ~PolicyProgram() override;

  std::string_view name() const override { return command_; }

  /// After the first wrong answer each decision is to wait.
  plan::SpotDecision decide(const plan::SpotView& view) override;

  /// The first wrong answer.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  PolicyProgram(std::string command, int socket, pid_t pid)
      : command_(std::move(command)), socket_(socket), pid_(pid) {}

  Result<std::string> ask(const std::string& line);

  /// " (exit code 3)" of one that has closed its output, and most likely ended; else empty.
  std::string its_end() const;

  std::string command_;
  int socket_;
  pid_t pid_;
  std::string unread_;
  std::optional<Error> trouble_;
};

}  // namespace tw::launch
