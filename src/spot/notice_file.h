// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "spot/notice_source.h"

namespace tw::spot {

/// A file that somebody writes who knows when this machine goes: a hook of a scheduler, a script, a person.
/// Its last line counts that is neither empty nor begins with #:
///
///     preempt 30 the owner wants the machine back
///     at_risk
///     {"kind": "maintenance", "seconds": 60, "text": "new kernel"}
///
/// The seconds count from when the line is read first, at most half a second after it is written; without
/// them a preemption or maintenance has the grace. No file, or an empty one: nothing. Another line is another
/// notice.
class NoticeFile final : public NoticeSource {
 public:
  static constexpr Duration kEvery = std::chrono::milliseconds(500);

  /// path: absolute.
  NoticeFile(std::string path, Duration grace) : path_(std::move(path)), grace_(grace) {}

  Instant next_request() const override { return asks_ ? kNever : due_; }

  world::HttpRequest request(Instant now) override;
  Heard take(const Moment& at, const Result<world::HttpAnswer>& answer) override;

  bool has_looked() const override { return has_looked_; }

 private:
  std::string path_;
  Duration grace_;
  bool asks_ = false;
  Instant due_{};
  std::string line_;     ///< that was heard
  std::string doubted_;  ///< that could not be read: whoever writes it may be in the middle of it
  Outage outage_;
  bool has_looked_ = false;
};

/// One line of such a file. Errors name the line and what was expected.
Result<Notice> read_notice_line(const std::string& line, Instant now, Duration grace);

}  // namespace tw::spot
