// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_copy.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/log_file.h"

namespace tw::monitor {
namespace {

/// Numbers that the copy keeps for the parts of one file of the log.
constexpr std::uint64_t kNumbers = 10'000;

/// Whole lines of a file.
struct Lines {
  std::string text;
  bool full = false;  ///< they are a part of the copy; later ones belong to the next
};

/// What of the file comes at this place: the same whenever it is asked for once it is full.
Lines lines_at(const std::string& path, std::uint64_t at) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  Lines lines{.text = std::string(LogCopy::kPartBytes, '\0')};
  file.read(lines.text.data(), static_cast<std::streamsize>(lines.text.size()));
  lines.full = file.gcount() == static_cast<std::streamsize>(LogCopy::kPartBytes);
  lines.text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  std::string rest;
  if (lines.full && lines.text.find('\n') == std::string::npos && std::getline(file, rest) && !file.eof())
    lines.text += rest + '\n';
  lines.text.resize(lines.text.rfind('\n') + 1);  // npos + 1 is 0
  lines.full = lines.full && !lines.text.empty();
  return lines;
}

/// "20261124T120332512Z" of the first line of a log; empty: it has none that can be read.
std::string begin_of(const std::string& log) {
  std::ifstream file(log, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || file.eof()) return {};
  const auto entry = parse_json_line(line);
  if (!entry) return {};
  std::string time = calendar_time(entry.value().unix_nanos);
  std::erase_if(time, [](char c) { return c == '-' || c == ':' || c == '.'; });
  return time;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

LogCopy::LogCopy(world::Files& files, std::string log, Place place)
    : files_(files), log_(std::move(log)), place_(std::move(place)) {}

/// By the first line of the log as it is now; empty: it has none.
std::string LogCopy::name_now() const {
  const std::string time = begin_of(log_);
  if (time.empty()) return {};
  const std::string own = file_name(log_);
  return own.substr(0, own.rfind('.')) + "-" + time + own.substr(own.rfind('.'));
}

/// Finds the name of the copy, and how far an earlier process came with it.
Status LogCopy::begin() {
  const std::string name = name_now();
  if (name.empty()) return Unit{};
  if (Status made = files_.make_folder(place_.folder); !made) return made;
  TW_TRY(const auto names, files_.list(place_.folder));
  for (const std::string& there : names)
    if (const auto part = log_part_of(name, there)) newest_ = std::max(newest_, *part);
  name_ = name;
  return Unit{};
}

/// The log was removed or moved, and its writer began a new one, with a first line of its own.
void LogCopy::notice_new_log() {
  std::error_code error;
  const bool is_another = !name_.empty() && name_now() != name_;
  const auto size = std::filesystem::file_size(log_part_path(log_, file_), error);
  if (!is_another && (error || size >= at_ + begun_)) return;
  name_.clear();
  file_ = 1;
  newest_ = at_ = full_ = begun_ = 0;
}

Status LogCopy::copy() {
  notice_new_log();
  if (name_.empty())
    if (Status begun = begin(); !begun || name_.empty()) return begun;
  while (true) {
    // Asked first: once there is a further file, nothing is added to this one.
    const std::vector<std::uint64_t> files = log_parts(log_);
    const auto next = std::ranges::upper_bound(files, file_);
    if (Status copied = copy_file(file_); !copied || next == files.end()) return copied;
    file_ = *next;
    at_ = full_ = begun_ = 0;
  }
}

Status LogCopy::copy_file(std::uint64_t file) {
  while (true) {
    const Lines lines = lines_at(log_part_path(log_, file), at_);
    const std::uint64_t part = (file - 1) * kNumbers + full_ + 1;
    const bool is_there = lines.full && part < newest_;
    if (lines.text.size() > begun_ && !is_there)
      if (Status written = write(log_part_path(name_, part), lines.text); !written) return written;
    begun_ = lines.text.size();
    if (!lines.full) return Unit{};
    at_ += std::exchange(begun_, 0);
    ++full_;
  }
}

Status LogCopy::write(const std::string& name, const std::string& text) {
  if (stopped_) return Error{"there was no time for all of it"};
  const std::string path = place_.folder + "/" + name;
  const std::array parts{std::as_bytes(std::span(text))};
  if (place_.writes_whole) return files_.write(path, parts);
  const std::string unfinished = path + ".part";
  const Status written = files_.write(unfinished, parts);
  return written ? files_.rename(unfinished, path) : written;
}

}  // namespace tw::monitor
