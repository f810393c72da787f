// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "host/disk/file_lock.h"
#include "host/loop.h"
#include "wire/token.h"

namespace tw::host {

/// That a run trains in a folder of checkpoints, for the processes of others: each run has a range of one
/// file there, by the key of its tokens, and each of its processes a lock on it. So peers of one run share
/// the folder, and one that is started again finds the others there; a second run is turned away: it would
/// remove checkpoints of the first, and write into the same logs. Where there are no locks, nobody is turned
/// away. Loop thread only.
class FolderClaim {
 public:
  /// Makes the folder; empty: there are no checkpoints. key: wire::Token::run_key; zeros without tokens.
  FolderClaim(std::string folder, const wire::Token::Key& key);

  /// Holds the folder from now on, or returns a process of another run that does.
  FileLock::Holder take();

  /// The same, for 5 s: a run there may be about to end. It runs the loop, until cut_short(). Returns why the
  /// peer cannot train there, for its user; empty: it can, or was cut short.
  std::string take_soon(Loop& loop, const std::function<bool()>& cut_short);

  /// The file, in the folder.
  static constexpr const char* kFile = "lock";

 private:
  FileLock::Holder take_with(FileLock& lock) const;

  std::string folder_;
  FileLock::Range own_;
  bool gate_is_busy_ = false;     ///< others look and take at the moment
  std::optional<FileLock> lock_;  ///< nothing: there are no locks
};

}  // namespace tw::host
