// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/executor_thread.h"
#include "host/loop.h"
#include "monitor/terminal/progress_text.h"
#include "peer/peer.h"
#include "train/learn/trainer.h"

namespace tw::cli {

/// A peer that is a process of its own: its output, the signals that end it, the exit code.
class PeerProcess final : private world::EventSink {
 public:
  struct Words {
    std::string run_file;  ///< as the user wrote it, for messages
    bool quiet = false;
  };

  /// The observer, if there is one, outlives this object.
  PeerProcess(peer::Options options, Words words, std::unique_ptr<train::Trainer> trainer,
              train::SessionObserver* observer = nullptr);

  /// Takes part until the end of the run, a signal or a failure. Returns the exit code.
  int run();

 private:
  void emit(const world::Event& event) override;
  void show_how_to_join(const std::string& address) const;
  void on_signal(int signal);
  int exit_code() const;
  void say(const std::string& line) const;

  Words words_;
  host::Loop loop_;
  monitor::ProgressText progress_;
  std::optional<Instant> told_at_;  ///< to leave
  std::string told_by_;
  std::unique_ptr<train::Trainer> trainer_;
  host::ThreadExecutor compute_;
  peer::Peer peer_;
};

}  // namespace tw::cli
