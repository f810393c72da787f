// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <set>
#include <string>

#include "spot/notice_source.h"

namespace tw::spot {

/// The instance metadata of AWS EC2, version 2: a token by PUT, then three documents, one request at a time.
/// A token is renewed 60 s before its end, and whenever one is refused (401).
/// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
class Aws final : public NoticeSource {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(2);  ///< AWS asks for 5 s; a notice can be short
  static constexpr Duration kEveryOther = std::chrono::seconds(10);
  static constexpr Duration kTokenLasts = std::chrono::seconds(21600);
  static constexpr Duration kRenewBefore = std::chrono::seconds(60);

  Instant next_request() const override;
  world::HttpRequest request(Instant now) override;
  Heard take(const Moment& at, const Result<world::HttpAnswer>& answer) override;

  bool has_looked() const override { return has_looked_; }

 private:
  enum class Topic { token, action, rebalance, scheduled };

  struct Poll {
    Topic topic;
    Instant due;
  };

  const Poll& earliest() const;
  void schedule(Topic topic, Instant due);
  bool take_token(const Moment& at, const world::HttpAnswer& answer);
  Heard read(Topic topic, const Moment& at, const world::HttpAnswer& answer);
  Heard read_action(const Moment& at, const world::HttpAnswer& answer);
  Heard read_rebalance(const world::HttpAnswer& answer);
  Heard read_scheduled(const Moment& at, const world::HttpAnswer& answer);
  Heard failed(const Moment& at, const std::string& why);
  bool is_news(const std::string& key);

  std::string token_;
  Instant renew_at_{};    ///< the token
  bool refused_ = false;  ///< the token was refused, and none has been obtained since
  std::optional<Topic> asked_;
  Instant not_before_{};  ///< no request before, after a failure
  std::array<Poll, 3> polls_ = {Poll{Topic::action, {}}, Poll{Topic::rebalance, {}},
                                Poll{Topic::scheduled, {}}};
  Instant action_at_ = kNever;  ///< the earliest announced time of the action
  std::set<std::string> said_;  ///< notices that were announced already
  Outage outage_;
  bool has_looked_ = false;
};

}  // namespace tw::spot
