// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/event_log_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/text.h"
#include "base/text/text_file.h"

namespace tw::monitor {

namespace {

using Json = nlohmann::ordered_json;

/// A disk that is full is asked once a second whether it still is.
constexpr Duration kTryAgain = std::chrono::seconds(1);
/// A log that was removed or moved is noticed by then.
constexpr Duration kLookAgain = std::chrono::seconds(1);
/// Limit for one file; a larger one is no event log.
constexpr std::uint64_t kMostLogBytes = 4ULL << 30;

std::optional<world::Phase> phase_named(const std::string& name) {
  const auto* const found = std::ranges::find(world::kPhaseNames, name);
  if (found == world::kPhaseNames.end()) return std::nullopt;
  return static_cast<world::Phase>(found - world::kPhaseNames.begin());
}

/// None for one of a later version.
event::Cause cause_named(const std::string& name) {
  const auto* const found = std::ranges::find(event::kCauseNames, name);
  return found != event::kCauseNames.end() ? static_cast<event::Cause>(found - event::kCauseNames.begin())
                                           : event::Cause::none;
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

/// Writes the facts of an event by their names.
struct FactWriter {
  Json& line;

  void operator()(std::string_view name, const std::string& text, std::string_view) const {
    if (!text.empty()) line[std::string(name)] = text;
  }

  void operator()(std::string_view name, std::uint64_t count, std::string_view) const {
    line[std::string(name)] = count;
  }

  void operator()(std::string_view name, double value, std::string_view) const {
    const bool whole = std::abs(value) < 0x1p53 && value == std::trunc(value);
    if (whole) {
      line[std::string(name)] = static_cast<std::int64_t>(value);
    } else {
      line[std::string(name)] = value;
    }
  }

  template <class Value>
  void operator()(std::string_view name, const std::optional<Value>& value, std::string_view meaning) const {
    if (value) (*this)(name, *value, meaning);
  }

  void operator()(std::string_view name, bool flag, std::string_view) const {
    if (flag) line[std::string(name)] = 1;
  }

  void operator()(std::string_view name, event::Cause cause, std::string_view) const {
    if (cause != event::Cause::none) line[std::string(name)] = name_of(cause);
  }

  void operator()(std::string_view name, const std::vector<PeerId>& peers, std::string_view) const {
    for (const PeerId peer : peers) line[std::string(name)].push_back(peer.value);
  }

  template <class Key, class Value>
  void operator()(std::string_view prefix, const std::vector<std::pair<Key, Value>>& of,
                  std::string_view meaning) const {
    for (const auto& [key, value] : of) (*this)(fmt::format("{}{}", prefix, text_of(key)), value, meaning);
  }

  static const std::string& text_of(const std::string& key) { return key; }

  static std::string text_of(PeerId peer) { return std::to_string(peer.value); }
};

/// Reads them again; what the line does not have stays as it is. What it has besides is of a later version.
struct FactReader {
  const Json& line;
  std::optional<Error> wrong{};

  void operator()(std::string_view name, auto& value, std::string_view) {
    const auto found = line.find(std::string(name));
    if (found == line.end() || (found->is_null() && !is_measure(value))) return;
    note(name, read(*found, value));
  }

  template <class Key, class Value>
  void operator()(std::string_view prefix, std::vector<std::pair<Key, Value>>& of, std::string_view) {
    for (const auto& [name, json] : line.items()) {
      if (!name.starts_with(prefix) || (json.is_null() && !std::is_same_v<Value, double>)) continue;
      auto& [key, value] = of.emplace_back();
      if (!set(key, name.substr(prefix.size()))) note(name, "named after a peer");
      note(name, read(json, value));
    }
  }

 private:
  /// A measure may be null: not a number. Another fact that is null is not told.
  static bool is_measure(const auto& value) {
    return std::is_same_v<std::decay_t<decltype(value)>, event::Measure>;
  }

  /// expected: empty, if all is well.
  void note(std::string_view name, std::string_view expected) {
    if (!expected.empty() && !wrong) wrong = Error{fmt::format("\"{}\" is not {}", name, expected)};
  }

  static bool set(std::string& key, std::string text) {
    key = std::move(text);
    return true;
  }

  static bool set(PeerId& key, const std::string& text) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), key.value);
    return failed == std::errc{} && end == text.data() + text.size();
  }

