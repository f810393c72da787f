// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/check.h"
#include "fuzz/target.h"
#include "monitor/logs/event_log_json.h"

namespace tw::fuzz {
namespace {

/// Text of such a line, now and then with any byte.
std::string line_of(Input& input) {
  static const std::vector<std::string> kWords = {"{",
                                                  "}",
                                                  "\"",
                                                  ":",
                                                  ",",
                                                  "\"t\":1.5",
                                                  "\"time\":\"2026-01-02T03:04:05.678Z\"",
                                                  "\"peer\":3",
                                                  "\"round\":7",
                                                  "\"phase\":\"commit\"",
                                                  "\"about\":2",
                                                  "\"why\":\"x\"",
                                                  "\"digest\":\"00\"",
                                                  "-1",
                                                  "1e999",
                                                  "null",
                                                  "[",
                                                  "]",
                                                  "\\u0000",
                                                  "18446744073709551616",
                                                  "\"loss\":0.5"};
  std::string line = "{\"t\":1,\"time\":\"2026-01-02T03:04:05Z\",\"peer\":1,\"round\":1,\"phase\":\"wait\"";
  if (input.one_in(2)) line.clear();
  while (!input.empty() && line.size() < 4000) {
    if (input.one_in(6)) {
      line += static_cast<char>(input.byte());
    } else {
      line += input.one_of(kWords);
    }
  }
  return line;
}

}  // namespace

void logs(Input& input) {
  const Result<monitor::LogEntry> entry = monitor::parse_json_line(line_of(input));
  if (!entry) return;
  const std::string written = to_json_line(entry.value());
  const Result<monitor::LogEntry> again = monitor::parse_json_line(written);
  TW_CHECK(again && to_json_line(again.value()) == written);
  const Result<monitor::LogEntry> head = monitor::parse_json_line(written, monitor::Phases());
  TW_CHECK(head && head.value().writer == entry.value().writer);
  const world::Event &one = head.value().event, &other = again.value().event;
  TW_CHECK(one.at == other.at && one.round == other.round && one.phase() == other.phase());
  TW_CHECK(one.peer == other.peer && head.value().unix_nanos == again.value().unix_nanos);
}

}  // namespace tw::fuzz
