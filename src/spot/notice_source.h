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

/// A time on both clocks: providers give calendar times.
struct Moment {
  Instant now{};
  std::int64_t unix_s = 0;
};

/// Result of an answer.
struct Heard {
  std::vector<Notice> notices{};
  std::string trouble{};  ///< a line for the user: the source does not answer, or its answer cannot be read
};

/// One source of notices as a step machine, with at most one request under way: request(), then take() with
/// its result, then request() again from next_request() on.
class NoticeSource {
 public:
  virtual ~NoticeSource() = default;

  /// Time of the next request; kNever while one is under way.
  virtual Instant next_request() const = 0;

  /// Call it only from next_request() on.
  virtual world::HttpRequest request(Instant now) = 0;

  /// The answer, or the reason why there is none.
  virtual Heard take(const Moment& at, const Result<world::HttpAnswer>& answer) = 0;

  /// True once it was asked for a preemption and has answered, or does not answer.
  virtual bool has_looked() const = 0;

  /// The peer has left: a source that waits for this goes ahead. True when a request is due now that is worth
  /// waiting for.
  virtual bool say_gone() { return false; }
};

/// Message about a source that does not answer: one line after three failures in a row, and again only after
/// it worked.
class Outage {
 public:
  /// The line when it is due; otherwise empty.
  std::string failed(const std::string& line);

  void worked() { failures_ = 0; }

  bool lasts() const { return failures_ > 0; }

 private:
  static constexpr int kFailuresBefore = 3;
  int failures_ = 0;
};

/// The answer, or why there is none, in words.
std::string words_of(const Result<world::HttpAnswer>& answer);

/// Deadline from a provider's calendar time. If the answer has a date, that is the provider's clock; the
/// machine's own clock may be wrong.
Instant deadline_at(std::int64_t unix_s, const Moment& at, const world::HttpAnswer& answer);

/// "2017-09-18T08:22:00Z", "Mon, 19 Sep 2016 18:29:47 GMT" or "21 Jan 2019 09:00:43 GMT", as seconds since
/// 1970.
std::optional<std::int64_t> parse_provider_time(const std::string& text);

/// A stop announced hours ahead becomes a notice when this much time is left.
inline constexpr Duration kMaintenanceAhead = std::chrono::seconds(60);

}  // namespace tw::spot
