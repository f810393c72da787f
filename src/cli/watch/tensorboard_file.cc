// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/tensorboard_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/cause_text.h"

namespace tw::cli {

Status TensorBoardFile::take(const monitor::Board& board) {
  if (board.rounds.empty()) return Unit{};
  if (board.run != run_) {
    run_ = board.run;
    file_.clear();
    events_ = {};
  }
  const bool begins = file_.empty();
  if (begins) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return Error{fmt::format("--tensorboard {}: cannot be made: {}", folder_, cause_text(error))};
    file_ = folder_ + "/" + monitor::tensorboard_file_name(board.rounds.front().begun_s);
  }
  std::string records = begins ? monitor::TensorBoardEvents::begin(board.rounds.front().begun_s) : "";
  records += events_.take_settled(board);
  if (records.empty()) return Unit{};
  std::ofstream file(file_, std::ios::binary | (begins ? std::ios::trunc : std::ios::app));
  file << records;
  file.close();
  if (!file) return Error{fmt::format("--tensorboard {}: cannot be written", file_)};
  return Unit{};
}

}  // namespace tw::cli
