// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spot/notice.h"
#include "world/http.h"

namespace tw::spot {

/// A time on both time lines: providers give theirs by the calendar.
struct Moment {
  Instant now{};
  std::int64_t unix_s = 0;
};

/// What an answer came to.
struct Heard {
  std::vector<Notice> notices{};
  std::string trouble{};  ///< for the user, a line: the source cannot be asked, or says what cannot be read
};

/// One source of notices as a step machine. It has one request under way at most: request(), then take() with
/// what came of it, then request() again from next_request() on.
class NoticeSource {
 public:
  virtual ~NoticeSource() = default;

  /// When the next request is due; kNever while one is under way.
  virtual Instant next_request() const = 0;

  /// Only from next_request() on.
  virtual world::HttpRequest request(Instant now) = 0;

  /// The answer, or why there is none.
  virtual Heard take(const Moment& at, const Result<world::HttpAnswer>& answer) = 0;

  /// Whether it has been asked for a preemption and has answered, or does not answer.
  virtual bool has_looked() const = 0;

  /// The peer has left: a source that waits for this goes ahead. True: a request is due now, which is worth
  /// waiting for.
  virtual bool say_gone() { return false; }
};

/// What the user hears of a source that does not answer: one line when it has failed three times in a row,
/// and again only after it worked.
class Outage {
 public:
  /// The line, when it is time for it; else empty.
  std::string failed(const std::string& line);

  void worked() { failures_ = 0; }

  bool lasts() const { return failures_ > 0; }

 private:
  static constexpr int kFailuresBefore = 3;
  int failures_ = 0;
};

/// The answer, or why it is none, in words.
std::string words_of(const Result<world::HttpAnswer>& answer);

/// A deadline that a provider gives by the calendar. Where the answer has a date of its own, that is the
/// clock by which it was given; the machine's own may be wrong.
Instant deadline_at(std::int64_t unix_s, const Moment& at, const world::HttpAnswer& answer);

/// "2017-09-18T08:22:00Z", "Mon, 19 Sep 2016 18:29:47 GMT" or "21 Jan 2019 09:00:43 GMT", as seconds since
/// 1970.
std::optional<std::int64_t> parse_provider_time(const std::string& text);

/// A stop of the machine that is announced hours ahead becomes a notice when so much time is left.
inline constexpr Duration kMaintenanceAhead = std::chrono::seconds(60);

}  // namespace tw::spot
