// SPDX-License-Identifier: Apache-2.0
#include "host/store/files_s3.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "host/store/s3_answer.h"

namespace tw::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A store in memory, as far as S3Files asks for it; and a list of what was asked.
class Bucket {
 public:
  std::map<std::string, std::string> objects;  ///< by path
  std::map<std::string, std::map<int, std::string>> uploads;
  std::vector<std::string> asked;
  std::vector<Duration> pauses;
  std::vector<int> refusals;  ///< statuses of the next answers; 0: the connection fails
  std::function<void()> before = [] {};
  std::size_t shift = 0;  ///< of the bytes that it sends

  S3Files files() {
    return S3Files(
        {.scheme = "http", .host = "store", .path_style = true, .credentials = S3Credentials{"me", "x", ""}},
        {.exchange = [this](const world::HttpRequest& request) { return answer(request); },
         .unix_s = [] { return std::int64_t{1'700'000'000}; },
         .pause = [this](Duration time) { pauses.push_back(time); }});
  }

 private:
  static std::string header(const world::HttpRequest& request, const std::string& name) {
    for (const auto& [key, value] : request.headers)
      if (key == name) return value;
    return {};
  }

  static std::string etag(const std::string& content) {
    return "\"" + std::to_string(std::hash<std::string>{}(content)) + "\"";
  }

  Result<world::HttpAnswer> answer(const world::HttpRequest& request) {
    const std::string url = request.url.substr(std::string("http://store").size());
    const std::size_t mark = url.find('?');
    const std::string path = url.substr(0, mark),
                      query = mark == std::string::npos ? "" : url.substr(mark + 1);
    asked.push_back(request.method + " " + url);
    before();
    if (!refusals.empty()) {
      const int status = refusals.front();
      refusals.erase(refusals.begin());
      if (status == 0) return Error{"connection refused"};
      return world::HttpAnswer{.status = status, .body = "<Error><Code>SlowDown</Code></Error>"};
    }
    if (request.method == "GET" && query.empty()) return get(request, path);
    if (request.method == "GET") return listing(query);
    if (request.method == "DELETE" && !query.empty())
      return uploads.erase(path), world::HttpAnswer{.status = 204};
    if (request.method == "DELETE") return objects.erase(path), world::HttpAnswer{.status = 204};
    if (request.method == "POST" && query == "uploads=") {
      uploads[path];
      return world::HttpAnswer{.status = 200, .body = "<UploadId>u&amp;1</UploadId>"};
    }
    if (request.method == "POST") {
      for (const auto& [number, part] : uploads[path]) objects[path] += part;
      return uploads.erase(path), world::HttpAnswer{.status = 200};
    }
    if (query.starts_with("partNumber=")) {
      uploads[path][std::stoi(query.substr(11))] = request.body;
      return world::HttpAnswer{.status = 200, .headers = {{"ETag", etag(request.body)}}};
    }
    const std::string source = header(request, "x-amz-copy-source");
    objects[path] = source.empty() ? request.body : objects.at(source);
    return world::HttpAnswer{.status = 200};
  }

  Result<world::HttpAnswer> get(const world::HttpRequest& request, const std::string& path) {
    const auto found = objects.find(path);
    if (found == objects.end())
      return world::HttpAnswer{.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"};
    const std::string& content = found->second;
    const std::string same = header(request, "If-Match");
    if (!same.empty() && same != etag(content))
      return world::HttpAnswer{.status = 412, .body = "<Error><Code>PreconditionFailed</Code></Error>"};
    std::size_t first = 0, last = 0;
    EXPECT_EQ(2, std::sscanf(header(request, "Range").c_str(), "bytes=%zu-%zu", &first, &last));
    if (first >= content.size()) return world::HttpAnswer{.status = 416};
    last = std::min(last, content.size() - 1);
    first += shift;
    return world::HttpAnswer{
        .status = 206,
        .body = content.substr(first, last + 1 - first),
        .headers = {{"Content-Range", fmt::format("bytes {}-{}/{}", first, last, content.size())},
                    {"ETag", etag(content)}}};
  }

  /// Two keys a page.
  Result<world::HttpAnswer> listing(const std::string& query) {
    const std::string prefix = "/data/" + percent_decoded(query.substr(query.find("prefix=") + 7));
    const std::size_t token = query.find("continuation-token=");
    const std::string after =
        token == std::string::npos
            ? ""
            : percent_decoded(query.substr(token + 19, query.find('&', token) - token - 19));
    std::string body;
    int count = 0;
    for (const auto& [path, content] : objects) {
      if (!path.starts_with(prefix) || path <= after) continue;
      if (++count > 2) return world::HttpAnswer{.status = 200, .body = body};
      body += fmt::format("<Key>{}</Key>", percent_encoded(path.substr(6), true));
      if (count == 2) body += fmt::format("<NextContinuationToken>{}</NextContinuationToken>", path);
    }
    return world::HttpAnswer{.status = 200, .body = body};
  }
};

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::string text_of(const Result<std::vector<std::byte>>& bytes) {
  if (!bytes) return bytes.error().message;
  return {reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()};
}

Status write(S3Files& files, const std::string& path, const std::string& text) {
  const std::vector<std::byte> bytes = bytes_of(text);
  const std::vector<std::span<const std::byte>> parts{std::span(bytes).first(bytes.size() / 2),
                                                      std::span(bytes).subspan(bytes.size() / 2)};
  return files.write(path, parts);
}

class FilesInABucket : public ::testing::Test {
 protected:
  Bucket bucket;
  S3Files files = bucket.files();
};

TEST_F(FilesInABucket, are_written_read_renamed_listed_and_removed) {
  ASSERT_TRUE(write(files, "s3://data/run/a b", "hello"));
  EXPECT_EQ(text_of(files.read("s3://data/run/a b")), "hello");
  ASSERT_TRUE(files.rename("s3://data/run/a b", "s3://data/run/c"));
  for (const std::string name : {"d", "e", "f"}) ASSERT_TRUE(write(files, "s3://data/run/" + name, ""));
  ASSERT_TRUE(write(files, "s3://data/other", "x"));
  EXPECT_THAT(files.list("s3://data/run").value(), ElementsAre("c", "d", "e", "f")) << "in pages of two";
  EXPECT_EQ(text_of(files.read("s3://data/run/d")), "") << "an empty object has no ranges";
  ASSERT_TRUE(files.remove("s3://data/run/c"));
  EXPECT_THAT(text_of(files.read("s3://data/run/c")),
              HasSubstr("s3://data/run/c: GET was answered with 404 NoSuchKey (as key me"));
}

TEST_F(FilesInABucket, go_in_parts_where_they_are_large_and_come_whole_or_not) {
  std::string large(2 * S3Files::kPartBytes + 5, 'x');
  large[S3Files::kPartBytes] = 'y';
  ASSERT_TRUE(write(files, "s3://data/large", large));
  EXPECT_EQ(bucket.objects.at("/data/large"), large);
  EXPECT_EQ(text_of(files.read("s3://data/large")), large);

  bucket.before = [this] {  // the second part finds nobody
    if (bucket.asked.back().find("partNumber=2") != std::string::npos && bucket.refusals.empty())
      bucket.refusals = {403};
  };
  EXPECT_FALSE(write(files, "s3://data/torn", large));
  EXPECT_FALSE(bucket.objects.contains("/data/torn"));
  EXPECT_THAT(bucket.uploads, IsEmpty()) << "its parts are removed";
}

TEST_F(FilesInABucket, are_tried_again_while_the_store_is_busy_and_not_for_ever) {
  bucket.refusals = {503, 0, 500};
  EXPECT_TRUE(write(files, "s3://data/x", "1"));
  ASSERT_EQ(bucket.pauses.size(), 3U);
  EXPECT_LT(bucket.pauses[0], bucket.pauses[2]) << "longer each time";
  bucket.refusals = std::vector<int>(S3Files::kAttempts, 503);
  const Status never = write(files, "s3://data/x", "2");
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("s3://data/x: PUT was answered with 503 SlowDown (as key me"));
  EXPECT_EQ(bucket.objects.at("/data/x"), "1");
  bucket.refusals = std::vector<int>(S3Files::kAttempts, 0);
  EXPECT_EQ(text_of(files.read("s3://data/x")), "s3://data/x (asked 5 times at store): connection refused");
  bucket.refusals = {403};
  bucket.asked.clear();
  EXPECT_FALSE(write(files, "s3://data/x", "3"));
  EXPECT_EQ(bucket.asked.size(), 1U) << "a no is a no";
}

TEST_F(FilesInABucket, that_change_while_they_are_read_are_an_error) {
  bucket.objects["/data/x"] = std::string(S3Files::kPartBytes + 1, 'a');
  bucket.before = [this] {
    if (bucket.asked.size() == 2) bucket.objects["/data/x"] = std::string(S3Files::kPartBytes + 1, 'b');
  };
  EXPECT_THAT(text_of(files.read("s3://data/x")), HasSubstr("412 PreconditionFailed"));
}

TEST_F(FilesInABucket, are_made_of_the_bytes_that_were_asked_for) {
  bucket.objects["/data/x"] = "abcd";
  bucket.shift = 1;
  EXPECT_EQ(text_of(files.read("s3://data/x")),
            "s3://data/x: the store sent other bytes than it was asked for");
  EXPECT_EQ(bucket.asked.size(), 1U);
}

TEST(S3Answer, knows_ranges_and_what_is_none) {
  EXPECT_EQ(range_in("bytes 10-19/1234"), (ContentRange{10, 19, 1234}));
  EXPECT_EQ(range_in("bytes 10-19/*"), (ContentRange{10, 19, std::nullopt}));
  for (const char* none : {"", "bytes */1234", "bytes 9-8/1234", "bytes 0-1234/1234", "items 0-9/1234",
                           "bytes 0-9", "bytes -9/10", "bytes 0-18446744073709551615/*"})
    EXPECT_FALSE(range_in(none)) << none;
}

TEST(S3Answer, gives_what_stands_in_small_documents) {
  EXPECT_THAT(texts_of("<a><K>x&amp;&lt;y</K><K></K><K>open", "K"), ElementsAre("x&<y", ""));
  EXPECT_EQ(error_of("<Error><Code>AccessDenied</Code></Error>"), "AccessDenied ");
  EXPECT_EQ(error_of("fine"), "");
  EXPECT_EQ(total_in("bytes 0-9/1234"), 1234U);
  EXPECT_FALSE(total_in("bytes 0-9/*"));
  EXPECT_EQ(percent_decoded("a%20b+c%2"), "a b c%2");
}

}  // namespace
}  // namespace tw::host
