// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "spot/notice_source.h"

namespace tw::spot {

/// A notice file: a scheduler's hook, a script or a person writes it when this machine has to go. Its last
/// line that is neither empty nor begins with # counts:
///
///     preempt 30 the owner wants the machine back
///     at_risk
///     {"kind": "maintenance", "seconds": 60, "text": "new kernel"}
///
/// The seconds count from the first reading of the line, at most half a second after it is written. Without
/// them a preemption or maintenance lasts the grace. A missing or empty file is no notice. A changed line is
/// a new notice.
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
  std::string line_;     ///< the line that was read last
  std::string doubted_;  ///< a line that could not be read: its writer may be in the middle of it
  Outage outage_;
  bool has_looked_ = false;
};

/// Reads one line of such a file. Errors name the line and what was expected.
Result<Notice> read_notice_line(const std::string& line, Instant now, Duration grace);

}  // namespace tw::spot
