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
  std::string samples;      ///< file, CSV of the samples that the rounds used

  bool any() const {
    return !trace.empty() || !csv.empty() || !tensorboard.empty() || !html.empty() || !samples.empty();
  }
};

/// Writes all that are asked for: the files that were written, that of samples with what it shows. Folders
/// are made, files replaced. Errors name the option and the path, or the sample that was used twice.
Result<std::vector<std::string>> write_exports(const Exports& exports,
                                               const std::vector<std::vector<monitor::LogEntry>>& logs,
                                               const monitor::JournalOptions& options);

}  // namespace tw::cli
