// SPDX-License-Identifier: Apache-2.0
#include "peer/other_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "monitor/logs/newest_run.h"
#include "monitor/logs/past_run.h"
#include "peer/links.h"
#include "sync/checkpoint.h"

namespace tw::peer {
namespace {

namespace fs = std::filesystem;

/// The header of a checkpoint of 80 GB, and more than any other one.
constexpr std::size_t kBeginning = 4 << 20;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

/// The one of a folder with most rounds; empty: it holds none.
fs::path last_checkpoint_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) names.push_back(entry.filename().string());
  const std::vector<std::string> checkpoints = sync::checkpoints_among(names);
  return checkpoints.empty() ? fs::path() : folder / checkpoints.front();
}

/// The one written last of those in other folders than this one.
fs::path last_checkpoint_beside(const fs::path& own, const fs::path& parent) {
  std::pair<fs::file_time_type, fs::path> last;
  for (const fs::path& folder : entries_of(parent)) {
    std::error_code error;
    if (folder == own || !fs::is_directory(folder, error)) continue;
    const fs::path file = last_checkpoint_in(folder);
    if (file.empty()) continue;
    const auto written = fs::last_write_time(file, error);
    if (!error && (last.second.empty() || written > last.first)) last = {written, file};
  }
  return last.second;
}

Result<sync::CheckpointHead> head_of(const fs::path& path) {
  std::vector<char> bytes(kBeginning);
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return sync::read_head(std::as_bytes(std::span(bytes).first(static_cast<std::size_t>(file.gcount()))));
}

std::string checkpoint_of_other(const fs::path& path, const train::RunFacts& facts) {
  const auto head = head_of(path);
  if (!head || head.value().record.last || head.value().record.run == facts.digest()) return "";
  return fmt::format(
      "{} is of round {} of another run that has not ended: {}. To resume that one, make that "
      "as it was there",
      path.string(), head.value().record.round, sync::difference(head.value().words, facts.words()));
}

std::string log_of_other(const std::string& out, const train::RunFacts& facts) {
  const std::string newest = monitor::runs_in(out).run();
  if (newest.empty() || newest == to_string(facts.digest())) return "";
  const auto unfinished = monitor::unfinished_run(out, newest);
  if (!unfinished) return "";
  return fmt::format("{} shows {} rounds of another run that has not ended (another setting or model)",
                     unfinished->log, unfinished->rounds);
}

}  // namespace

std::string other_run_in(const std::string& parent, const Options& options, const train::RunFacts& facts) {
  const std::string& own = options.session.run.checkpoint.folder;
  if (!last_checkpoint_in(own).empty()) return "";
  const fs::path last = last_checkpoint_beside(own, parent);
  std::string found = last.empty() ? "" : checkpoint_of_other(last, facts);
  const bool is_alone = options.admission.empty();  // else `tw run` looks at the logs of all its peers
  if (found.empty() && is_alone && !options.out.empty()) found = log_of_other(options.out, facts);
  return found.empty() ? "" : fmt::format("this run has no checkpoint in {}, but {}", own, found);
}

}  // namespace tw::peer
