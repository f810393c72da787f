// SPDX-License-Identifier: Apache-2.0
#include "monitor/event_log_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tw {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kOwnKeys{"t",     "time", "peer",   "round", "phase",
                                                   "about", "why",  "digest", "cause"};

std::optional<Phase> phase_named(const std::string& name) {
  const auto* const found = std::ranges::find(kPhaseNames, name);
  if (found == kPhaseNames.end()) return std::nullopt;
  return static_cast<Phase>(found - kPhaseNames.begin());
}

/// None for one of a later version.
Cause cause_named(const std::string& name) {
  const auto* const found = std::ranges::find(kCauseNames, name);
  return found != kCauseNames.end() ? static_cast<Cause>(found - kCauseNames.begin()) : Cause::none;
}

std::string calendar_time(std::int64_t unix_nanos) {
  const std::int64_t millis = unix_nanos / 1'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(millis / 1000)),
                     millis % 1000);
}

std::optional<std::int64_t> parse_calendar_time(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millis = 0, length = 0;
  // NOLINTNEXTLINE(cert-err34-c): the count of fields and the length are checked
  const int fields = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour,
                                 &minute, &second, &millis, &length);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (fields != 7 || length != static_cast<int>(text.size()) || !date.ok()) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60'000'000'000 + second * 1'000'000'000LL +
         millis * 1'000'000LL;
}

/// Times in the log have microseconds: enough to order events of one machine, short enough to read.
double log_seconds(Instant at) { return std::round(to_seconds(at.time_since_epoch()) * 1e6) / 1e6; }

Result<Json> number_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number())
    return Error{fmt::format("\"{}\" is missing or not a number", key)};
  return *found;
}

Result<std::uint64_t> count_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_unsigned())
    return Error{fmt::format("\"{}\" is missing or not a whole number", key)};
  return found->get<std::uint64_t>();
}

Result<std::string> text_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_string())
    return Error{fmt::format("\"{}\" is missing or not a text", key)};
  return found->get<std::string>();
}

Status parse_optional_parts(const Json& line, Event& event) {
  if (line.contains("about")) {
    auto about = count_at(line, "about");
    if (!about) return about.error();
    event.peer = PeerId{about.value()};
  }
  for (const auto& [key, target] : {std::pair{"why", &event.why}, std::pair{"digest", &event.digest}}) {
    if (!line.contains(key)) continue;
    auto text = text_at(line, key);
    if (!text) return text.error();
    *target = std::move(text).value();
  }
  if (line.contains("cause")) {
    auto cause = text_at(line, "cause");
    if (!cause) return cause.error();
    event.cause = cause_named(cause.value());
  }
  for (const auto& [key, value] : line.items()) {
    if (std::find(kOwnKeys.begin(), kOwnKeys.end(), key) != kOwnKeys.end()) continue;
    if (value.is_null()) {
      event.numbers.emplace_back(key, std::numeric_limits<double>::quiet_NaN());
    } else if (value.is_number()) {
      event.numbers.emplace_back(key, value.get<double>());
    } else {
      return Error{fmt::format("\"{}\" is not a number", key)};
    }
  }
  return Unit{};
}

/// Where a file ends after its last whole line.
Result<std::uint64_t> length_of_whole_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("cannot read {}", path)};
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return content.rfind('\n') + 1;  // npos + 1 is 0
}

}  // namespace

