// SPDX-License-Identifier: Apache-2.0
#include "spot/gcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tw::spot {
namespace {

constexpr const char* kInstance = "http://metadata.google.internal/computeMetadata/v1/instance/";
constexpr Duration kGcpPatience = std::chrono::seconds(5);

std::string without_space(std::string text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  return text;
}

/// The text if it may stand in a URL unescaped; else empty.
std::string plain_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  };
  return std::ranges::all_of(text, is_plain) ? text : std::string();
}

}  // namespace

world::HttpRequest Gcp::request(Instant) {
  asks_ = true;
  std::string url = std::string(kInstance) + (topic_ == Topic::preempted ? "preempted" : "maintenance-event");
  Duration patience = kGcpPatience;
  if (!etag_.empty()) {
    const auto hangs = std::chrono::duration_cast<std::chrono::seconds>(kHangs);
    url += fmt::format("?wait_for_change=true&timeout_sec={}&last_etag={}", hangs.count(), etag_);
    patience += kHangs;
  }
  return {.url = url, .headers = {{"Metadata-Flavor", "Google"}}, .patience = patience};
}

Heard Gcp::take(const Moment& at, const Result<world::HttpAnswer>& answer) {
  TW_CHECK(std::exchange(asks_, false));
  has_looked_ = true;
  const int status = answer ? answer.value().status : 0;
  if (status != 200) return failed(at, status, words_of(answer));
  if (answer.value().header("Metadata-Flavor") != "Google")
    return failed(at, status, "the answer is not Google's: it lacks Metadata-Flavor: Google");
  outage_.worked();
  etag_ = plain_word(answer.value().header("ETag").value_or(""));
  due_ = etag_.empty() ? at.now + kGcpPatience : at.now;  // a server without an etag is polled
  const std::string value = without_space(answer.value().body);
  return std::exchange(value_, value) == value ? Heard{} : changed(at, value);
}

Heard Gcp::failed(const Moment& at, int status, const std::string& why) {
  due_ = at.now + (status == 503 ? kAfter503 : kAfterFailure);
  return {.trouble = outage_.failed(fmt::format(
              "gcp: no answer of the metadata server ({}), so no notice of Google can come", why))};
}

Heard Gcp::changed(const Moment& at, const std::string& value) const {
  if (topic_ == Topic::preempted) {
    if (value == "FALSE") return {};
    if (value != "TRUE") return {.trouble = fmt::format("gcp: preempted: {}: expected TRUE or FALSE", value)};
    return {.notices = {{Source::gcp, NoticeKind::preempt, at.now + kPreempted, "preempted"}}};
  }
  if (value == "NONE") return {};
  // A live migration pauses the machine for less than a second up to some seconds.
  const NoticeKind kind =
      value == "MIGRATE_ON_HOST_MAINTENANCE" ? NoticeKind::freeze : NoticeKind::maintenance;
  return {.notices = {{Source::gcp, kind, at.now + kMaintained, value}}};
}

}  // namespace tw::spot