  static std::string_view read(const Json& json, std::string& text) {
    if (!json.is_string()) return "a text";
    text = json.get<std::string>();
    return {};
  }

  static std::string_view read(const Json& json, double& value) {
    if (!json.is_number() && !json.is_null()) return "a number";
    value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
    return {};
  }

  static std::string_view read(const Json& json, std::uint64_t& count) {
    const double value = json.is_number() ? json.get<double>() : -1;
    const bool fits = value >= 0 && value < 0x1p64 && value == std::trunc(value);
    if (!fits && !json.is_number_unsigned()) return "a whole number";
    count = json.get<std::uint64_t>();
    return {};
  }

  template <class Value>
  static std::string_view read(const Json& json, std::optional<Value>& value) {
    return read(json, value.emplace());
  }

  static std::string_view read(const Json& json, bool& flag) {
    if (!json.is_number()) return "0 or 1";
    flag = json.get<double>() != 0;
    return {};
  }

  static std::string_view read(const Json& json, event::Cause& cause) {
    if (!json.is_string()) return "a text";
    cause = cause_named(json.get<std::string>());
    return {};
  }

  static std::string_view read(const Json& json, std::vector<PeerId>& peers) {
    const auto is_id = [](const Json& id) { return id.is_number_unsigned(); };
    if (!json.is_array() || !std::ranges::all_of(json, is_id)) return "a list of whole numbers";
    for (const Json& peer : json) peers.push_back(PeerId{peer.get<std::uint64_t>()});
    return {};
  }
};

Status parse_optional_parts(const Json& line, world::Event& event) {
  if (line.contains("about")) {
    TW_TRY(auto about, count_at(line, "about"));
    event.peer = PeerId{about};
  }
  if (line.contains("why")) {
    TW_TRY(auto why, text_at(line, "why"));
    event.why = std::move(why);
  }
  FactReader reader{line};
  std::visit([&](auto& fact) { fact.fields(fact, reader); }, event.fact);
  if (reader.wrong) return *reader.wrong;
  return Unit{};
}

/// Reads the begin of a line as to_json_line writes it.
struct HeadReader {
  std::string_view rest;

  bool skip(std::string_view text) {
    if (!rest.starts_with(text)) return false;
    rest.remove_prefix(text.size());
    return true;
  }

  template <class Number>
  bool number(std::string_view name, Number& value) {
    if (!skip(name)) return false;
    const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return failed == std::errc{};
  }

  /// Without a character that needs an escape.
  bool text(std::string_view name, std::string& value) {
    if (!skip(name)) return false;
    const std::size_t end = rest.find_first_of("\"\\");
    if (end == std::string_view::npos || rest[end] != '"') return false;
    value = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return true;
  }
};

/// Nothing: it is of a wanted phase, or written otherwise.
std::optional<LogEntry> head_of(const std::string& line, const Phases& wanted) {
  if (wanted.all() || !line.ends_with('}')) return std::nullopt;
  HeadReader head{line};
  LogEntry entry;
  double at_s = 0;
  std::string time, name;
  const bool reads = head.number("{\"t\":", at_s) && head.text(",\"time\":\"", time) &&
                     head.number(",\"peer\":", entry.writer.value) &&
                     head.number(",\"round\":", entry.event.round) && head.text(",\"phase\":\"", name);
  if (!reads) return std::nullopt;
  const auto unix_nanos = parse_calendar_time(time);
  const auto phase = phase_named(name);
  if (!unix_nanos || !phase || wanted.test(static_cast<std::size_t>(*phase))) return std::nullopt;
  entry.unix_nanos = *unix_nanos;
  entry.event.at = Instant(from_seconds(at_s));
  entry.event.fact = world::fact_of(*phase);
  if (std::uint64_t about = 0; head.number(",\"about\":", about)) entry.event.peer = PeerId{about};
  return entry;
}

/// The cause is a disk that is full or fails, which may pass, rather than a wrong path.
bool may_pass(std::error_code cause) {
  return cause == std::errc::no_space_on_device || cause == std::errc::io_error ||
         cause == std::errc::read_only_file_system || cause == std::errc::file_too_large ||
         cause.value() == EDQUOT;
}

