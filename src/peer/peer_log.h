// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "host/gpu/gpu_meter.h"
#include "host/loop.h"
#include "host/system/queue_time.h"
#include "host/tcp/traffic.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/log_watch.h"
#include "peer/links.h"
#include "peer/log_upload.h"

namespace tw::peer {

/// The event log of a peer in its folder, and its copies where the run wants them. Loop thread only; the loop
/// outlives it.
class PeerLog {
 public:
  /// warn: of a log that cannot be written.
  PeerLog(host::Loop& loop, Warn warn, LogUpload::Failed failed);

  /// By the options of the peer: there may be no log. One that lies where its copies would is not copied.
  /// Call once, before the others.
  Status open(const Options& options);

  void emit(const world::Event& event);

  /// What this process used so far: processors, and waiting for them, memory, writing this log, which the
  /// loop thread does, and its links; and its GPU since the last call.
  event::Use use(const host::LinkBytes& links);

  /// Call now and then.
  void look();

  /// What its copies used of stores.
  world::StoreUses uses() const { return upload_ ? upload_->uses() : world::StoreUses(); }

  /// After the last event: LogUpload::finish, and a warning of what is missing. Later ones are dropped, but
  /// for evaluations, which the file gets and its copies lack.
  void finish(const std::function<bool()>& cut_short);

 private:
  void warn_of_log();

  host::Loop& loop_;
  Warn warn_;
  LogUpload::Failed failed_;
  std::optional<monitor::JsonEventLog> log_;
  monitor::LogWatch watch_;
  std::optional<LogUpload> upload_;
  Duration wrote_{};
  bool finished_ = false;
  host::QueueTime queue_time_;
  std::optional<host::GpuMeter> gpu_;
};

}  // namespace tw::peer
