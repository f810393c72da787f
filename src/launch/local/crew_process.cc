// SPDX-License-Identifier: Apache-2.0
#include "launch/local/crew_process.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "base/result.h"
#include "host/watched_process.h"
#include "launch/local/verdict.h"

namespace tw::launch {

CrewProcess::CrewProcess(std::size_t number, std::vector<Variable> environment, std::string verdict_file)
    : number_(number), environment_(std::move(environment)), verdict_file_(std::move(verdict_file)) {
  environment_.emplace_back(kProcessVariable, std::to_string(number_));
  environment_.emplace_back(kLauncherVariable, host::name_of_this_process());
  if (!verdict_file_.empty()) environment_.emplace_back(kVerdictVariable, verdict_file_);
}

Status CrewProcess::start(const std::vector<std::string>& words, const std::vector<Variable>& more) {
  std::vector<Variable> environment = environment_;
  environment.insert(environment.end(), more.begin(), more.end());
  if (!verdict_file_.empty()) std::remove(verdict_file_.c_str());
  TW_TRY(auto child, Child::start_piped(words, environment));
  child_.emplace(std::move(child));
  return Unit{};
}

std::vector<std::string> CrewProcess::take_lines() {
  if (!child_) return {};
  const bool ended = child_->ending().has_value();
  rest_ += child_->take_output();
  std::vector<std::string> lines;
  // A progress line that is written over itself ends with \r.
  for (std::size_t end = 0; (end = rest_.find_first_of("\r\n")) != std::string::npos;) {
    if (end > 0) lines.push_back(rest_.substr(0, end));
    rest_.erase(0, end + 1);
  }
  if (ended && !rest_.empty()) lines.push_back(std::exchange(rest_, {}));
  return lines;
}

void CrewProcess::send_signal(int signal) const {
  const bool of_all = signal == SIGKILL || signal == SIGSTOP || signal == SIGCONT;
  if (child_ && of_all) child_->send_signal_to_all(signal);
  if (child_ && !of_all) child_->send_signal(signal);
}

std::string CrewProcess::verdict() const {
  std::ifstream file(verdict_file_);
  std::string word;
  file >> word;
  return word;
}

}  // namespace tw::launch