/// The lines of the parts before this one, as its first line says.
std::uint64_t lines_before(const std::string& content) {
  const auto first = parse_json_line(content.substr(0, content.find('\n')));
  const auto* log = first ? first.value().event.as<event::Log>() : nullptr;
  return log != nullptr ? log->logged.value_or(0) : 0;
}

}  // namespace

std::string calendar_time(std::int64_t unix_nanos) {
  using namespace std::chrono;
  const auto millis = floor<milliseconds>(nanoseconds(unix_nanos));  // also before 1970
  const auto whole = floor<seconds>(millis);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(whole.count())),
                     (millis - whole).count());
}

std::string to_json_line(const LogEntry& entry) {
  const world::Event& event = entry.event;
  Json line;
  line["t"] = log_seconds(event.at);
  line["time"] = calendar_time(entry.unix_nanos);
  line["peer"] = entry.writer.value;
  line["round"] = event.round;
  line["phase"] = name_of(event.phase());
  if (event.peer) line["about"] = event.peer->value;
  if (!event.why.empty()) line["why"] = event.why;
  std::visit([&](const auto& fact) { fact.fields(fact, FactWriter{line}); }, event.fact);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<LogEntry> parse_json_line(const std::string& text) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return Error{"not a JSON object"};
  TW_TRY(auto at, number_at(line, "t"));
  auto time = text_at(line, "time");
  if (!time) return time.error();
  TW_TRY(auto writer, count_at(line, "peer"));
  TW_TRY(auto round, count_at(line, "round"));
  TW_TRY(auto phase_name, text_at(line, "phase"));

  const auto unix_nanos = parse_calendar_time(time.value());
  if (!unix_nanos)
    return Error{fmt::format("\"time\" is {}, not like 2026-01-31T12:00:00.000Z", time.value())};
  const auto phase = phase_named(phase_name);
  if (!phase) return Error{fmt::format("unknown phase {}: a newer tradewind may know it", phase_name)};

  LogEntry entry{.writer = PeerId{writer}, .unix_nanos = *unix_nanos, .event = {}};
  entry.event.at = Instant(from_seconds(at.get<double>()));
  entry.event.round = round;
  entry.event.fact = world::fact_of(*phase);
  TW_TRY(parse_optional_parts(line, entry.event));
  return entry;
}

Result<LogEntry> parse_json_line(const std::string& line, const Phases& wanted) {
  if (auto head = head_of(line, wanted)) return std::move(*head);
  return parse_json_line(line);
}

std::string event_log_name(PeerId writer) {
  return writer == PeerId{} ? "events-local.jsonl" : fmt::format("events-{}.jsonl", writer.value);
}

JsonEventLog::JsonEventLog(std::string path, PeerId writer, world::Clock& clock, LogLimits limits)
    : path_(std::move(path)), writer_(writer), clock_(&clock), limits_(limits) {}

Result<JsonEventLog> JsonEventLog::open(const std::string& path, PeerId writer, world::Clock& clock,
                                        LogLimits limits) {
  TW_CHECK(limits.part_bytes > 0 && limits.parts >= 2);
  JsonEventLog log(path, writer, clock, limits);
  const std::vector<std::uint64_t> parts = log_parts(path);
  if (!parts.empty()) log.part_ = parts.back();
  const std::error_code failed = log.take_up();
  if (!failed) return log;
  if (failed == std::errc::too_many_symbolic_link_levels)
    return Error{
        fmt::format("cannot write the event log {}: it is a symbolic link; remove it, or give another "
                    "folder",
                    path)};
  if (!may_pass(failed))
    return Error{fmt::format("cannot write the event log {}: {}", path, cause_text(failed))};
  log.note_trouble(failed, clock.now());
  log.trouble_->missing = 0;
  return log;
}

/// Opens the newest part, without a line that a killed process left torn.
std::error_code JsonEventLog::take_up() {
  const std::string path = log_part_path(path_, part_);
  if (const std::error_code failed = file_.open(path)) return failed;
  if (file_.size() == 0) return {};
  const auto content = read_text_file(path, kMostLogBytes);
  if (!content) return std::make_error_code(std::errc::io_error);
  const std::string& text = content.value();
  logged_ = lines_before(text) + static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  return file_.cut(text.rfind('\n') + 1);  // npos + 1 is 0
}

