// SPDX-License-Identifier: Apache-2.0
#include "host/store/sigv4.h"

#include <gmock/gmock.h>

namespace tw::host {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const S3Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const S3Scope kExampleScope{"us-east-1", 1369353600};  // 2013-05-24T00:00:00Z

S3Target example(std::string path, std::vector<std::pair<std::string, std::string>> query = {}) {
  return {.host = "examplebucket.s3.amazonaws.com", .path = std::move(path), .query = std::move(query)};
}

std::string authorization(const world::HttpRequest& request) {
  for (const auto& [name, value] : request.headers)
    if (name == "Authorization") return value;
  return "none";
}

// The four examples of the S3 API reference, "Signature Calculations for the Authorization Header".

TEST(SigV4, signs_a_range_of_an_object_as_the_reference_does) {
  const auto signed_one =
      sign({.headers = {{"Range", "bytes=0-9"}}}, example("/test.txt"), kExampleScope, kExample);
  EXPECT_EQ(authorization(signed_one),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(signed_one.url, "https://examplebucket.s3.amazonaws.com/test.txt");
}

TEST(SigV4, signs_a_body_and_a_path_that_is_escaped_as_the_reference_does) {
  const auto signed_one = sign(
      {.method = "PUT",
       .headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
       .body = "Welcome to Amazon S3."},
      example("/test$file.text"), kExampleScope, kExample);
  EXPECT_THAT(authorization(signed_one),
              EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
  EXPECT_EQ(signed_one.url, "https://examplebucket.s3.amazonaws.com/test%24file.text");
}

TEST(SigV4, signs_a_query_without_a_value_as_the_reference_does) {
  EXPECT_THAT(authorization(sign({}, example("/", {{"lifecycle", ""}}), kExampleScope, kExample)),
              EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(SigV4, sorts_a_query_as_the_reference_does) {
  const S3Target listing = example("/", {{"prefix", "J"}, {"max-keys", "2"}});
  const auto signed_one = sign({}, listing, kExampleScope, kExample);
  EXPECT_THAT(authorization(signed_one),
              EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
  EXPECT_THAT(signed_one.url, EndsWith("/?max-keys=2&prefix=J"));
}

TEST(SigV4, signs_the_token_of_a_session_and_no_secret_travels) {
  S3Credentials session = kExample;
  session.session_token = "token/of+a=session";
  const auto signed_one = sign({}, example("/x"), kExampleScope, session);
  EXPECT_THAT(authorization(signed_one), HasSubstr("x-amz-date;x-amz-security-token,"));
  for (const auto& [name, value] : signed_one.headers)
    EXPECT_THAT(value, testing::Not(HasSubstr(session.secret))) << name;
}

TEST(SigV4, escapes_all_but_what_is_plain) {
  EXPECT_EQ(percent_encoded("a b/c+d~e\xc3\xa4", false), "a%20b/c%2Bd~e%C3%A4");
  EXPECT_EQ(percent_encoded("a/b", true), "a%2Fb");
}

}  // namespace
}  // namespace tw::host
