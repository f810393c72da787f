// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "spot/notice_source.h"

/// Helpers for tests of sources: a source's requests one at a time, and the notices that it makes of answers.
namespace tw::spot {

using namespace std::chrono_literals;

/// A source, its time, and the wall clock of its machine.
class Conversation {
 public:
  explicit Conversation(NoticeSource& source) : source_(source) {}

  /// Goes to the time of the next request, and makes it.
  world::HttpRequest asks() {
    EXPECT_NE(source_.next_request(), kNever) << "a request is under way";
    now = std::max(now, source_.next_request());
    world::HttpRequest request = source_.request(now);
    EXPECT_EQ(source_.next_request(), kNever) << "one at a time";
    return request;
  }

  Heard hears(int status, std::string body = "", world::HttpHeaders headers = {}) {
    return source_.take(moment(), world::HttpAnswer{status, std::move(body), std::move(headers)});
  }

  Heard hears_nothing(const std::string& why) { return source_.take(moment(), Error{why}); }

  Moment moment() const {
    return {now, wall_s + std::chrono::duration_cast<std::chrono::seconds>(now - kBegin).count()};
  }

  static constexpr Instant kBegin{1000s};

  Instant now = kBegin;
  std::int64_t wall_s = 0;  ///< seconds since 1970 at kBegin

 private:
  NoticeSource& source_;
};

/// No notice, and no trouble.
inline void expect_quiet(const Heard& heard) {
  EXPECT_TRUE(heard.notices.empty()) << text_of(heard.notices.front(), Instant{});
  EXPECT_EQ(heard.trouble, "");
}

/// Exactly this notice.
inline void expect_notice(const Heard& heard, NoticeKind kind, Instant deadline, const std::string& text) {
  ASSERT_EQ(heard.notices.size(), 1U) << heard.trouble;
  EXPECT_EQ(heard.notices[0].kind, kind);
  EXPECT_EQ(heard.notices[0].deadline, deadline);
  EXPECT_EQ(heard.notices[0].text, text);
}

}  // namespace tw::spot
