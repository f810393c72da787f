// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/executor_thread.h"
#include "host/loop.h"
#include "monitor/terminal/progress_text.h"
#include "peer/peer.h"
#include "train/learn/model.h"

namespace tw::cli {

/// A peer of a benchmark, a process of its own: its output, the signals that end it, the exit code.
class PeerProcess final : private world::EventSink {
 public:
  /// The observer, if there is one, outlives this object.
  PeerProcess(peer::Options options, bool quiet, std::unique_ptr<train::Model> model,
              train::SessionObserver* observer = nullptr);

  /// Takes part until the end of the run, a signal or a failure. Returns the exit code.
  int run();

 private:
  void emit(const world::Event& event) override;
  void on_signal(int signal);
  int exit_code() const;
  bool differs() const;
  std::string flaw() const;
  void say(const std::string& line) const;

  bool quiet_;  ///< prints nothing but errors
  host::Loop loop_;
  monitor::ProgressText progress_;
  std::optional<Instant> told_at_;  ///< to leave
  std::string told_by_;
  bool interrupted_ = false;
  std::unique_ptr<train::Model> model_;
  host::ThreadExecutor compute_;
  peer::Peer peer_;
};

}  // namespace tw::cli
