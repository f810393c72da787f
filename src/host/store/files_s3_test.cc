// SPDX-License-Identifier: Apache-2.0
#include "host/store/files_s3.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <functional>

#include "host/store/object_place.h"
#include "host/store/test_bucket.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST_F(FilesInABucket, have_the_slashes_that_their_names_have) {
  ASSERT_TRUE(write(files, "s3://data/run/a", "one"));
  ASSERT_TRUE(write(files, "s3://data//run/a", "two"));
  ASSERT_TRUE(write(files, "s3://data/run//b", "three"));
  EXPECT_EQ(text_of(files.read("s3://data/run/a")), "one");
  EXPECT_EQ(text_of(files.read("s3://data//run/a")), "two");
  EXPECT_THAT(files.list("s3://data/run/").value(), ElementsAre("a"));
  EXPECT_THAT(files.list("s3://data/run//").value(), ElementsAre("b"));
  EXPECT_THAT(files.content("s3://data//").value().folders, ElementsAre("run/"));
}

TEST_F(FilesInABucket, are_listed_beside_folders) {
  for (const std::string name : {"a", "b/1", "b/2", "c d/1"})
    ASSERT_TRUE(write(files, "s3://data/run/" + name, ""));
  const auto content = files.content("s3://data/run").value();
  EXPECT_THAT(content.files, ElementsAre("a"));
  EXPECT_THAT(content.folders, ElementsAre("b/", "c d/"));
}

TEST_F(FilesInABucket, have_the_names_of_the_list_where_it_is_not_encoded) {
  for (const std::string name : {"a+b", "100%41"}) ASSERT_TRUE(write(files, "s3://data/run/" + name, ""));
  bucket.encodes_names = false;
  EXPECT_THAT(files.list("s3://data/run").value(), ElementsAre("100%41", "a+b"));
}

TEST_F(FilesInABucket, are_listed_to_the_end_or_not_at_all) {
  for (const std::string name : {"a", "b", "c"}) ASSERT_TRUE(write(files, "s3://data/run/" + name, ""));
  bucket.continues_lists = false;
  const auto listed = files.list("s3://data/run");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().message,
            "s3://data/run: store cut its list of names short, expected a NextContinuationToken of lists of "
            "version 2");
}

TEST_F(FilesInABucket, are_those_of_google_under_another_name) {
  std::map<std::string, std::string> variables = {
      {"GS_ENDPOINT_URL", "http://store"}, {"GS_ACCESS_KEY_ID", "GOOG1"}, {"GS_SECRET_ACCESS_KEY", "x"}};
  const auto place = gs_place([&](const std::string& name) { return variables[name]; });
  ASSERT_TRUE(place) << place.error().message;
  S3Files google = bucket.files(place.value());
  ASSERT_TRUE(write(google, "gs://data/run/a", "hello"));
  EXPECT_EQ(text_of(google.read("gs://data/run/a")), "hello");
  EXPECT_THAT(google.list("gs://data/run").value(), ElementsAre("a"));
  EXPECT_TRUE(google.remove("gs://data/run/a"));
  EXPECT_THAT(text_of(google.read("gs://data/run/a")),
              HasSubstr("gs://data/run/a: GET was answered with 404 NoSuchKey (as key GOOG1"));
  EXPECT_EQ(text_of(google.read("s3://data/run/a")), "s3://data/run/a: expected gs://BUCKET/KEY");
  EXPECT_THAT(text_of(google.read("gs://a/b")),
              HasSubstr("gs://a/b: expected gs://BUCKET/KEY with a bucket"));
  variables.erase("GS_SECRET_ACCESS_KEY");
  const auto trouble = [&] {
    return gs_place([&](const std::string& name) { return variables[name]; }).error().message;
  };
  EXPECT_THAT(trouble(), HasSubstr("expected both"));
  variables = {{"GS_ENDPOINT_URL", "http://store/data"}};
  EXPECT_EQ(trouble(),
            "GS_ENDPOINT_URL=http://store/data: expected http://HOST[:PORT] or https://HOST[:PORT]");
}

