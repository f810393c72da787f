// SPDX-License-Identifier: Apache-2.0
#include "spot/azure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tw::spot {
namespace {

constexpr const char* kName =
    "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text";
constexpr const char* kEvents = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01";
constexpr Duration kAzurePatience = std::chrono::seconds(5);

bool stands_for(const AzureEvent& event, const std::string& name) {
  return std::ranges::find(event.resources, name) != event.resources.end();
}

}  // namespace

world::HttpRequest Azure::request(Instant) {
  world::HttpRequest request{.url = kEvents, .headers = {{"Metadata", "true"}}, .patience = kAzurePatience};
  if (is_gone_ && !to_approve_.empty()) {
    topic_ = Topic::approval;
    request.method = "POST";
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = azure_approval(to_approve_.back());
    to_approve_.pop_back();
  } else if (name_.empty()) {
    topic_ = Topic::name;
    request.url = kName;
  } else {
    topic_ = Topic::events;
    if (!is_on_) request.patience = kFirstPatience;
  }
  return request;
}

Heard Azure::take(const Moment& at, const Result<world::HttpAnswer>& answer) {
  TW_CHECK(topic_ != Topic::none);
  const Topic topic = std::exchange(topic_, Topic::none);
  if (topic == Topic::approval) {
    due_ = to_approve_.empty() ? at.now + kEvery : at.now;
    return {};
  }
  if (!answer || answer.value().status != 200) return failed(at, words_of(answer));
  return topic == Topic::name ? take_name(at, answer.value()) : take_events(at, answer.value());
}

Heard Azure::take_name(const Moment& at, const world::HttpAnswer& answer) {
  if (answer.body.empty()) return failed(at, "the name of this machine is empty");
  name_ = answer.body;
  due_ = at.now;
  return {};
}

Heard Azure::take_events(const Moment& at, const world::HttpAnswer& answer) {
  const auto events = read_azure_events(answer.body);
  if (!events) return failed(at, events.error().message);
  outage_.worked();
  is_on_ = true;
  has_looked_ = true;
  due_ = at.now + kEvery;
  Heard heard;
  for (const AzureEvent& event : events.value()) {
    std::optional<Notice> notice = judged(event, at, answer);
    if (!notice || !said_.insert(event.id).second) continue;
    if (event.resources.size() == 1 && notice->kind != NoticeKind::freeze) to_approve_.push_back(event.id);
    heard.notices.push_back(*std::move(notice));
  }
  return heard;
}

/// Nothing for an event of other machines, or one far ahead.
std::optional<Notice> Azure::judged(const AzureEvent& event, const Moment& at,
                                    const world::HttpAnswer& answer) {
  if (!stands_for(event, name_)) return std::nullopt;
  const auto time = parse_provider_time(event.not_before);
  Notice notice{Source::azure, NoticeKind::preempt, time ? deadline_at(*time, at, answer) : at.now,
                event.type};
  if (event.type == "Preempt" || event.type == "Terminate") return notice;
  const bool is_short = event.duration_s >= 0 && event.duration_s <= kMostFreeze_s;
  notice.kind = event.type == "Freeze" && is_short ? NoticeKind::freeze : NoticeKind::maintenance;
  if (notice.deadline - at.now > kMaintenanceAhead) return std::nullopt;
  return notice;
}

Heard Azure::failed(const Moment& at, const std::string& why) {
  has_looked_ = true;
  due_ = at.now + kEvery;
  return {.trouble = outage_.failed(fmt::format(
              "azure: no answer of the metadata service ({}), so no notice of Azure can come", why))};
}

bool Azure::say_gone() {
  is_gone_ = true;
  if (topic_ == Topic::none && !to_approve_.empty()) due_ = {};
  return !to_approve_.empty() || topic_ == Topic::approval;
}

}  // namespace tw::spot
