// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/system/environment.h"

/// What the files of the AWS tools say of a profile. Pure.
namespace tw::host {

/// Texts of the files that all tools of S3 read; empty: there is none.
struct AwsFiles {
  std::string credentials{};  ///< ~/.aws/credentials
  std::string config{};       ///< ~/.aws/config
  std::string trouble{};      ///< why keys may be missing, for messages; empty: nothing went wrong

  void add_trouble(const std::string& why);

  auto operator<=>(const AwsFiles&) const = default;
};

/// By keys in small letters. What is below a key, such as addressing_style below "s3 =", has the key
/// "s3.addressing_style".
using AwsProfile = std::map<std::string, std::string>;

/// AWS_PROFILE, else "default".
std::string profile_name(const Environment& environment);

/// What both files say of the profile, the credentials first; then its section of services in the config.
AwsProfile profile_in(const AwsFiles& files, const std::string& name);

/// What the files say of the profile and no other, in few bytes: s3_place reads them for each request.
AwsFiles of_profile(const Environment& environment, const AwsFiles& files);

}  // namespace tw::host
