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

/// Credentials for S3: those of the files, which are read anew every minute. Where neither environment nor
/// files name any (names_keys), those of the role that EC2 gives this machine, by its metadata service
/// (IMDSv2); or AwsFiles::trouble says why it gives none. Only a machine of EC2 is asked, or what
/// AWS_EC2_METADATA_SERVICE_ENDPOINT names; nobody with AWS_EC2_METADATA_DISABLED=true. They are asked for
/// anew five minutes before they end. Any thread; blocks for two seconds at most.
class RoleCredentials {
 public:
  struct Doors {
    std::function<Result<world::HttpAnswer>(const world::HttpRequest&)> exchange;
    std::function<std::int64_t()> unix_s;
    Environment environment;
    std::string sys_vendor;  ///< world::MachineSigns
    std::function<AwsFiles()> read_files;
  };

  explicit RoleCredentials(Doors doors) : doors_(std::move(doors)) {}

  /// What they say of the profile, with the keys of the role as its own, where they are used.
  AwsFiles files();

  /// A server refused the keys: the files are read, and the role is asked, before the next answer. At most
  /// once a minute the latter.
  void refused();

 private:
  std::string endpoint() const;
  Result<RoleAnswer> ask() const;
  void renew_role(std::int64_t now);

  Doors doors_;
  std::mutex mutex_;
  AwsFiles files_;                 // guarded by mutex_
  std::int64_t read_at_s_ = 0;     // the files; 0: now; guarded by mutex_
  RoleAnswer last_;                // guarded by mutex_
  std::int64_t asked_at_s_ = 0;    // for it; guarded by mutex_
  std::string trouble_;            // why nobody answered; guarded by mutex_
  std::int64_t not_before_s_ = 0;  // when nobody answered: asked again then; guarded by mutex_
};

/// The instance of this process.
RoleCredentials& role_credentials();

}  // namespace tw::host
