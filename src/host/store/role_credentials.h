// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/result.h"
#include "host/store/s3_place.h"
#include "world/http.h"

namespace tw::host {

/// Answer of the metadata service of EC2 about a role. Dates as in base/text/date.h. The error names what is
/// missing.
struct RoleAnswer {
  S3Credentials credentials;
  std::int64_t ends_unix_s = 0;
};

Result<RoleAnswer> read_role_answer(const std::string& json);

/// Credentials for S3 if neither environment nor ~/.aws/credentials has any: those of the machine's EC2 role,
/// by the metadata service (IMDSv2). It is asked only on EC2, or at AWS_EC2_METADATA_SERVICE_ENDPOINT; never
/// with AWS_EC2_METADATA_DISABLED=true. They are renewed five minutes before they expire. Any thread; blocks
/// for two seconds at most.
class RoleCredentials {
 public:
  struct Doors {
    std::function<Result<world::HttpAnswer>(const world::HttpRequest&)> exchange;
    std::function<std::int64_t()> unix_s;
    Environment environment;
    std::string sys_vendor;   ///< world::MachineSigns
    std::string shared_file;  ///< text of ~/.aws/credentials
  };

  explicit RoleCredentials(Doors doors) : doors_(std::move(doors)) {}

  /// A substitute for the text of ~/.aws/credentials (s3_place).
  std::string shared_file();

 private:
  bool are_given() const;
  std::string endpoint() const;
  Result<RoleAnswer> ask() const;

  Doors doors_;
  std::mutex mutex_;
  RoleAnswer last_;                // guarded by mutex_
  std::int64_t not_before_s_ = 0;  // after no answer: time of the next attempt; guarded by mutex_
};

/// The instance of this process.
RoleCredentials& role_credentials();

}  // namespace tw::host
