// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "host/executor_thread.h"
#include "host/loop.h"
#include "host/store/store_files.h"
#include "monitor/logs/log_copy.h"

namespace tw::peer {

/// Copies of an event log in a folder or a store (monitor/logs/log_copy.h), made on a thread of their own:
/// neither training nor checkpoints wait for them. Loop thread only; the loop outlives it. Its end waits for
/// the request under way: two attempts of 10 s, and what signs them.
class LogUpload {
 public:
  /// Called on the loop thread when a copy fails: the first time, and again after a success.
  using Failed = std::function<void(const std::string& why)>;

  LogUpload(host::Loop& loop, const std::string& log, const std::string& folder, Failed failed);

  ~LogUpload() { copy_.stop(); }

  LogUpload(const LogUpload&) = delete;
  LogUpload& operator=(const LogUpload&) = delete;

  /// Call now and then: begins a copy when one is due, once a minute.
  void look();

  /// A copy is due soon: there is a checkpoint that belongs to the log.
  void hurry();

  /// Copies what is left: runs the loop until that is done or failed, for 10 s at most, or until cut_short().
  /// The error says why the end of the log is not there.
  Status finish(const std::function<bool()>& cut_short);

  /// S3Files::uses.
  world::StoreUses uses() const { return files_.uses(); }

  static constexpr Duration kEvery = std::chrono::minutes(1);
  static constexpr Duration kApart = std::chrono::seconds(5);
  static constexpr Duration kLastCopy = std::chrono::seconds(10);

 private:
  void copied(const Status& status);

  host::Loop& loop_;
  const std::string folder_;
  Failed failed_;
  host::StoreFiles files_;
  monitor::LogCopy copy_;
  Status last_ = Unit{};
  bool under_way_ = false;
  Instant began_{}, due_{};
  host::ThreadExecutor thread_;  // last: its job uses the others
};

}  // namespace tw::peer
