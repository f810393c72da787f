// SPDX-License-Identifier: Apache-2.0
#include "host/store/role_credentials.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "base/text/date.h"

namespace tw::host {
namespace {

/// A machine with a metadata service.
struct Ec2 {
  std::map<std::string, std::string> environment{};
  std::string vendor = "Amazon EC2";
  std::string file{};
  std::string ends = "2026-05-20T16:00:00Z";
  std::int64_t now = parse_date("2026-05-20T10:00:00Z").value();
  bool answers = true;
  int status = 200;  ///< of its answers
  std::vector<std::string> asked{};

  RoleCredentials credentials() {
    return RoleCredentials(
        {.exchange = [this](const world::HttpRequest& request) { return exchange(request); },
         .unix_s = [this] { return now; },
         .environment = [this](const std::string& name) { return environment[name]; },
         .sys_vendor = vendor,
         .read_files = [this] { return AwsFiles{file}; }});
  }

 private:
  Result<world::HttpAnswer> exchange(const world::HttpRequest& request) {
    asked.push_back(request.method + " " + request.url);
    if (!answers) return Error{"refused"};
    if (status != 200) return world::HttpAnswer{status};
    if (request.method == "PUT") return world::HttpAnswer{200, "a-token"};
    const auto token = world::HttpAnswer{.headers = request.headers}.header("x-aws-ec2-metadata-token");
    if (token != "a-token") return world::HttpAnswer{401};
    if (request.url.ends_with("/security-credentials/")) return world::HttpAnswer{200, "reader\n"};
    return world::HttpAnswer{200, R"({"Code": "Success", "AccessKeyId": "ASIA1", "SecretAccessKey": "s",)"
                                  R"( "Token": "t", "Expiration": ")" +
                                      ends + "\"}"};
  }
};

S3Place placed(Ec2& machine, RoleCredentials& credentials) {
  const auto environment = [&](const std::string& name) { return machine.environment[name]; };
  return s3_place(environment, credentials.files()).value();
}

TEST(RoleCredentials, come_from_the_metadata_service_of_ec2) {
  Ec2 machine;
  RoleCredentials credentials = machine.credentials();
  EXPECT_EQ(placed(machine, credentials).credentials, (S3Credentials{"ASIA1", "s", "t"}));
  EXPECT_EQ(machine.asked,
            (std::vector<std::string>{
                "PUT http://169.254.169.254/latest/api/token",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/reader"}));
}

TEST(RoleCredentials, are_asked_for_again_before_they_end) {
  Ec2 machine;
  RoleCredentials credentials = machine.credentials();
  credentials.files();
  machine.now += 5 * 3600;
  credentials.files();
  EXPECT_EQ(machine.asked.size(), 3U);
  machine.now += 3600 - 200;
  machine.ends = "2026-05-20T22:00:00Z";
  credentials.files();
  EXPECT_EQ(machine.asked.size(), 6U);
  machine.answers = false;
  machine.now += 7 * 3600;
  EXPECT_EQ(placed(machine, credentials).credentials, std::nullopt) << "they ended";
}

TEST(RoleCredentials, are_not_asked_for_by_a_machine_of_another_kind_or_with_own_keys) {
  std::vector<Ec2> machines(7);
  machines[0].vendor = "QEMU";
  machines[1].environment = {{"AWS_ACCESS_KEY_ID", "AKIA"}, {"AWS_SECRET_ACCESS_KEY", "own"}};
  machines[2].file = "[default]\naws_access_key_id=A\naws_secret_access_key=B\n";
  machines[3].environment = {{"AWS_EC2_METADATA_DISABLED", "true"}};
  machines[4].environment = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}};
  machines[5].environment = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/"}};
  machines[6].file = "[default]\naws_access_key_id=A\n";
  for (Ec2& machine : machines) {
    RoleCredentials credentials = machine.credentials();
    EXPECT_EQ(credentials.files(), AwsFiles{machine.file});
    EXPECT_TRUE(machine.asked.empty());
  }
}

TEST(RoleCredentials, wait_a_minute_for_a_service_that_does_not_answer) {
  Ec2 machine{.vendor = "", .answers = false};
  machine.environment = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1338/"}};
  RoleCredentials credentials = machine.credentials();
  EXPECT_EQ(credentials.files().trouble, "http://127.0.0.1:1338/latest/api/token: refused");
  machine.status = 404;
  EXPECT_EQ(placed(machine, credentials).nobody,
            "no credentials; http://127.0.0.1:1338/latest/api/token: refused");
  EXPECT_EQ(machine.asked, std::vector<std::string>{"PUT http://127.0.0.1:1338/latest/api/token"});
  machine.now += 60;
  machine.answers = true;
  credentials.files();
  EXPECT_EQ(machine.asked.size(), 2U);
  machine.now += 60;
  machine.status = 200;
  EXPECT_EQ(credentials.files().trouble, "");
  EXPECT_EQ(placed(machine, credentials).credentials, (S3Credentials{"ASIA1", "s", "t"}));
}

TEST(RoleCredentials, that_are_missing_have_a_reason) {
  Ec2 machine{.status = 404};
  RoleCredentials credentials = machine.credentials();
  EXPECT_EQ(credentials.files().trouble, "http://169.254.169.254/latest/api/token: answered with 404");
  Ec2 late{.ends = "soon"};
  RoleCredentials none = late.credentials();
  EXPECT_EQ(none.files().trouble,
            "http://169.254.169.254: expected AccessKeyId, SecretAccessKey, Token and Expiration of a role");
}

TEST(RoleCredentials, are_those_of_the_role_where_the_files_lack_the_profile) {
  Ec2 machine{.file = "[other]\naws_access_key_id=A\naws_secret_access_key=B\n"};
  RoleCredentials credentials = machine.credentials();
  EXPECT_EQ(placed(machine, credentials).credentials, (S3Credentials{"ASIA1", "s", "t"}));
  machine.environment = {{"AWS_PROFILE", "other"}};
  credentials.refused();
  EXPECT_EQ(placed(machine, credentials).credentials, (S3Credentials{"A", "B", ""}));
}

TEST(RoleCredentials, are_read_anew_after_a_minute_or_when_they_are_refused) {
  const auto keys = [](const std::string& id) {
    return "[default]\naws_access_key_id=" + id + "\naws_secret_access_key=B\n";
  };
  Ec2 machine{.file = keys("ONE")};
  RoleCredentials credentials = machine.credentials();
  EXPECT_EQ(credentials.files().credentials, keys("ONE"));
  machine.file = keys("TWO");
  EXPECT_EQ(credentials.files().credentials, keys("ONE"));
  credentials.refused();
  EXPECT_EQ(credentials.files().credentials, keys("TWO"));
  machine.file = keys("THREE");
  machine.now += 60;
  EXPECT_EQ(credentials.files().credentials, keys("THREE"));
}

TEST(RoleCredentials, of_a_role_are_asked_for_anew_at_most_once_a_minute_when_they_are_refused) {
  Ec2 machine;
  RoleCredentials credentials = machine.credentials();
  credentials.files();
  credentials.refused();
  credentials.files();
  EXPECT_EQ(machine.asked.size(), 3U);
  machine.now += 60;
  credentials.refused();
  credentials.files();
  EXPECT_EQ(machine.asked.size(), 6U);
}

TEST(RoleCredentials, need_all_parts) {
  EXPECT_EQ(read_role_answer("{}").error().message,
            "expected AccessKeyId, SecretAccessKey, Token and Expiration of a role");
  EXPECT_FALSE(read_role_answer("<html>"));
}

}  // namespace
}  // namespace tw::host
