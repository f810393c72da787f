// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/log_watch.h"
#include "host/directory_dht.h"
#include "host/executor_thread.h"
#include "host/files_disk.h"
#include "host/identity/tls.h"
#include "host/loop.h"
#include "host/random_os.h"
#include "host/tcp/network_tcp.h"
#include "monitor/event_log_json.h"
#include "monitor/progress_text.h"
#include "monitor/refusal_count.h"
#include "train/session.h"
#include "train/trainer.h"

namespace tw {

struct PeerOptions {
  SessionOptions session;
  std::string run_file;  ///< as the user wrote it, for messages
  std::string out;       ///< folder of the event log; empty: none
  LogLimits log_limits;
  int most_streams = StreamCount::kMost;    ///< of data, to each other peer
  std::unique_ptr<Tls> tls;                 ///< nothing: --insecure
  std::unique_ptr<DhtDirectory> directory;  ///< where others find this peer; nothing: nowhere
  std::string admission;  ///< how others get what lets them in: the end of a line for the user
  bool quiet = false;
};

/// One peer on a real machine: the session, its doors, what the terminal shows, and the signals that end it.
class PeerProcess final : public EventSink {
 public:
  /// The observer, if there is one, outlives this object.
  PeerProcess(PeerOptions options, std::unique_ptr<Trainer> trainer, SessionObserver* observer = nullptr);

  /// Takes part until the run is over, a signal came, or it fails. Returns the exit code.
  int run();

  void emit(const Event& event) override;

 private:
  void tell(const Event& event);  // to the log and the terminal
  Status open_log();
  Event completed(Event event) const;
  void show_how_to_join(const std::string& address);
  void on_signal();
  void look();  // now and then: is it over?
  void return_memory_now_and_then();
  void tell_of_log();
  void fail(const std::string& why);
  void say_farewell(const std::string& why);  // to the peers and the log
  void say(const std::string& line) const;

  PeerOptions options_;
  Loop loop_;
  OsRandom random_;
  DiskFiles files_;
  ProgressText progress_;
  RefusalCount refusals_;
  std::optional<JsonEventLog> log_;
  LogWatch log_watch_;
  std::string failure_;  ///< of this process, outside the session
  int signals_ = 0;
  Instant signalled_at_{};
  TcpNetwork network_;
  std::unique_ptr<Trainer> trainer_;
  ThreadExecutor compute_;
  ThreadExecutor disk_;
  Session session_;
};

}  // namespace tw
