// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"

namespace tw::monitor {

/// A file that only grows, by pieces that are written as a whole or not at all: the rest of a failed write is
/// cut off, at the latest before the next one. Handed to the system at once, not made durable. Calls block;
/// one at a time.
class LogFile {
 public:
  LogFile() = default;
  ~LogFile();
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;

  /// Creates the file if it is missing. After an error the former file is still open.
  std::error_code open(const std::string& path);

  bool is_open() const { return file_ >= 0; }

  /// It was removed or moved since it was opened under this name: nobody finds what is appended.
  bool has_lost(const std::string& path) const;

  std::error_code append(std::string_view piece);

  /// Truncates a regular file after the first `bytes`.
  std::error_code cut(std::uint64_t bytes);

  /// Bytes of whole pieces.
  std::uint64_t size() const { return size_; }

 private:
  int file_ = -1;
  std::uint64_t size_ = 0;
  bool torn_ = false;  ///< there may be a part of a piece behind size_
};

/// A log is one file, events-7.jsonl, until that is full; then events-7.2.jsonl goes on, and so forth. Part 1
/// has the name of the log.
std::string log_part_path(const std::string& path, std::uint64_t part);

/// Number of the part of this log that a file of this name is; nothing: it is none. Both without folders.
std::optional<std::uint64_t> log_part_of(const std::string& log, const std::string& name);

/// The name, without a folder, is that of a part of some log.
bool is_log_file(const std::string& name);

/// Numbers of the existing parts of a log, rising.
std::vector<std::uint64_t> log_parts(const std::string& path);

/// The logs of which a folder has parts: their paths, by name. Error: why the folder cannot be read.
std::vector<std::string> logs_in_folder(const std::string& folder, std::error_code& error);

/// The same logs, each with the numbers of its parts, rising.
std::map<std::string, std::vector<std::uint64_t>> log_parts_in_folder(const std::string& folder,
                                                                      std::error_code& error);

/// The paths of all logs of a folder, or of its subfolder "logs" if only that one has logs; or the one log.
/// Errors: no such folder, no log in it.
Result<std::vector<std::string>> find_event_logs(const std::string& folder_or_log);

/// A sentence on a folder without logs, which names one that was compressed.
std::string no_logs_in(const std::string& folder);

}  // namespace tw::monitor
