// SPDX-License-Identifier: Apache-2.0
#include "spot/aws.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "spot/documents_json.h"

namespace tw::spot {
namespace {

using std::chrono_literals::operator""s;

constexpr const char* kRoot = "http://169.254.169.254/latest/";
constexpr Duration kAwsPatience = 2s;
constexpr Duration kInterruption = 120s;  // between a notice and the interruption

}  // namespace

const Aws::Poll& Aws::earliest() const { return *std::ranges::min_element(polls_, {}, &Poll::due); }

void Aws::schedule(Topic topic, Instant due) {
  for (Poll& poll : polls_)
    if (poll.topic == topic) poll.due = due;
}

Instant Aws::next_request() const { return asked_ ? kNever : std::max(earliest().due, not_before_); }

world::HttpRequest Aws::request(Instant now) {
  if (token_.empty() || now >= renew_at_) {
    asked_ = Topic::token;
    const auto lasts = std::chrono::duration_cast<std::chrono::seconds>(kTokenLasts);
    return {.method = "PUT",
            .url = std::string(kRoot) + "api/token",
            .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", std::to_string(lasts.count())}},
            .patience = kAwsPatience};
  }
  asked_ = earliest().topic;
  const char* const path = *asked_ == Topic::action      ? "meta-data/spot/instance-action"
                           : *asked_ == Topic::rebalance ? "meta-data/events/recommendations/rebalance"
                                                         : "meta-data/events/maintenance/scheduled";
  return {.url = std::string(kRoot) + path,
          .headers = {{"X-aws-ec2-metadata-token", token_}},
          .patience = kAwsPatience};
}

Heard Aws::take(const Moment& at, const Result<world::HttpAnswer>& answer) {
  TW_CHECK(asked_);
  const Topic topic = *std::exchange(asked_, std::nullopt);
  const int status = answer ? answer.value().status : 0;
  if (topic == Topic::token) {
    if (status != 200 || !take_token(at, answer.value())) return failed(at, words_of(answer));
    return {};
  }
  if (status == 401) {
    token_.clear();
    return std::exchange(refused_, true) ? failed(at, words_of(answer)) : Heard{};
  }
  if (status != 200 && status != 404) return failed(at, words_of(answer));
  outage_.worked();
  refused_ = false;
  schedule(topic, at.now + (topic == Topic::action ? kEvery : kEveryOther));
  if (topic == Topic::action) has_looked_ = true;
  return status == 200 ? read(topic, at, answer.value()) : Heard{};
}

bool Aws::take_token(const Moment& at, const world::HttpAnswer& answer) {
  const bool fits = std::ranges::all_of(answer.body, [](char c) { return c > ' ' && c < 0x7f; });
  if (!fits || answer.body.empty()) return false;
  token_ = answer.body;
  renew_at_ = at.now + kTokenLasts - kRenewBefore;
  return true;
}

Heard Aws::failed(const Moment& at, const std::string& why) {
  has_looked_ = true;
  not_before_ = at.now + kEvery;
  return {.trouble = outage_.failed(fmt::format(
              "aws: no answer of the instance metadata ({}), so no notice of AWS can come; inside a "
              "container they need: aws ec2 modify-instance-metadata-options "
              "--http-put-response-hop-limit 2",
              why))};
}

Heard Aws::read(Topic topic, const Moment& at, const world::HttpAnswer& answer) {
  if (topic == Topic::action) return read_action(at, answer);
  return topic == Topic::rebalance ? read_rebalance(answer) : read_scheduled(at, answer);
}

bool Aws::is_news(const std::string& key) { return said_.insert(key).second; }

Heard Aws::read_action(const Moment& at, const world::HttpAnswer& answer) {
  const auto action = read_instance_action(answer.body);
  if (!action)
    return {.trouble = is_news("unreadable") ? "aws: spot/instance-action: " + action.error().message : ""};
  const auto time = parse_provider_time(action.value().time);
  // Hibernation begins at once and has no time; for the others two minutes remain.
  const Duration without_time = action.value().action == "hibernate" ? Duration{} : kInterruption;
  const Instant deadline = time ? deadline_at(*time, at, answer) : at.now + without_time;
  const bool is_sooner = deadline + kEvery < action_at_;
  if (!is_news(action.value().action) && !is_sooner) return {};
  action_at_ = std::min(action_at_, deadline);
  return {.notices = {
              {Source::aws, NoticeKind::preempt, deadline, "spot instance action " + action.value().action}}};
}

Heard Aws::read_rebalance(const world::HttpAnswer& answer) {
  if (!is_news("rebalance " + answer.body)) return {};
  return {.notices = {{Source::aws, NoticeKind::at_risk, kNever, "rebalance recommendation"}}};
}

Heard Aws::read_scheduled(const Moment& at, const world::HttpAnswer& answer) {
  const auto events = read_aws_events(answer.body);
  if (!events) {
    return {.trouble =
                is_news("unreadable") ? "aws: events/maintenance/scheduled: " + events.error().message : ""};
  }
  Heard heard;
  for (const AwsEvent& event : events.value()) {
    const auto time = parse_provider_time(event.not_before);
    if (event.state != "active" || !time) continue;
    const Instant deadline = deadline_at(*time, at, answer);
    if (deadline - at.now > kMaintenanceAhead || !is_news(event.code + event.not_before)) continue;
    heard.notices.push_back({Source::aws, NoticeKind::maintenance, deadline, event.code});
  }
  return heard;
}

}  // namespace tw::spot
