// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "monitor/board/board.h"
#include "monitor/export/tensorboard.h"

namespace tw::cli {

/// The event file of a running run: a round is appended once its facts are settled. An existing file of the
/// same run is replaced; another run has another file.
class TensorBoardFile {
 public:
  explicit TensorBoardFile(std::string folder) : folder_(std::move(folder)) {}

  /// Appends the news of this board. Error: names the folder or file.
  Status take(const monitor::Board& board);

 private:
  std::string folder_;
  std::string file_;  ///< empty: no round yet
  std::string run_;
  monitor::TensorBoardEvents events_;
};

}  // namespace tw::cli
