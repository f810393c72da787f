// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/fold/journal.h"
#include "monitor/logs/event_log_json.h"

namespace tw::cli {

/// Targets of the exports of `tw report`; an empty text: not wanted.
struct Exports {
  std::string trace;        ///< file, Chrome's trace format
  std::string csv;          ///< folder
  std::string tensorboard;  ///< folder
  std::string html;         ///< file, the page frozen with its data

  bool any() const { return !trace.empty() || !csv.empty() || !tensorboard.empty() || !html.empty(); }
};

/// Writes all requested exports. Returns the written files. Folders are made, files replaced. Errors name the
/// option and the path.
Result<std::vector<std::string>> write_exports(const Exports& exports,
                                               const std::vector<std::vector<monitor::LogEntry>>& logs,
                                               const monitor::JournalOptions& options);

}  // namespace tw::cli
