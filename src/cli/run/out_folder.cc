// SPDX-License-Identifier: Apache-2.0
#include "cli/run/out_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/cause_text.h"
#include "host/disk/folder_claim.h"

namespace tw::cli {

namespace {

/// Files that may be deleted: those that `tw` wrote.
bool is_ours(const std::string& name) {
  return name == "summary.json" || name == "token" ||
         (name.starts_with("events-") && name.ends_with(".jsonl")) ||
         (name.starts_with("peer-") && name.ends_with(".log")) ||
         (name.starts_with("peers-") && name.ends_with(".csv"));
}

/// The default place of checkpoints (peer::place_checkpoints), with nothing else in it.
bool are_our_checkpoints(const std::filesystem::directory_entry& entry) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (entry.path().filename() != "checkpoints" || !entry.is_directory()) return false;
  const auto is_other = [](const fs::directory_entry& file) {
    const std::string name = file.path().filename().string();
    return !file.is_directory() && name != host::FolderClaim::kFile && name.find(".tw") == std::string::npos;
  };
  return std::none_of(fs::recursive_directory_iterator(entry.path(), error), {}, is_other) && !error;
}

}  // namespace

Status empty_out_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{fmt::format("--out {}: cannot make this folder: {}", folder, cause_text(error))};
  std::vector<fs::path> old;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const bool log = file.is_regular_file() && is_ours(file.path().filename().string());
    if (!log && !are_our_checkpoints(file))
      return Error{
          fmt::format("--out {}: expected an empty folder or one with a run of before, but {} is in it; "
                      "give a new folder such as --out {}/run1",
                      folder, file.path().filename().string(), folder)};
    old.push_back(file.path());
  }
  for (const fs::path& path : old) fs::remove_all(path, error);
  if (error) return Error{fmt::format("--out {}: cannot empty this folder: {}", folder, cause_text(error))};
  return Unit{};
}

}  // namespace tw::cli