/// The folder may have been removed or moved, too. After that a file of the same name is that of another run.
std::error_code JsonEventLog::take_up_in_its_folder() {
  if (was_removed_ && std::filesystem::exists(log_part_path(path_, part_)))
    return std::make_error_code(std::errc::file_exists);
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (!failed) failed = take_up();
  was_removed_ = was_removed_ && failed;
  return failed;
}

bool JsonEventLog::has_gone(Instant now, bool is_last) {
  if (!file_.is_open() || (now < looked_ + kLookAgain && !is_last)) return false;
  looked_ = now;
  return file_.has_lost(log_part_path(path_, part_));
}

/// It was removed or moved: what it held is missing from now on.
void JsonEventLog::forget_file(Instant at) {
  const std::string path = log_part_path(path_, part_);
  removal_ = fmt::format("the event log {} was removed or moved; a new one goes on without the {} before",
                         path, counted(logged_, "line"));
  cause_ = std::make_error_code(std::errc::no_such_file_or_directory);
  const std::uint64_t unwritten = trouble_ ? trouble_->missing : 0;
  trouble_ = LogTrouble{.message = removal_, .missing = logged_ + unwritten, .since = at};
  file_ = {};
  was_removed_ = true;
  if (log_parts(path_).empty()) part_ = 1;
  logged_ = 0;
}

std::error_code JsonEventLog::next_part() {
  if (const std::error_code failed = file_.open(log_part_path(path_, part_ + 1))) return failed;
  ++part_;
  for (const std::uint64_t part : log_parts(path_)) {
    const bool old = part > 1 && part + limits_.parts <= part_ + 1;
    std::error_code stays;  // then it is one too many until the next part begins
    if (old) std::filesystem::remove(log_part_path(path_, part), stays);
  }
  return {};
}

std::string JsonEventLog::line_of(const world::Event& event) const {
  return to_json_line({.writer = writer_, .unix_nanos = clock_->unix_nanos(), .event = event}) + '\n';
}

/// The event's line, and before it what has to be said about the log.
std::string JsonEventLog::text_of(const world::Event& event, std::uint64_t& lines) const {
  std::string text;
  lines = 1;
  world::Event about{.at = event.at, .round = event.round};
  if (start_ && part_ == 1 && file_.size() == 0) {
    world::Event start = *start_;
    start.at = event.at;
    text += line_of(start);
    ++lines;
  }
  if (part_ > 1 && file_.size() == 0) {
    about.fact = event::Log{.part = part_, .logged = logged_};
    text += line_of(about);
    ++lines;
  }
  if (trouble_ && trouble_->missing > 0) {
    about.why = cause_.message();
    about.fact = event::Log{.missing = trouble_->missing,
                            .seconds = std::max(0.0, to_seconds(event.at - trouble_->since))};
    text += line_of(about);
    ++lines;
  }
  return text + line_of(event);
}

void JsonEventLog::emit(const world::Event& event) {
  const Instant now = clock_->now();
  const bool is_last = event.phase() == world::Phase::stop;  // nothing comes later that could try again
  if (trouble_ && now < tried_ + kTryAgain && !is_last) {
    ++trouble_->missing;
    return;
  }
  tried_ = now;
  if (has_gone(now, is_last)) forget_file(event.at);
  std::error_code failed;
  if (!file_.is_open()) failed = take_up_in_its_folder();
  if (!failed && file_.size() >= limits_.part_bytes) failed = next_part();
  std::uint64_t lines = 0;
  if (!failed) failed = file_.append(text_of(event, lines));
  if (event.as<event::Start>()) start_ = event;
  if (failed) return note_trouble(failed, event.at);
  logged_ += lines;
  trouble_.reset();
}

void JsonEventLog::note_trouble(std::error_code cause, Instant at) {
  if (!trouble_ || trouble_->missing == 0) trouble_ = LogTrouble{.message = {}, .missing = 0, .since = at};
  ++trouble_->missing;
  cause_ = cause;
  trouble_->message =
      fmt::format("cannot write the event log {}: {}", log_part_path(path_, part_), cause_text(cause));
}

}  // namespace tw::monitor
