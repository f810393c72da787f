// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/fold/journal.h"
#include "monitor/logs/log_source.h"

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
/// are made, files replaced. Goes through the logs several times. Errors name the option and the path, the
/// sample that was used twice, or the log that cannot be read.
Result<std::vector<std::string>> write_exports(const Exports& exports, const monitor::LogSource& logs,
                                               const monitor::JournalOptions& options);

}  // namespace tw::cli
