// SPDX-License-Identifier: Apache-2.0
#include "spot/notice_file.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text/fields.h"
#include "base/text/printable.h"
#include "spot/documents_json.h"

namespace tw::spot {
namespace {

constexpr double kMostSeconds = 7 * 86400;

std::string last_line(const std::string& content) {
  std::istringstream lines(content);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    last = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
  }
  return last;
}

/// "preempt 30 words": seconds and words are optional.
Result<FileNotice> read_plain(const std::string& line) {
  std::istringstream words(line);
  FileNotice notice;
  std::string second;
  words >> notice.kind;
  const auto after_kind = words.tellg();
  if (words >> second) {
    notice.seconds = parse_number<double>(second);
    if (!notice.seconds) {
      words.clear();
      words.seekg(after_kind);
    }
    std::getline(words >> std::ws, notice.text);
  }
  return notice;
}

}  // namespace

Result<Notice> read_notice_line(const std::string& line, Instant now, Duration grace) {
  const auto bad = [&line](const std::string& what) {
    return Error{fmt::format("\"{}\": {}", printable_line(line.substr(0, 200)), what)};
  };
  const Result<FileNotice> read = line.starts_with('{') ? read_file_notice(line) : read_plain(line);
  if (!read) return bad(read.error().message);
  const FileNotice& written = read.value();
  const auto kind = notice_kind_named(written.kind);
  if (!kind)
    return bad("expected preempt, at_risk, maintenance or freeze, and perhaps seconds, such as preempt 30" +
               did_you_mean(written.kind, kNoticeKinds));
  const double seconds = written.seconds.value_or(to_seconds(grace));
  if (!(seconds >= 0 && seconds <= kMostSeconds))
    return bad(fmt::format("expected seconds from 0 to {:.0f}", kMostSeconds));
  const Instant deadline = *kind == NoticeKind::at_risk ? kNever : now + from_seconds(seconds);
  return Notice{Source::file, *kind, deadline, printable_line(written.text)};
}

world::HttpRequest NoticeFile::request(Instant) {
  asks_ = true;
  return {.url = "file://" + path_};
}

Heard NoticeFile::take(const Moment& at, const Result<world::HttpAnswer>& answer) {
  TW_CHECK(std::exchange(asks_, false));
  has_looked_ = true;
  due_ = at.now + kEvery;
  if (!answer) return {.trouble = outage_.failed(fmt::format("file: {}", words_of(answer)))};
  outage_.worked();
  const std::string line = answer.value().status == 200 ? last_line(answer.value().body) : "";
  if (line == line_) return {};
  if (line.empty()) {
    line_.clear();
    return {};
  }
  Result<Notice> notice = read_notice_line(line, at.now, grace_);
  if (!notice && std::exchange(doubted_, line) != line) return {};
  line_ = line;
  if (!notice) return {.trouble = fmt::format("file: {}: {}", path_, notice.error().message)};
  return {.notices = {std::move(notice).value()}};
}

}  // namespace tw::spot