TEST_F(FilesInABucket, are_not_read_where_they_are_larger_than_their_reader_allows) {
  S3Files small = bucket.files(S3Files::Effort{.most_bytes = 5});
  ASSERT_TRUE(write(files, "s3://data/five", "hello"));
  ASSERT_TRUE(write(files, "s3://data/six", "hello!"));
  EXPECT_EQ(text_of(small.read("s3://data/five")), "hello");
  EXPECT_EQ(text_of(small.read("s3://data/six")), "s3://data/six has 6 bytes, at most 5 were expected");
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

TEST_F(FilesInABucket, are_none_where_a_page_answers_that_is_not_of_a_store) {
  bucket.objects["/data/run/a"] = "hello";
  bucket.page = "<html>captive portal</html>";
  EXPECT_EQ(files.list("s3://data/run").error().message,
            "s3://data/run/: store answered GET with 200 and 'text/html', expected a list of S3: is this the "
            "endpoint of the store, or the page of a proxy?");
  const std::string large(S3Files::kPartBytes + 1, 'x');
  for (const Status& stored : {write(files, "s3://data/x", "1"), write(files, "s3://data/x", large),
                               files.rename("s3://data/x", "s3://data/y")}) {
    ASSERT_FALSE(stored);
    EXPECT_THAT(stored.error().message, HasSubstr("is this the endpoint of the store"));
  }
  EXPECT_THAT(text_of(files.read("s3://data/run/a")), HasSubstr("answered GET with 200 and 'text/html'"));
}

TEST_F(FilesInABucket, are_as_they_were_where_a_page_answers_one_request) {
  const auto where_it_answers = [this](const std::string& part, const std::function<Status()>& use) {
    bucket.page = "<html>captive portal</html>";
    bucket.page_at = part;
    const Status used = use();
    bucket.page = "";
    EXPECT_THAT(bucket.uploads, IsEmpty()) << part;
    return used ? "none" : used.error().message;
  };
  const auto write_large = [this] {
    return write(files, "s3://data/x", std::string(S3Files::kPartBytes + 1, 'x'));
  };
  const std::string put = "store answered PUT with 200 and 'text/html', expected an ETag of S3";
  EXPECT_THAT(where_it_answers("partNumber=2", write_large), HasSubstr(put));
  EXPECT_THAT(where_it_answers("POST /data/x?uploadId=", write_large),
              HasSubstr("store answered POST with 200 and 'text/html', expected an ETag of S3"));
  bucket.objects["/data/a"] = "hello";
  const auto rename = [this] { return files.rename("s3://data/a", "s3://data/b"); };
  EXPECT_THAT(where_it_answers("PUT /data/b", rename), HasSubstr(put));
  const std::string removal = "store answered DELETE with 200 and 'text/html', expected 204 of S3";
  EXPECT_THAT(where_it_answers("DELETE /data/a", rename), HasSubstr(removal));
  EXPECT_THAT(where_it_answers("DELETE", [this] { return files.remove("s3://data/a"); }), HasSubstr(removal));
  bucket.told_size = 6'000'000'000;
  EXPECT_THAT(where_it_answers("partNumber=3", rename), HasSubstr(put));
  EXPECT_EQ(bucket.objects["/data/a"], "hello");
}

TEST_F(FilesInABucket, leave_no_parts_although_it_is_over) {
  bucket.after = [this] { bucket.is_over = bucket.asked.back().find("partNumber=1") != std::string::npos; };
  EXPECT_FALSE(write(files, "s3://data/x", std::string(S3Files::kPartBytes + 1, 'x')));
  EXPECT_EQ(bucket.asked.size(), 3U) << "the upload, a part, the removal";
  EXPECT_THAT(bucket.uploads, IsEmpty());
  EXPECT_LE(bucket.patiences.back(), std::chrono::seconds(1));
}

TEST_F(FilesInABucket, are_not_waited_for_where_the_store_is_silent) {
  (void)files.list("s3://data/run");
  EXPECT_EQ(bucket.silences.back(), 10s);
  const std::size_t mib = 1 << 20;
  ASSERT_TRUE(write(files, "s3://data/x", std::string(2 * mib, 'x')));
  EXPECT_GE(bucket.silences.back(), 10s + 33s) << "sent bytes may wait in buffers of a line of 0.5 Mbit/s";
  ASSERT_TRUE(write(files, "s3://data/x", std::string(16 * mib, 'x')));
  EXPECT_LE(bucket.silences.back(), 10s + 68s) << "which are not that large";
  EXPECT_EQ(bucket.silences.size(), 3U);
}

TEST_F(FilesInABucket, are_waited_for_while_the_store_copies_them) {
  const auto silences_of_rename = [this](std::uint64_t size) {
    bucket.objects["/data/x"] = "x";
    bucket.told_size = size;
    bucket.silences.clear();
    EXPECT_TRUE(files.rename("s3://data/x", "s3://data/y"));
    return bucket.silences;
  };
  EXPECT_THAT(silences_of_rename(2'000'000'000), ElementsAre(10s, 10s + 40s, 10s)) << "size, copy, removal";
  const auto large = silences_of_rename(5'500'000'000);
  ASSERT_EQ(large.size(), 10U) << "size, upload, six parts, its end, removal";
  EXPECT_EQ(large[2], 10s + 20s);
  EXPECT_EQ(large[7], 10s + 10s);
  EXPECT_GE(large[8], 10s + 110s);
}

TEST_F(FilesInABucket, name_what_is_to_be_done_where_they_are_refused) {
  const auto refusal = [this](int status, const std::string& code) {
    bucket.refusal = code;
    bucket.refusals = std::vector<int>(S3Files::kAttempts, status);
    const auto listed = files.list("s3://data/run");
    bucket.refusals.clear();
    return listed ? "none" : listed.error().message;
  };
  EXPECT_EQ(refusal(400, "ExpiredToken"),
            "s3://data/run/: GET was answered with 400 ExpiredToken (as key me, region us-east-1, store): "
            "expected credentials that have not expired; get new ones");
  EXPECT_THAT(refusal(403, "RequestTimeTooSkewed"), HasSubstr("set that of this machine (timedatectl"));
  EXPECT_THAT(refusal(403, "SignatureDoesNotMatch"), HasSubstr("correct the credentials"));
  EXPECT_THAT(refusal(503, "SlowDown"), HasSubstr("store; asked 5 times): the store is busy"));
  EXPECT_THAT(refusal(403, "AccessDenied"),
              HasSubstr("store; needs s3:ListBucket): expected a key that may"));
  bucket.refusals = {403};
  EXPECT_THAT(files.remove("s3://data/x").error().message, HasSubstr("; needs s3:DeleteObject): expected"));
}

TEST_F(FilesInABucket, are_tried_again_where_an_upload_was_too_slow) {
  bucket.refusal = "RequestTimeout";
  bucket.refusals = {400, 408};
  EXPECT_TRUE(write(files, "s3://data/x", "1"));
  EXPECT_EQ(bucket.pauses.size(), 2U);
}

TEST_F(FilesInABucket, are_not_tried_again_where_no_try_will_help) {
  S3Files distrustful({.host = "store"},
                      {.exchange = [](const world::HttpRequest&) -> Result<world::HttpAnswer> {
                         return Error{"unknown authority", true};
                       },
                       .unix_s = [] { return std::int64_t{0}; },
                       .pause = [](Duration) { FAIL(); }});
  EXPECT_EQ(text_of(distrustful.read("s3://data/x")),
            "s3://data/x (asked 1 time at store): unknown authority");
}

TEST_F(FilesInABucket, count_each_request_by_its_class_and_the_bytes) {
  EXPECT_TRUE(files.uses().empty());
  ASSERT_TRUE(write(files, "s3://data/x", "four"));
  bucket.refusals = {503};
  EXPECT_EQ(text_of(files.read("s3://data/x")), "four");
  const world::StoreUses uses = files.uses();
  ASSERT_TRUE(uses.contains("store"));
  const std::uint64_t bytes = std::string("<Error><Code>SlowDown</Code></Error>").size() + 4;
  EXPECT_EQ(uses.at("store"), (world::StoreUse{.reads = 2, .bytes = bytes, .writes = 1, .written_bytes = 4}));
  ASSERT_TRUE(files.list("s3://data"));
  EXPECT_EQ(files.uses().at("store").writes, 2U) << "a list is priced as a write";
  bucket.refusals = {0};
  ASSERT_TRUE(write(files, "s3://data/y", "four"));
  EXPECT_EQ(files.uses().at("store").written_bytes, 8U) << "none where no connection was made";
  ASSERT_TRUE(files.remove("s3://data/x").ok());
  EXPECT_EQ(files.uses().at("store").writes, 4U) << "nothing is charged for a deletion";
}

TEST_F(FilesInABucket, are_not_listed_for_ever) {
  bucket.lists_for_ever = true;
  const auto listed = files.list("s3://data/run");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().message,
            "s3://data/run: more than 1000 pages of names, expected fewer: name a narrower folder");
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
