// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "spot/notice_source.h"

namespace tw::spot {

/// One value of the metadata of Google Compute Engine. The first request is answered at once, later ones when
/// the value changes (wait_for_change, last_etag) or after a minute.
/// https://docs.cloud.google.com/compute/docs/instances/create-use-spot
class Gcp final : public NoticeSource {
 public:
  enum class Topic {
    preempted,    ///< FALSE, TRUE
    maintenance,  ///< NONE, MIGRATE_ON_HOST_MAINTENANCE, TERMINATE_ON_HOST_MAINTENANCE
  };

  static constexpr Duration kHangs = std::chrono::seconds(60);
  static constexpr Duration kAfter503 = std::chrono::seconds(1);  ///< of the metadata server, as Google asks
  static constexpr Duration kAfterFailure = std::chrono::seconds(5);
  /// The least time from TRUE on that Google promises; 11 s were seen in practice.
  static constexpr Duration kPreempted = std::chrono::seconds(30);
  static constexpr Duration kMaintained = std::chrono::seconds(60);

  explicit Gcp(Topic topic) : topic_(topic) {}

  Instant next_request() const override { return asks_ ? kNever : due_; }

  world::HttpRequest request(Instant now) override;
  Heard take(const Moment& at, const Result<world::HttpAnswer>& answer) override;

  bool has_looked() const override { return has_looked_ || topic_ == Topic::maintenance; }

 private:
  Heard failed(const Moment& at, int status, const std::string& why);
  Heard changed(const Moment& at, const std::string& value) const;

  Topic topic_;
  bool asks_ = false;
  Instant due_{};
  std::string etag_;
  std::string value_;
  Outage outage_;
  bool has_looked_ = false;
};

}  // namespace tw::spot