std::string to_json_line(const LogEntry& entry) {
  const Event& event = entry.event;
  Json line;
  line["t"] = log_seconds(event.at);
  line["time"] = calendar_time(entry.unix_nanos);
  line["peer"] = entry.writer.value;
  line["round"] = event.round;
  line["phase"] = name_of(event.phase);
  if (event.peer) line["about"] = event.peer->value;
  if (!event.why.empty()) line["why"] = event.why;
  if (!event.digest.empty()) line["digest"] = event.digest;
  if (event.cause != Cause::none) line["cause"] = name_of(event.cause);
  for (const auto& [name, value] : event.numbers) {
    TW_CHECK(std::find(kOwnKeys.begin(), kOwnKeys.end(), name) == kOwnKeys.end());
    const bool whole = std::abs(value) < 0x1p53 && value == std::trunc(value);
    if (whole) {
      line[name] = static_cast<std::int64_t>(value);
    } else {
      line[name] = value;
    }
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<LogEntry> parse_json_line(const std::string& text) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return Error{"not a JSON object"};
  auto at = number_at(line, "t");
  if (!at) return at.error();
  auto time = text_at(line, "time");
  if (!time) return time.error();
  auto writer = count_at(line, "peer");
  if (!writer) return writer.error();
  auto round = count_at(line, "round");
  if (!round) return round.error();
  auto phase_name = text_at(line, "phase");
  if (!phase_name) return phase_name.error();

  const auto unix_nanos = parse_calendar_time(time.value());
  if (!unix_nanos)
    return Error{fmt::format("\"time\" is {}, not like 2026-01-31T12:00:00.000Z", time.value())};
  const auto phase = phase_named(phase_name.value());
  if (!phase) return Error{fmt::format("unknown phase {}", phase_name.value())};

  LogEntry entry{.writer = PeerId{writer.value()}, .unix_nanos = *unix_nanos, .event = {}};
  entry.event.at = Instant(from_seconds(at.value().get<double>()));
  entry.event.phase = *phase;
  entry.event.round = round.value();
  if (auto parts = parse_optional_parts(line, entry.event); !parts) return parts.error();
  return entry;
}

std::string event_log_name(PeerId writer) {
  return writer == PeerId{} ? "events-local.jsonl" : fmt::format("events-{}.jsonl", writer.value);
}

JsonEventLog::JsonEventLog(std::string path, PeerId writer, Clock& clock)
    : path_(std::move(path)), writer_(writer), clock_(&clock) {}

Result<JsonEventLog> JsonEventLog::open(const std::string& path, PeerId writer, Clock& clock) {
  if (std::error_code error; std::filesystem::is_regular_file(path, error)) {
    auto length = length_of_whole_lines(path);
    if (!length) return length.error();
    std::filesystem::resize_file(path, length.value(), error);
    if (error) return Error{fmt::format("cannot continue the event log {}: {}", path, error.message())};
  }
  JsonEventLog log(path, writer, clock);
  log.file_.open(path, std::ios::binary | std::ios::app);
  if (!log.file_) return Error{fmt::format("cannot write the event log {}", path)};
  return log;
}

void JsonEventLog::emit(const Event& event) {
  if (trouble_) return;
  const std::string line =
      to_json_line({.writer = writer_, .unix_nanos = clock_->unix_nanos(), .event = event}) + '\n';
  file_.write(line.data(), static_cast<std::streamsize>(line.size())).flush();
  if (!file_) trouble_ = Error{fmt::format("cannot write the event log {} any more (disk full?)", path_)};
}

Result<std::vector<LogEntry>> EventLogTail::poll() {
  std::vector<LogEntry> entries;
  if (!file_.is_open()) file_.open(path_, std::ios::binary);
  if (!file_.is_open()) return entries;
  file_.clear();  // of the end of the file, where the last call stopped
  rest_.append(std::istreambuf_iterator<char>(file_), std::istreambuf_iterator<char>());

  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    ++lines_;
    auto entry = parse_json_line(rest_.substr(begin, end - begin));
    if (!entry) return Error{fmt::format("{}:{}: {}", path_, lines_, entry.error().message)};
    entries.push_back(std::move(entry).value());
    begin = end + 1;
  }
  rest_.erase(0, begin);
  return entries;
}

Result<std::vector<LogEntry>> read_event_log(const std::string& path) {
  if (!std::ifstream(path)) return Error{fmt::format("cannot read {}", path)};
  return EventLogTail(path).poll();
}

Result<std::vector<std::vector<LogEntry>>> read_event_logs(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("events-") && name.ends_with(".jsonl")) paths.push_back(file.path().string());
  }
  if (error) return Error{fmt::format("cannot read the folder {}: {}", folder, error.message())};
  if (paths.empty()) return Error{fmt::format("no event log (events-*.jsonl) in {}", folder)};

  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<LogEntry>> logs;
  for (const std::string& path : paths) {
    auto log = read_event_log(path);
    if (!log) return log.error();
    logs.push_back(std::move(log).value());
  }
  return logs;
}

}  // namespace tw
