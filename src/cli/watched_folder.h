// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/web/server.h"
#include "monitor/followed_logs.h"
#include "peer/viewer.h"

namespace tw::cli {

/// The event logs of a folder, looked at once a second and shown. The loop outlives it.
class WatchedFolder {
 public:
  struct Place {
    std::string folder;
    std::string plan{};  ///< PLAN.yaml with the one price of all machines; empty: the prices of `tw up`
  };

  static Result<std::unique_ptr<WatchedFolder>> open(host::Loop& loop, const Place& place,
                                                     host::WebOptions options);

  const peer::Viewer& viewer() const { return *viewer_; }

 private:
  WatchedFolder(host::Loop& loop, monitor::FollowedLogs logs) : loop_(loop), logs_(std::move(logs)) {}

  void look();

  host::Loop& loop_;
  monitor::FollowedLogs logs_;
  std::string trouble_;  ///< the last one, which was told
  std::unique_ptr<peer::Viewer> viewer_;
  host::Lifeline life_;
};

/// For `--watch` of a command that writes logs into the folder: says where it is shown. Nothing where the
/// address is empty.
Result<std::unique_ptr<WatchedFolder>> watch_folder(host::Loop& loop, const std::string& folder,
                                                    const std::string& address);

}  // namespace tw::cli
