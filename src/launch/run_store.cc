// SPDX-License-Identifier: Apache-2.0
#include "launch/run_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/text_file.h"
#include "base/text/write_file.h"

namespace tw::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateFile = "state.json";
constexpr const char* kLockFile = "state.lock";  ///< the first entry of a folder, and the mark of one
constexpr auto kWaitForLock = std::chrono::seconds(60);
constexpr auto kBetweenTries = std::chrono::milliseconds(100);
constexpr int kFailedTries = 20;  ///< in a row: nobody is removing the folder just now

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// 0: one on another machine, or none that is known.
std::string process_text(pid_t process) { return process == 0 ? "" : fmt::format(" (process {})", process); }

std::string state_file(const std::string& folder) { return folder + "/" + kStateFile; }

/// An entry besides the lock; empty: none.
std::string entry_of(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename() != kLockFile) return entry.path().filename().string();
  return "";
}

bool is_of_a_run(const std::string& folder) {
  return is_there(folder + "/" + kLockFile) || is_there(state_file(folder));
}

/// Makes the folder of a run that begins, unless another command does so at the same time, or did so and
/// was killed.
Status make_run_folder(const std::string& folder) {
  if (is_of_a_run(folder)) return Unit{};
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{fmt::format("{}: cannot make this folder: {}", folder, cause_text(error))};
  // What another command makes there it makes after the lock.
  if (const std::string stranger = entry_of(folder); !stranger.empty() && !is_of_a_run(folder))
    return Error{
        fmt::format("{}: expected an empty folder or one of tw up, but {} is in it; --name or "
                    "--state takes another one",
                    folder, stranger)};
  fs::permissions(folder, fs::perms::owner_all, error);
  return Unit{};
}

}  // namespace

Status write_with_folder(const std::string& path, const std::string& text, unsigned mode) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  return write_file(path, text, mode);
}

namespace {

Status check_is_there(const std::string& runs, const std::string& run) {
  if (is_run_name(run) && is_there(state_file(runs + "/" + run))) return Unit{};
  const std::vector<std::string> known = runs_in(runs);
  return Error{fmt::format(
      "{}: no run of this name in {}; {}", run, runs,
      known.empty() ? std::string("tw up makes one") : fmt::format("there are: {}", fmt::join(known, ", ")))};
}

}  // namespace

Result<RunStore> RunStore::open(const std::string& runs, const std::string& run) {
  TW_TRY(check_is_there(runs, run));
  RunStore store(runs + "/" + run);
  TW_TRY(store.lock());
  TW_TRY(store.read());
  return store;
}

Result<std::optional<RunStore>> RunStore::open_if_free(const std::string& runs, const std::string& run) {
  TW_TRY(check_is_there(runs, run));
  RunStore store(runs + "/" + run);
  TW_TRY(const auto holder, store.try_lock());
  if (holder) return std::optional<RunStore>();
  TW_TRY(store.read());
  return std::optional<RunStore>(std::move(store));
}

Result<RunStore> RunStore::open_or_make(const std::string& runs, const std::string& run) {
  RunStore store(runs + "/" + run);
  TW_TRY(store.lock());
  if (is_there(state_file(store.folder_))) TW_TRY(store.read());
  return store;
}

RunStore::RunStore(RunStore&& other) noexcept
    : folder_(std::move(other.folder_)),
      lock_(std::exchange(other.lock_, std::nullopt)),
      has_state_(other.has_state_),
      state_(std::move(other.state_)) {}

/// Where nothing was saved, nothing is left.
RunStore::~RunStore() {
  if (!lock_ || has_state_ || !entry_of(folder_).empty()) return;
  unlink((folder_ + "/" + kLockFile).c_str());
  rmdir(folder_.c_str());
}

Result<host::FileLock::Holder> RunStore::try_lock() {
  TW_TRY(auto lock, host::FileLock::open(folder_ + "/" + kLockFile));
  TW_TRY(const auto holder, lock.lock(host::FileLock::Kind::exclusive, {}));
  if (holder) return holder;
  // The one that held it may have removed it, with the folder: it keeps nobody out any more.
  if (!lock.is_at_its_path()) return host::FileLock::Holder(0);
  lock_.emplace(std::move(lock));
  return host::FileLock::Holder();
}

Status RunStore::lock() {
  const auto end = std::chrono::steady_clock::now() + kWaitForLock;
  for (int failed = 0;;) {
    TW_TRY(make_run_folder(folder_));  // each time: the command that held the lock may have removed it
    const auto holder = try_lock();
    if (holder && !holder.value()) return Unit{};
    failed = holder ? 0 : failed + 1;
    if (failed == kFailedTries) return holder.error();
    if (holder && std::chrono::steady_clock::now() > end)
      return Error{fmt::format("{}: another tw up or tw down{} has been at work on this run for a minute",
                               folder_ + "/" + kLockFile, process_text(*holder.value()))};
    std::this_thread::sleep_for(kBetweenTries);
  }
}

Status RunStore::read() {
  TW_TRY(const auto text, read_text_file(state_file(folder_)));
  TW_TRY(auto state, run_state_in(state_file(folder_), text));
  state_ = std::move(state);
  state_.deployment.folder = folder_;
  has_state_ = true;
  return Unit{};
}

Status RunStore::save(RunState state) {
  if (const Status written = write_with_folder(state_file(folder_), to_json(state), 0600); !written)
    return written;
  state_ = std::move(state);
  has_state_ = true;
  return Unit{};
}

Status RunStore::write(const std::vector<File>& files) const {
  for (const File& file : files)
    if (const Status written = write_with_folder(folder_ + "/" + file.path, file.text, file.mode); !written)
      return written;
  return Unit{};
}

StopState stop_state_of(const std::string& runs, const std::string& run) {
  const std::string path = state_file(runs + "/" + run);
  const auto text = read_text_file(path);
  const auto state = text ? run_state_in(path, text.value()) : Result<RunState>(text.error());
  return state ? state.value().stop : StopState::none;
}

std::vector<std::string> runs_in(const std::string& runs) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs, error))
    if (is_there(state_file(entry.path().string()))) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace tw::launch
