// SPDX-License-Identifier: Apache-2.0
#include "host/store/s3_place.h"

#include <gmock/gmock.h>

#include <map>

namespace tw::host {
namespace {

using testing::HasSubstr;

Environment these(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found != values.end() ? found->second : std::string();
  };
}

S3Place placed(std::map<std::string, std::string> values, const AwsFiles& files = {}) {
  const auto place = s3_place(these(std::move(values)), files);
  EXPECT_TRUE(place) << place.error().message;
  return place ? place.value() : S3Place{};
}

std::string trouble(std::map<std::string, std::string> values, const AwsFiles& files = {}) {
  const auto place = s3_place(these(std::move(values)), files);
  return place ? "none" : place.error().message;
}

TEST(S3Place, is_that_of_the_region_where_nothing_else_is_said) {
  const S3Place place = placed({{"AWS_REGION", "eu-west-1"}});
  EXPECT_EQ(url_of(target_of(place, {"data", "run/x"})), "https://data.s3.eu-west-1.amazonaws.com/run/x");
  EXPECT_EQ(url_of(target_of(place, {"my.data", "x"})), "https://s3.eu-west-1.amazonaws.com/my.data/x");
  EXPECT_FALSE(place.credentials);
}

TEST(S3Place, has_the_bucket_in_the_path_at_another_endpoint) {
  const S3Place place = placed({{"AWS_ENDPOINT_URL", "http://10.0.0.1:7480/"}});
  EXPECT_EQ(url_of(target_of(place, {"data", "x"})), "http://10.0.0.1:7480/data/x");
  EXPECT_THAT(trouble({{"AWS_ENDPOINT_URL", "10.0.0.1"}}), HasSubstr("AWS_ENDPOINT_URL=10.0.0.1: expected"));
  for (const std::string other : {"http://a/b", "http://a?x", "ftp://a", "http://"})
    EXPECT_EQ(trouble({{"AWS_ENDPOINT_URL", other}}),
              "AWS_ENDPOINT_URL=" + other + ": expected http://HOST[:PORT] or https://HOST[:PORT]");
}

TEST(S3Place, takes_credentials_of_the_environment_before_those_of_the_file) {
  const AwsFiles file{
      "[default]\naws_access_key_id = A\naws_secret_access_key=B\n# no\n"
      "[other]\naws_access_key_id=C\naws_secret_access_key = D\naws_session_token=E\n"};
  EXPECT_EQ(placed({}, file).credentials, (S3Credentials{"A", "B", ""}));
  EXPECT_EQ(placed({{"AWS_PROFILE", "other"}}, file).credentials, (S3Credentials{"C", "D", "E"}));
  EXPECT_EQ(placed({{"AWS_ACCESS_KEY_ID", "X"}, {"AWS_SECRET_ACCESS_KEY", "Y"}}, file).credentials,
            (S3Credentials{"X", "Y", ""}));
  EXPECT_EQ(trouble({{"AWS_PROFILE", "none"}}, file),
            "AWS_PROFILE=none: ~/.aws/credentials and ~/.aws/config have no keys of this profile");
  EXPECT_EQ(trouble({{"AWS_ACCESS_KEY_ID", "X"}}), "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(trouble({}, {"[default]\naws_access_key_id = X\n"}),
            "the profile default: aws_access_key_id is set without aws_secret_access_key");
}

TEST(S3Place, takes_from_the_config_what_the_environment_leaves_out) {
  const AwsFiles files{
      "[minio]\naws_access_key_id=A\naws_secret_access_key=B\n",
      "[default]\nregion = eu-west-1\n[profile minio]\nregion=here\nendpoint_url = http://10.0.0.1:9000\n"
      "s3 =\n  addressing_style = virtual\n[profile keys]\naws_access_key_id=C\naws_secret_access_key=D\n"};
  EXPECT_EQ(placed({}, files).host, "s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(placed({{"AWS_REGION", "us-west-2"}}, files).region, "us-west-2");
  const S3Place minio = placed({{"AWS_PROFILE", "minio"}}, files);
  EXPECT_EQ(url_of(target_of(minio, {"data", "x"})), "http://data.10.0.0.1:9000/x");
  EXPECT_EQ(minio.region, "here");
  EXPECT_EQ(minio.credentials, (S3Credentials{"A", "B", ""}));
  EXPECT_EQ(placed({{"AWS_PROFILE", "keys"}}, files).credentials, (S3Credentials{"C", "D", ""}));
  const std::map<std::string, std::string> environment{{"AWS_PROFILE", "minio"}};
  EXPECT_EQ(placed(environment, of_profile(these(environment), files)), minio);
  EXPECT_EQ(of_profile(these({{"AWS_PROFILE", "none"}}), files), AwsFiles{});
}

TEST(S3Place, takes_the_endpoint_of_s3_in_the_services_of_the_profile) {
  const AwsFiles files{"",
                       "[default]\nendpoint_url = http://all\nservices = mine\n"
                       "[services mine]\nsqs =\n  endpoint_url = http://sqs\n"
                       "s3 =\n  endpoint_url = http://127.0.0.1:9000\n  addressing_style = virtual\n"};
  const S3Place place = placed({}, files);
  EXPECT_EQ(url_of(target_of(place, {"data", "x"})), "http://data.127.0.0.1:9000/x");
  EXPECT_EQ(placed({}, of_profile(these({}), files)), place);
  EXPECT_EQ(placed({{"AWS_ENDPOINT_URL", "http://b"}}, files).host, "b");
}

TEST(S3Place, puts_the_bucket_where_it_is_told) {
  const auto url = [](std::map<std::string, std::string> values) {
    return url_of(target_of(placed(std::move(values)), {"data", "x"}));
  };
  EXPECT_EQ(url({{"AWS_S3_ADDRESSING_STYLE", "virtual"}, {"AWS_ENDPOINT_URL", "https://s3.host"}}),
            "https://data.s3.host/x");
  EXPECT_EQ(url({{"AWS_S3_ADDRESSING_STYLE", "path"}}), "https://s3.us-east-1.amazonaws.com/data/x");
  EXPECT_EQ(url({{"AWS_S3_ADDRESSING_STYLE", "auto"}}), "https://data.s3.us-east-1.amazonaws.com/x");
  EXPECT_EQ(trouble({{"AWS_S3_ADDRESSING_STYLE", "dns"}}),
            "AWS_S3_ADDRESSING_STYLE=dns: expected virtual, path or auto");
}

TEST(S3Place, says_what_of_a_profile_it_does_not_read) {
  const AwsFiles files{"", "[profile job]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n"};
  EXPECT_EQ(
      trouble({{"AWS_PROFILE", "job"}}, files),
      "the profile job has no keys but role_arn, which is not read; set the variables that \"aws configure "
      "export-credentials --profile job --format env\" prints");
}

TEST(S3Place, says_why_requests_go_unsigned) {
  EXPECT_EQ(who_asks(placed({})), "nobody: no credentials, region us-east-1, s3.us-east-1.amazonaws.com");
  EXPECT_EQ(placed({}, {.trouble = "/x: cannot be read"}).nobody, "no credentials; /x: cannot be read");
  for (const char* source : {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                             "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"})
    EXPECT_EQ(placed({{source, "x"}}).nobody,
              std::string("no credentials but ") + source +
                  ", which is not read; set the variables that \"aws configure export-credentials --format "
                  "env\" prints");
  EXPECT_THAT(trouble({{"AWS_PROFILE", "none"}}, {.trouble = "/x: cannot be read"}),
              HasSubstr("have no keys of this profile; /x: cannot be read"));
}

TEST(S3Place, reads_names_of_objects) {
  const auto key = [](const std::string& url) {
    const auto name = parse_s3(url);
    return name ? name.value().bucket + "|" + name.value().key : name.error().message;
  };
  EXPECT_EQ(key("s3://data/run/x"), "data|run/x");
  EXPECT_EQ(key("s3://data//run/"), "data|/run/") << "slashes are a part of the key";
  EXPECT_EQ(key("s3://data"), "data|");
  EXPECT_THAT(key("s3:///x"), HasSubstr("expected s3://BUCKET/KEY"));
  EXPECT_THAT(key("/x"), HasSubstr("/x: expected s3://"));
}

}  // namespace
}  // namespace tw::host
