// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watched.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/result.h"
#include "base/text/duration.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "peer/token_file.h"
#include "peer/values.h"

namespace tw::cli {
namespace {

constexpr Duration kBetweenBoardsShown = std::chrono::seconds(1);
/// Peers that were just started have no logs yet: that is no trouble.
constexpr int kPatientLooks = 5;
/// The least time without news after which a run counts as dead (docs/watch.md).
constexpr Duration kBoardStays = std::chrono::minutes(1);

}  // namespace

Result<monitor::Board> board_to_show(const std::optional<monitor::Board>& last, const std::string& trouble,
                                     Duration age) {
  if (!last) return Error{trouble};
  if (trouble.empty() || age < kBoardStays || last->is_over()) return *last;
  return Error{fmt::format("{}; the last board is {} old", trouble, duration_text(to_seconds(age)))};
}

Result<std::unique_ptr<Watched>> Watched::open(host::Loop& loop, std::unique_ptr<BoardFeed> feed,
                                               host::WebOptions web,
                                               std::optional<TensorBoardFile> tensorboard) {
  std::unique_ptr<Watched> watched(new Watched(loop, std::move(feed), std::move(tensorboard)));
  auto viewer = peer::Viewer::open(loop, std::move(web), [self = watched.get()] { return self->shown(); });
  if (!viewer) return viewer.error();
  watched->viewer_ = std::move(viewer).value();
  watched->look();
  return watched;
}

void Watched::look() {
  feed_->ask([this](Result<monitor::Board> board) {
    take(std::move(board));
    loop_.at(loop_.now() + kBetweenBoardsShown, life_.tie([this] { look(); }));
  });
}

void Watched::take(Result<monitor::Board> board) {
  why_no_board_ = board ? "" : board.error().message;
  if (!board) {
    if (++failed_looks_ == kPatientLooks) tell(why_no_board_ + "; trying again every second");
    return;
  }
  failed_looks_ = 0;
  board_ = std::move(board).value();
  came_at_ = loop_.now();
  if (const std::string note = feed_->note(); note != note_) {
    if (!note.empty()) warn(note);
    note_ = note;
  }
  if (!tensorboard_) return told_.clear();
  const Status written = tensorboard_->take(*board_);
  if (!written) return tell(written.error().message);
  told_.clear();
}

Result<monitor::Board> Watched::shown() const {
  if (!board_ && why_no_board_.empty()) return Error{feed_->name() + ": no answer yet"};
  return board_to_show(board_, why_no_board_, loop_.now() - came_at_);
}

void Watched::tell(const std::string& trouble) {
  if (trouble != told_) warn(trouble);
  told_ = trouble;
}

Result<std::unique_ptr<Watched>> watch_folder(host::Loop& loop, const std::string& folder,
                                              const std::string& address) {
  if (address.empty()) return std::unique_ptr<Watched>();
  TW_TRY(peer::parse_address_option("--watch", address));
  TW_TRY(auto feed, open_feed({.where = folder}, loop));
  host::WebOptions web{.address = address};
  if (const auto token = peer::read_token("--token", "@" + peer::token_file(folder), warn))
    web.token = token.value();
  auto watched = Watched::open(loop, std::move(feed), std::move(web));
  if (watched) show_aside("watch: " + watched.value()->viewer().how_to_watch());
  return watched;
}

}  // namespace tw::cli
