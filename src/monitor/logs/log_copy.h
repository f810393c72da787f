// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "world/files.h"

namespace tw::monitor {

/// Copies a growing event log into another folder, which may be one of a store. There it is a log of smaller
/// parts (monitor/logs/log_file.h), each of whole lines: a part that is full is never written again. Its name
/// has the time of the log's first line, events-7-20261124T120332512Z.jsonl. So a process that takes up the
/// log of an earlier one goes on with its copy, and logs of several machines lie side by side. Calls block on
/// disk and network; one at a time, any thread.
class LogCopy {
 public:
  struct Place {
    std::string folder;
    /// A write there is whole or not there. Where it is not, a part is written under another name first.
    bool writes_whole = false;
  };

  /// Bytes of one part of the copy; more only where one line is longer. What is written again is at most
  /// this.
  static constexpr std::uint64_t kPartBytes = 256 << 10;

  /// files: of the copy; it outlives this object. log: its path on this machine.
  LogCopy(world::Files& files, std::string log, Place place);

  /// Copies what was written since the last call. After an error the next call goes on where this one ended.
  Status copy();

  /// A copy under way ends with an error before it writes again; so do later ones. Any thread.
  void stop() { stopped_ = true; }

 private:
  void notice_new_log();
  std::string name_now() const;
  Status begin();
  Status copy_file(std::uint64_t file);
  Status write(const std::string& name, const std::string& text);

  world::Files& files_;
  std::string log_;
  Place place_;
  std::string name_;          ///< of the copy; empty: the log has no line yet
  std::uint64_t newest_ = 0;  ///< part of the copy that an earlier process wrote last
  std::uint64_t file_ = 1;    ///< part of the log
  std::uint64_t at_ = 0;      ///< bytes of it that are in full parts of the copy
  std::uint64_t full_ = 0;    ///< such parts
  std::uint64_t begun_ = 0;   ///< bytes behind them that were copied, too
  std::atomic<bool> stopped_ = false;
};

}  // namespace tw::monitor
