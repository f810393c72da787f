// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/target.h"
#include "host/store/files_s3.h"
#include "host/store/http_store.h"
#include "host/store/role_credentials.h"

namespace tw::fuzz {
namespace {

constexpr std::uint64_t kObjectBytes = 64;
constexpr const char* kSecret = "hidden";

/// Bytes of one version of the object.
std::string content(const std::string& version, std::uint64_t first, std::uint64_t count) {
  std::string bytes;
  for (std::uint64_t at = first; at < first + count; ++at)
    bytes += static_cast<char>((version == "\"two\"" ? 128 : 0) + at % kObjectBytes);
  return bytes;
}

/// Whatever a server says: of bytes that it names rightly, it sends those. All else is made up.
class AnyServer {
 public:
  explicit AnyServer(Input& input) : input_(input) {}

  struct Said {
    Result<world::HttpAnswer> answer;
    world::HttpAnswer partial{};
  };

  /// Errors of the pool do not name the address (host/http.h).
  Said say() {
    if (input_.empty()) return {world::HttpAnswer{404}};
    if (input_.one_in(6)) {
      world::HttpAnswer partial = input_.one_in(2) ? range() : world::HttpAnswer{};
      return {Error{word()}, std::move(partial)};
    }
    if (input_.one_in(3)) return {made_up()};
    return {range()};
  }

  /// Every 200 is of the whole object.
  world::HttpAnswer made_up() {
    const std::vector<int> statuses{200, 200, 206, 301, 302, 400, 403, 404,
                                    410, 412, 416, 429, 500, 503, 0,   999};
    world::HttpAnswer answer{input_.one_of(statuses), "", {{"ETag", version()}}};
    for (std::uint64_t i = input_.below(4); i > 0; --i) answer.headers.emplace_back(name(), word());
    for (std::uint64_t i = input_.below(8); i > 0; --i) answer.body += word();
    return answer;
  }

 private:
  world::HttpAnswer range() {
    const std::string etag = version();
    const std::uint64_t first = input_.below(kObjectBytes), count = input_.below(kObjectBytes);
    std::string range =
        fmt::format("bytes {}-{}/{}", first, first + (input_.one_in(8) ? input_.number() : count) - 1,
                    input_.one_in(8) ? word() : std::to_string(kObjectBytes));
    return {206,
            content(etag, first, input_.one_in(4) ? input_.below(80) : count),
            {{"ETag", etag}, {"Content-Range", range}}};
  }

  std::string version() {
    return input_.one_of(std::vector<std::string>{"\"one\"", "\"one\"", "\"one\"", "\"two\""});
  }

  std::string name() {
    return input_.one_of(
        std::vector<std::string>{"Location", "x-amz-bucket-region", "last-modified", "ETag"});
  }

  std::string word() {
    return input_.one_of(std::vector<std::string>{"<ListBucketResult>",
                                                  "<Key>",
                                                  "</Key>",
                                                  "<ETag>",
                                                  "</ETag>",
                                                  "<UploadId>",
                                                  "</UploadId>",
                                                  "<Error>",
                                                  "<Code>",
                                                  "</Code>",
                                                  "<NextContinuationToken>",
                                                  "</NextContinuationToken>",
                                                  "<Region>",
                                                  "</Region>",
                                                  "data%2Fx",
                                                  "%",
                                                  "&lt;",
                                                  "http://other/x?sig=theirs",
                                                  "//other",
                                                  "/x",
                                                  "..",
                                                  "x",
                                                  "",
                                                  "*",
                                                  "eu-west-1",
                                                  "{\"AccessKeyId\":\"A\",",
                                                  "\"SecretAccessKey\":\"s\",",
                                                  "\"Expiration\":\"2026-05-20T10:00:00Z\"}",
                                                  "[",
                                                  "18446744073709551615"});
  }

  Input& input_;
};

std::string environment(const std::string& name) {
  const std::map<std::string, std::string> values{{"AWS_ACCESS_KEY_ID", "AKIA"},
                                                  {"AWS_SECRET_ACCESS_KEY", kSecret},
                                                  {"AZURE_STORAGE_SAS_TOKEN", "sig=hidden"}};
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

void tells_no_secret(const std::string& message) { TW_CHECK(message.find(kSecret) == std::string::npos); }

/// Exactly the bytes of one version, that one where it is named; or an error.
void read_ranges(Input& input) {
  AnyServer server(input);
  host::HttpStore store({.exchange =
                             [&](const world::HttpRequest&, const host::HttpPool::Tell& tell, Duration) {
                               AnyServer::Said said = server.say();
                               tell(std::move(said.answer), std::move(said.partial));
                             },
                         .unix_s = [] { return std::int64_t{1'700'000'000}; },
                         .environment = environment,
                         .aws_files = [] { return host::AwsFiles{}; },
                         .seed = 1,
                         .troubled = tells_no_secret});
  const world::Extent extent{input.one_of(std::vector<std::string>{"http://me:hidden@host/x?sig=hidden",
                                                                   "s3://data/x", "az://a/b/x"}),
                             input.below(40), 1 + input.below(24),
                             input.one_of(std::vector<std::string>{"\"one\"", "\"one\"", ""})};
  const auto bytes = world::read_now(store, extent);
  if (!bytes) return tells_no_secret(bytes.error().message);
  const auto is = [&](const std::string& version) {
    return bytes.value() == content(version, extent.offset, extent.length);
  };
  TW_CHECK(is("\"one\"") || (extent.version.empty() && is("\"two\"")));
}

/// Listings and uploads end, whatever is answered; names are below the folder, in order.
void use_files(Input& input) {
  AnyServer server(input);
  host::S3Files files(
      {.scheme = "http", .host = "host", .credentials = host::S3Credentials{"AKIA", kSecret, ""}},
      {.exchange = [&](const world::HttpRequest&) -> Result<world::HttpAnswer> {
         if (input.empty()) return world::HttpAnswer{404};
         if (input.one_in(8)) return Error{"refused"};
         return server.made_up();
       },
       .unix_s = [] { return std::int64_t{1'700'000'000}; },
       .pause = [](Duration) {}});
  const auto names = files.list("s3://bucket/data");
  if (names) TW_CHECK(std::ranges::is_sorted(names.value()));
  if (!names) tells_no_secret(names.error().message);
  const std::vector<std::byte> part(20, std::byte{1});
  const std::vector<std::span<const std::byte>> parts(1, part);
  if (const Status written = files.write("s3://bucket/x", parts); !written)
    tells_no_secret(written.error().message);
  if (const Status renamed = files.rename("s3://bucket/x", "s3://bucket/y"); !renamed)
    tells_no_secret(renamed.error().message);
}

/// A file of the only version, whole; or an error.
void read_file(Input& input) {
  AnyServer server(input);
  host::S3Files files({.scheme = "http", .host = "host"},
                      {.exchange = [&](const world::HttpRequest&) { return server.say().answer; },
                       .unix_s = [] { return std::int64_t{1'700'000'000}; },
                       .pause = [](Duration) {}});
  const auto read = files.read("s3://bucket/x");
  if (!read) tells_no_secret(read.error().message);
}

void read_role(Input& input) {
  const auto answer = host::read_role_answer(AnyServer(input).made_up().body);
  if (answer)
    TW_CHECK(!answer.value().credentials.key_id.empty() && !answer.value().credentials.secret.empty());
}

}  // namespace

void http_answer(Input& input) {
  switch (input.below(8)) {
    case 0:
      return use_files(input);
    case 1:
      return read_file(input);
    case 2:
      return read_role(input);
    default:
      return read_ranges(input);
  }
}

}  // namespace tw::fuzz
