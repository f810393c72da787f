// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/watch/board_feed.h"
#include "cli/watch/tensorboard_file.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/web/server.h"
#include "peer/viewer.h"

namespace tw::cli {

/// What viewers get. trouble: why the newest look brought no board; empty: it brought one. Through a minute
/// of trouble the last board stays; after that its numbers would pass for those of now, unless the run is
/// over.
Result<monitor::Board> board_to_show(const std::optional<monitor::Board>& last, const std::string& trouble,
                                     Duration age);

/// A run that is read once a second, for any number of viewers: browsers, Prometheus, TensorBoard. Loop
/// thread; the loop outlives it.
class Watched {
 public:
  /// tensorboard: folder of a run's event file; nothing: none is written. Errors of Viewer::open.
  static Result<std::unique_ptr<Watched>> open(host::Loop& loop, std::unique_ptr<BoardFeed> feed,
                                               host::WebOptions web,
                                               std::optional<TensorBoardFile> tensorboard = {});

  const peer::Viewer& viewer() const { return *viewer_; }

 private:
  Watched(host::Loop& loop, std::unique_ptr<BoardFeed> feed, std::optional<TensorBoardFile> tensorboard)
      : loop_(loop), feed_(std::move(feed)), tensorboard_(std::move(tensorboard)) {}

  void look();
  void take(Result<monitor::Board> board);
  Result<monitor::Board> shown() const;
  void tell(const std::string& trouble);

  host::Loop& loop_;
  std::unique_ptr<BoardFeed> feed_;
  std::optional<TensorBoardFile> tensorboard_;
  std::optional<monitor::Board> board_;
  Instant came_at_{};         ///< the board
  int failed_looks_ = 0;      ///< since the last board
  std::string told_;          ///< the last trouble, in words
  std::string why_no_board_;  ///< of the last look
  std::string note_;          ///< that was shown last
  std::unique_ptr<peer::Viewer> viewer_;
  host::Lifeline life_;
};

/// For `--watch` of a command that writes logs into the folder: prints the address. Nothing if the address is
/// empty.
Result<std::unique_ptr<Watched>> watch_folder(host::Loop& loop, const std::string& folder,
                                              const std::string& address);

}  // namespace tw::cli
