// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/report_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/write_file.h"
#include "cli/watch/frozen_file.h"
#include "data/sample_order.h"
#include "monitor/board/board_json.h"
#include "monitor/export/board_csv.h"
#include "monitor/export/chrome_trace_json.h"
#include "monitor/export/tensorboard.h"
#include "monitor/report/used_samples.h"

namespace tw::cli {
namespace {

/// Boards are made of a run's logs at so many rounds at most: money is shown at these.
constexpr std::size_t kMostBoards = 500;

Status write_for(const std::string& option, const std::string& path, const std::string& text) {
  const Status written = write_file(path, text);
  return written ? written : Error{option + " " + written.error().message};
}

Status make_folder(const std::string& option, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{fmt::format("{} {}: cannot be made: {}", option, folder, cause_text(error))};
  return Unit{};
}

struct NamedText {
  std::string name, text;
};

/// The board after every few commits, so that each round has the money of its time.
Result<NamedText> tensorboard_of(const monitor::LogSource& logs, const monitor::HeldHistory& held,
                                 monitor::Journal journal) {
  const Round rounds = held.records().empty() ? 0 : held.records().back().round;
  const Round step = 1 + rounds / kMostBoards;
  monitor::TensorBoardEvents events;
  std::string text;
  Round told = 0;
  std::size_t next = 0;
  double named_s = 0;
  TW_TRY(logs.each(monitor::kAllPhases, [&](const monitor::LogEntry& entry, std::size_t) {
    if (next == 0) named_s = static_cast<double>(entry.unix_nanos) * 1e-9;
    const bool dropped = held.drops(next++);
    journal.take(entry, dropped);
    const bool is_new =
        !dropped && entry.event.phase() == world::Phase::commit && entry.event.round >= told + step;
    if (!is_new) return;
    told = entry.event.round;
    text += events.take_before(journal.board(), told);
  }));
  const monitor::Board last = journal.board();
  const double begun_s = last.rounds.empty() ? last.now_s : last.rounds.front().begun_s;
  return NamedText{monitor::tensorboard_file_name(named_s),
                   monitor::TensorBoardEvents::begin(begun_s) + text + events.take_all(last)};
}

/// All rounds of the logs, where a live board keeps the last ones.
Result<std::string> trace_of(const monitor::LogSource& logs, monitor::JournalOptions options) {
  options.lane_rounds = monitor::Board::kMostRounds;
  monitor::Journal journal(std::move(options));
  TW_TRY(logs.each(monitor::kAllPhases,
                   [&](const monitor::LogEntry& entry, std::size_t) { journal.take(entry); }));
  return chrome_trace(journal.board());
}

/// A line for each sample. Epoch and index are empty where the order of the data is not known.
std::string samples_csv(const monitor::UsedSamples& used) {
  std::optional<data::SampleOrder> order;
  const bool is_of_a_sampler = used.order && used.order->dataset == data::SampleOrder::kLargest;
  if (used.order && !is_of_a_sampler)
    order.emplace(used.order->seed, used.order->dataset, used.order->block, used.order->begun);
  std::string text = "round,peer,sample,epoch,index,skipped\n";
  const auto add = [&](Round round, PeerId peer, std::uint64_t s) {
    std::string place = ",";
    if (order) place = fmt::format("{},{}", order->epoch_of(s), order->index_of(s));
    text += fmt::format("{},{},{},{},{}\n", round, peer.value, s, place, used.skipped.contains(s) ? 1 : 0);
  };
  for (const auto& round : used.rounds) {
    for (const auto& [peer, samples] : round.of) {
      for (const Range& range : samples.ranges())
        for (std::uint64_t s = range.first; s < range.end(); ++s) add(round.round, peer, s);
    }
  }
  return text;
}

Result<std::string> write_samples(const std::string& path, const monitor::LogSource& logs,
                                  const monitor::HeldHistory& held) {
  const auto used = monitor::used_samples(logs, held);
  if (!used) return Error{"--samples: " + used.error().message};
  TW_TRY(write_for("--samples", path, samples_csv(used.value())));
  return fmt::format("{}: {}", path, text_of(used.value()));
}

Result<std::vector<std::string>> write_tables(const std::string& folder, const monitor::Board& board) {
  TW_TRY(make_folder("--csv", folder));
  std::vector<std::string> written;
  for (const auto& [name, text] :
       {std::pair{"rounds", rounds_csv(board)}, std::pair{"peers", peers_csv(board)},
        std::pair{"interruptions", interruptions_csv(board)}, std::pair{"links", links_csv(board)},
        std::pair{"evaluations", evaluations_csv(board)}}) {
    written.push_back(fmt::format("{}/{}.csv", folder, name));
    TW_TRY(write_for("--csv", written.back(), text));
  }
  return written;
}

Result<std::string> write_html(const std::string& path, const monitor::Board& board) {
  const Status done = write_page(path, monitor::PageKind::run,
                                 fmt::format("tradewind: {} rounds", board.round), frozen_json(board));
  if (!done) return Error{"--html " + done.error().message};
  return path;
}

Result<std::string> write_tensorboard(const std::string& folder, const NamedText& file) {
  TW_TRY(make_folder("--tensorboard", folder));
  std::string path = folder + "/" + file.name;
  TW_TRY(write_for("--tensorboard", path, file.text));
  return path;
}

}  // namespace

Result<std::vector<std::string>> write_exports(const Exports& exports, const monitor::LogSource& logs,
                                               const monitor::JournalOptions& options) {
  std::vector<std::string> written;
  if (!exports.trace.empty()) {
    TW_TRY(const auto text, trace_of(logs, options));
    TW_TRY(write_for("--trace", exports.trace, text));
    written.push_back(exports.trace);
  }
  const bool is_trace_alone =
      exports.html.empty() && exports.csv.empty() && exports.samples.empty() && exports.tensorboard.empty();
  if (is_trace_alone) return written;
  TW_TRY(const auto held, monitor::HeldHistory::of(logs));
  if (!exports.html.empty()) {
    TW_TRY(const auto journal, journal_of(logs, held, options));
    TW_TRY(auto path, write_html(exports.html, journal.board()));
    written.push_back(std::move(path));
  }
  if (!exports.csv.empty()) {
    monitor::JournalOptions whole = options;
    whole.whole = true;  // a page shows the newest, a table all
    TW_TRY(const auto journal, journal_of(logs, held, whole));
    TW_TRY(const auto tables, write_tables(exports.csv, journal.board()));
    written.insert(written.end(), tables.begin(), tables.end());
  }
  if (!exports.samples.empty()) {
    TW_TRY(auto told, write_samples(exports.samples, logs, held));
    written.push_back(std::move(told));
  }
  if (!exports.tensorboard.empty()) {
    TW_TRY(const auto file, tensorboard_of(logs, held, monitor::Journal(options)));
    TW_TRY(auto path, write_tensorboard(exports.tensorboard, file));
    written.push_back(std::move(path));
  }
  return written;
}

}  // namespace tw::cli
