// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/cause_text.h"
#include "base/text/number.h"

namespace tw::monitor {
namespace {

constexpr std::string_view kEnding = ".jsonl";

std::error_code cause() { return {errno, std::generic_category()}; }

std::error_code write_piece(int file, std::string_view piece) {
  while (!piece.empty()) {
    const ssize_t written = ::write(file, piece.data(), piece.size());
    if (written == 0) return std::make_error_code(std::errc::no_space_on_device);
    if (written < 0 && errno != EINTR) return cause();
    if (written > 0) piece.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// "events-7.3.jsonl" is part 3 of "events-7.jsonl".
std::pair<std::string, std::uint64_t> log_and_part(const std::string& name) {
  const std::string stem = name.substr(0, name.size() - kEnding.size());
  const std::size_t dot = stem.rfind('.');
  const auto part =
      dot == std::string::npos ? std::nullopt : parse_number<std::uint64_t>(stem.substr(dot + 1));
  if (!part || *part < 2) return {name, 1};
  return {stem.substr(0, dot) + std::string(kEnding), *part};
}

template <class Visit>
void for_each_log_file(const std::string& folder, std::error_code& error, Visit visit) {
  namespace fs = std::filesystem;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_log_file(name)) visit(name);
  }
}

}  // namespace

LogFile::~LogFile() {
  if (file_ >= 0) ::close(file_);
}

LogFile::LogFile(LogFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), size_(other.size_), torn_(other.torn_) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  std::swap(torn_, other.torn_);
  return *this;
}

std::error_code LogFile::open(const std::string& path) {
  // In a shared folder a link of somebody else would lead the lines into a file of this user.
  constexpr int kHow = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
  const int file = ::open(path.c_str(), kHow, 0644);
  if (file < 0) return cause();
  if (file_ >= 0) ::close(file_);

  struct stat about {};

  const bool regular = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  file_ = file;
  size_ = regular ? static_cast<std::uint64_t>(about.st_size) : 0;
  torn_ = false;
  return {};
}

bool LogFile::has_lost(const std::string& path) const {
  struct stat opened {};

  struct stat named {};

  if (::fstat(file_, &opened) != 0) return false;
  if (::stat(path.c_str(), &named) != 0) return errno == ENOENT || errno == ENOTDIR;
  return opened.st_dev != named.st_dev || opened.st_ino != named.st_ino;
}

std::error_code LogFile::append(std::string_view piece) {
  if (torn_)
    if (const std::error_code failed = cut(size_)) return failed;
  const std::error_code failed = write_piece(file_, piece);
  if (failed) {
    torn_ = true;
    (void)cut(size_);  // if it fails, the next piece tries again
    return failed;
  }
  size_ += piece.size();
  return {};
}

std::error_code LogFile::cut(std::uint64_t bytes) {
  const bool cannot_be_cut = ::ftruncate(file_, static_cast<off_t>(bytes)) != 0 && errno != EINVAL;
  if (cannot_be_cut) return cause();
  size_ = bytes;
  torn_ = false;
  return {};
}

std::string log_part_path(const std::string& path, std::uint64_t part) {
  if (part < 2) return path;
  const std::string stem = path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) : path;
  return fmt::format("{}.{}{}", stem, part, kEnding);
}

std::optional<std::uint64_t> log_part_of(const std::string& log, const std::string& name) {
  if (!name.ends_with(kEnding)) return std::nullopt;
  const auto [whole, part] = log_and_part(name);
  return whole == log ? std::optional(part) : std::nullopt;
}

bool is_log_file(const std::string& name) { return name.starts_with("events-") && name.ends_with(kEnding); }

std::vector<std::uint64_t> log_parts(const std::string& path) {
  const std::filesystem::path whole(path);
  std::vector<std::uint64_t> parts;
  std::error_code error;
  if (std::filesystem::exists(path, error)) parts.push_back(1);
  for_each_log_file(whole.parent_path().string(), error, [&](const std::string& name) {
    const auto [log, part] = log_and_part(name);
    if (part > 1 && log == whole.filename().string()) parts.push_back(part);
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> logs_in_folder(const std::string& folder, std::error_code& error) {
  std::vector<std::string> logs;
  for (const auto& [log, parts] : log_parts_in_folder(folder, error)) logs.push_back(log);
  return logs;
}

std::map<std::string, std::vector<std::uint64_t>> log_parts_in_folder(const std::string& folder,
                                                                      std::error_code& error) {
  std::map<std::string, std::vector<std::uint64_t>> logs;
  for_each_log_file(folder, error, [&](const std::string& name) {
    const auto [log, part] = log_and_part(name);
    logs[folder + "/" + log].push_back(part);
  });
  for (auto& [log, parts] : logs) std::ranges::sort(parts);
  return logs;
}

Result<std::vector<std::string>> find_event_logs(const std::string& folder_or_log) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder_or_log, error)) return std::vector<std::string>{folder_or_log};
  std::vector<std::string> paths = logs_in_folder(folder_or_log, error);
  const std::string inner = folder_or_log + "/logs";
  if (std::error_code none; !error && paths.empty() && std::filesystem::is_directory(inner, none))
    paths = logs_in_folder(inner, error);
  if (error) return Error{fmt::format("cannot read the folder {}: {}", folder_or_log, cause_text(error))};
  if (paths.empty()) return Error{no_logs_in(folder_or_log)};
  return paths;
}

std::string no_logs_in(const std::string& folder) {
  std::string text = fmt::format("no event log (events-*.jsonl) in {}", folder);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto ending = name.find(std::string(kEnding) + ".");
    if (!is_log_file(name.substr(0, ending == name.npos ? 0 : ending + kEnding.size()))) continue;
    return text + fmt::format("; it has {}: decompress such files", name);
  }
  return text;
}

}  // namespace tw::monitor
