// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "spot/documents_json.h"
#include "spot/notice_source.h"

namespace tw::spot {

/// Azure Scheduled Events. The first request turns the service on, which may take two minutes; then it is
/// polled each second. Azure reports events to all machines of a scale set, so each is compared with this
/// machine's name. Once the peer has left, its event is approved, which ends the wait, unless it concerns
/// other machines too.
/// https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
class Azure final : public NoticeSource {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(1);
  static constexpr Duration kFirstPatience = std::chrono::seconds(150);
  /// A machine that is paused for less may stay in the run; Azure pauses for 5 to 9 s if memory is kept.
  static constexpr double kMostFreeze_s = 9;

  Instant next_request() const override { return topic_ == Topic::none ? due_ : kNever; }

  world::HttpRequest request(Instant now) override;
  Heard take(const Moment& at, const Result<world::HttpAnswer>& answer) override;

  bool has_looked() const override { return has_looked_; }

  bool say_gone() override;

 private:
  enum class Topic { none, name, events, approval };

  Heard take_name(const Moment& at, const world::HttpAnswer& answer);
  Heard take_events(const Moment& at, const world::HttpAnswer& answer);
  std::optional<Notice> judged(const AzureEvent& event, const Moment& at, const world::HttpAnswer& answer);
  Heard failed(const Moment& at, const std::string& why);

  Topic topic_ = Topic::none;  ///< of the request under way
  std::string name_;
  Instant due_{};
  std::set<std::string> said_;           ///< ids of events that became notices
  std::vector<std::string> to_approve_;  ///< those of them that concern only this machine
  Outage outage_;
  bool has_looked_ = false;
  bool is_gone_ = false;
  bool is_on_ = false;  ///< the service has answered
};

}  // namespace tw::spot
