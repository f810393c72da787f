// SPDX-License-Identifier: Apache-2.0
#include "host/store/http_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <deque>
#include <vector>

namespace tw::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A server that answers by the list of the test, and what it was asked.
class ScriptedServer {
 public:
  struct Asked {
    world::HttpRequest request;
    Duration later;
  };

  struct Answer {
    Result<world::HttpAnswer> answer;
    world::HttpAnswer partial{};
  };

  std::deque<Answer> answers;
  std::vector<Asked> asked;
  std::map<std::string, std::string> environment;
  std::vector<std::string> troubles;
  AwsFiles files, newer_files;

  HttpStore store() {
    return HttpStore(
        {.exchange =
             [this](const world::HttpRequest& request, const HttpPool::Tell& tell, Duration later) {
               asked.push_back({request, later});
               const Answer next = answers.front();
               answers.pop_front();
               tell(next.answer, next.partial);
             },
         .unix_s = [] { return std::int64_t{1'700'000'000}; },
         .environment = [this](const std::string& name) { return environment[name]; },
         .aws_files = [this] { return files; },
         .keys_refused = [this] { files = newer_files; },
         .seed = 7,
         .troubled = [this](const std::string& trouble) { troubles.push_back(trouble); }});
  }

  std::string header(std::size_t number, const std::string& name) const {
    return world::HttpAnswer{.headers = asked.at(number).request.headers}.header(name).value_or("none");
  }
};

/// These bytes of an object of 1,234, from `first` on.
world::HttpAnswer partial_answer(const std::string& body, const std::string& etag = "\"one\"",
                                 std::uint64_t first = 0) {
  const std::string range = fmt::format("bytes {}-{}/1234", first, first + body.size() - 1);
  return {206, body, {{"ETag", etag}, {"Content-Range", range}}};
}

/// What came of four bytes when the connection broke.
world::HttpAnswer broken_off(const std::string& body, const std::string& etag = "\"one\"",
                             const std::string& range = "bytes 0-3/1234") {
  return {206, body, {{"ETag", etag}, {"Content-Range", range}}};
}

std::string error_of_reading(HttpStore& store, const world::Extent& extent) {
  const auto bytes = read_now(store, extent);
  return bytes ? "none: " + bytes.value() : bytes.error().message;
}

TEST(HttpStore, asks_for_the_range_of_that_version) {
  ScriptedServer server;
  server.answers = {{partial_answer("abcd", "\"one\"", 10)}};
  HttpStore store = server.store();
  const auto bytes = read_now(store, {"http://host/x.tar", 10, 4, "\"one\""});
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(bytes.value(), "abcd");
  EXPECT_EQ(server.asked[0].request.url, "http://host/x.tar");
  EXPECT_EQ(server.header(0, "range"), "bytes=10-13");
  EXPECT_EQ(server.header(0, "if-match"), "\"one\"");
}

TEST(HttpStore, knows_size_and_version) {
  ScriptedServer server;
  server.answers = {{partial_answer("a")}};
  HttpStore store = server.store();
  EXPECT_EQ(look_now(store, "https://host/x.tar").value(), (world::ObjectFacts{1234, "\"one\""}));
}

TEST(HttpStore, refuses_a_server_that_names_no_version) {
  ScriptedServer server;
  HttpStore store = server.store();
  server.answers = {{world::HttpAnswer{206, "a", {{"Content-Range", "bytes 0-0/1234"}}}}};
  EXPECT_EQ(
      look_now(store, "http://host/x?sig=secret").error().message,
      "http://host/x: the server sends neither ETag nor Last-Modified, expected one: without them, a read "
      "may mix two versions of the object");
  server.answers = {{world::HttpAnswer{
      206, "a", {{"Content-Range", "bytes 0-0/1234"}, {"Last-Modified", "Mon, 01 Jan 2026 00:00:00 GMT"}}}}};
  EXPECT_EQ(look_now(store, "http://host/x").value().version, "Mon, 01 Jan 2026 00:00:00 GMT");
}

TEST(HttpStore, refuses_at_once_what_is_no_url) {
  ScriptedServer server;
  HttpStore store = server.store();
  EXPECT_EQ(error_of_reading(store, {"http://host/a b.tar", 0, 4}),
            "http://host/a b.tar: a URL with a space, expected one without (%20 stands for a space)");
  EXPECT_EQ(error_of_reading(store, {"http://host/a#1.tar", 0, 4}),
            "http://host/a#1.tar: a URL with #, of which no server is told what follows it; expected one "
            "without (%23 stands for #)");
  EXPECT_EQ(error_of_reading(store, {"https://me:secret@host:99999/x?sig=secret", 0, 4}),
            "https://host:99999/x: host has the port 99999, expected at most 65535");
  EXPECT_EQ(error_of_reading(store, {"http://[::1]:x/y", 0, 4}),
            "http://[::1]:x/y: [::1] has the port x, expected at most 65535");
  EXPECT_EQ(error_of_reading(store, {"http:///x", 0, 4}), "http:///x: a URL without a host");
  server.environment = {{"AWS_ENDPOINT_URL", "http://host:99999"}};
  EXPECT_EQ(error_of_reading(store, {"s3://bucket/x", 0, 4}),
            "s3://bucket/x: host has the port 99999, expected at most 65535");
  EXPECT_TRUE(server.asked.empty());
  for (const std::string url :
       {"http://host:80/x", "http://[::1]/x", "http://[::1]:80/x", "https://host:/x"}) {
    server.answers = {{partial_answer("abcd")}};
    EXPECT_EQ(error_of_reading(store, {url, 0, 4}), "none: abcd") << url;
  }
}

TEST(HttpStore, goes_on_where_a_body_broke_off) {
  ScriptedServer server;
  server.answers = {
      {Error{"broken"}, broken_off("ab")}, {world::HttpAnswer{503}}, {partial_answer("cd", "\"one\"", 2)}};
  HttpStore store = server.store();
  EXPECT_EQ(read_now(store, {"http://host/x", 0, 4, "\"one\""}).value(), "abcd");
  EXPECT_EQ(store.uses(), (world::StoreUses{{"host", {.reads = 3, .bytes = 4}}}));
  EXPECT_EQ(server.header(2, "range"), "bytes=2-3");
  EXPECT_GT(server.asked[2].later, server.asked[1].later / 4);
  EXPECT_GE(server.asked[1].later, std::chrono::milliseconds(200));
}

TEST(HttpStore, gives_up_with_object_bytes_and_answer) {
  ScriptedServer server;
  for (int i = 0; i < HttpStore::kAttempts; ++i) server.answers.push_back({world::HttpAnswer{503}});
  HttpStore store = server.store();
  EXPECT_EQ(read_now(store, {"http://host/x?sig=secret", 0, 4}).error().message,
            "http://host/x, bytes 0-3: answered with 503 (as what the URL says)");
  EXPECT_TRUE(server.answers.empty());
}

TEST(HttpStore, gives_up_when_nobody_answers) {
  ScriptedServer server;
  for (int i = 0; i < HttpStore::kAttempts; ++i) server.answers.push_back({Error{"refused"}});
  HttpStore store = server.store();
  EXPECT_EQ(read_now(store, {"http://host/x", 0, 4}).error().message,
            "http://host/x, bytes 0-3 (asked 8 times): refused");
}

TEST(HttpStore, asks_again_where_a_request_came_too_slowly) {
  ScriptedServer server;
  server.answers = {{world::HttpAnswer{408}},
                    {world::HttpAnswer{400, "<Error><Code>RequestTimeout</Code></Error>"}},
                    {partial_answer("abcd")}};
  HttpStore store = server.store();
  EXPECT_EQ(error_of_reading(store, {"http://host/x", 0, 4}), "none: abcd");
  server.answers = {{world::HttpAnswer{400, "<Error><Code>RequestTimeTooSkewed</Code></Error>"}}};
  EXPECT_THAT(error_of_reading(store, {"http://host/x", 0, 4}), HasSubstr("400 RequestTimeTooSkewed"));
}

TEST(HttpStore, asks_once_where_no_try_will_help) {
  ScriptedServer server;
  server.answers = {{Error{"SSL certificate problem", true}}};
  HttpStore store = server.store();
  EXPECT_EQ(error_of_reading(store, {"https://host/x", 0, 4}),
            "https://host/x, bytes 0-3: SSL certificate problem");
  EXPECT_EQ(server.asked.size(), 1U);
  EXPECT_TRUE(server.troubles.empty());
}

TEST(HttpStore, tells_of_silence_at_once_and_of_a_busy_server_after_some_time) {
  ScriptedServer server;
  server.answers = {{Error{"answered by no byte in 10 s"}},
                    {world::HttpAnswer{503}},
                    {world::HttpAnswer{503}},
                    {world::HttpAnswer{503}},
                    {partial_answer("abcd")}};
  HttpStore store = server.store();
  ASSERT_TRUE(read_now(store, {"http://host/x", 0, 4}));
  EXPECT_THAT(server.troubles,
              ElementsAre("http://host/x, bytes 0-3: answered by no byte in 10 s; asked again (2 of 8)",
                          "http://host/x, bytes 0-3: answered with 503; asked again (4 of 8)",
                          "http://host/x, bytes 0-3: answered with 503; asked again (5 of 8)"));
}

TEST(HttpStore, puts_no_two_answers_together_that_may_be_of_two_versions) {
  for (const std::string version : {"", "W/\"weak\"", "Mon, 01 Jan 2026 00:00:00 GMT"}) {
    ScriptedServer server;
    server.answers = {{Error{"broken"}, broken_off("ab", version)}, {partial_answer("abcd", version)}};
    HttpStore store = server.store();
    const auto bytes = read_now(store, {"http://host/x", 0, 4, version});
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_EQ(bytes.value(), "abcd");
    EXPECT_EQ(server.header(1, "range"), "bytes=0-3") << "all of it once more";
  }
}

TEST(HttpStore, never_shows_what_signs_a_url) {
  ScriptedServer server;
  for (int i = 0; i < HttpStore::kAttempts; ++i) server.answers.push_back({Error{"refused"}});
  HttpStore store = server.store();
  const std::string told = read_now(store, {"http://me:secret@host/x?sig=secret", 0, 4}).error().message;
  EXPECT_THAT(told, HasSubstr("http://host/x"));
  EXPECT_THAT(told, Not(HasSubstr("secret")));
}

TEST(HttpStore, names_both_versions_of_an_object_that_changed) {
  ScriptedServer server;
  server.answers = {{world::HttpAnswer{412}}, {partial_answer("x", "\"two\"")}};
  HttpStore store = server.store();
  const std::string told = read_now(store, {"http://host/x", 0, 4, "\"one\""}).error().message;
  EXPECT_THAT(told, HasSubstr("expected ETag \"one\", found \"two\""));
  // A server that does not know If-Match.
  server.answers = {{partial_answer("abcd", "\"two\"")}, {partial_answer("x", "\"two\"")}};
  EXPECT_THAT(read_now(store, {"http://host/x", 0, 4, "\"one\""}).error().message,
              HasSubstr("expected ETag \"one\", found \"two\""));
}

TEST(HttpStore, takes_the_bytes_that_were_asked_for_and_no_others) {
  ScriptedServer server;
  HttpStore store = server.store();
  server.answers = {{world::HttpAnswer{200, "abcd"}}};
  EXPECT_THAT(error_of_reading(store, {"http://host/x", 0, 4}), HasSubstr("serves no ranges"));
  server.answers = {{partial_answer("bcde", "\"one\"", 11)}};
  EXPECT_EQ(
      error_of_reading(store, {"http://host/x", 10, 4, "\"one\""}),
      "http://host/x, bytes 10-13: the server sent 4 bytes as \"bytes 11-14/1234\", expected bytes 10-13");
  server.answers = {{partial_answer("zabc", "\"one\"", 9)}};
  EXPECT_THAT(error_of_reading(store, {"http://host/x", 10, 4, "\"one\""}),
              HasSubstr("as \"bytes 9-12/1234\""));
  for (const std::string range : {"", "bytes 0-4/1234", "bytes 0-3/3", "bytes 3-0/1234", "lines 0-3/1234"}) {
    server.answers = {{world::HttpAnswer{206, "abcd", {{"Content-Range", range}}}}};
    EXPECT_THAT(error_of_reading(store, {"http://host/x", 0, 4}), HasSubstr("the server sent 4 bytes"))
        << range;
  }
}

TEST(HttpStore, takes_nothing_of_a_broken_answer_of_other_bytes) {
  for (const std::string range : {"bytes 1-3/1234", ""}) {
    ScriptedServer server;
    server.answers = {{Error{"http://host/x: broken"}, broken_off("xx", "\"one\"", range)},
                      {partial_answer("abcd")}};
    HttpStore store = server.store();
    EXPECT_EQ(error_of_reading(store, {"http://host/x", 0, 4, "\"one\""}), "none: abcd") << range;
  }
}

TEST(HttpStore, goes_on_where_a_whole_answer_was_too_short) {
  ScriptedServer server;
  server.answers = {{partial_answer("abc")}, {partial_answer("d", "\"one\"", 3)}};
  HttpStore store = server.store();
  EXPECT_EQ(error_of_reading(store, {"http://host/x", 0, 4, "\"one\""}), "none: abcd");
  EXPECT_EQ(server.header(1, "range"), "bytes=3-3");
  server.answers = {{partial_answer("abc")}, {partial_answer("abcd")}};
  EXPECT_EQ(error_of_reading(store, {"http://host/x", 0, 4}), "none: abcd")
      << "from the begin: of which version?";
  for (int i = 0; i < HttpStore::kAttempts; ++i) server.answers.push_back({partial_answer("abc")});
  EXPECT_EQ(error_of_reading(store, {"http://host/x", 0, 4}),
            "http://host/x, bytes 0-3 (asked 8 times): 3 of 4 bytes came");
}

TEST(HttpStore, knows_what_is_gone_for_good) {
  for (const auto& [status, lasting] :
       std::map<int, bool>{{403, false}, {404, true}, {410, true}, {416, true}}) {
    ScriptedServer server;
    server.answers = {{world::HttpAnswer{status}}};
    HttpStore store = server.store();
    EXPECT_EQ(read_now(store, {"http://host/x", 0, 4}).error().lasting, lasting) << status;
  }
}

TEST(HttpStore, follows_redirects_of_plain_urls_alone) {
  const auto leads_to = [](const std::string& location) {
    return world::HttpAnswer{302, "", {{"Location", location}}};
  };
  ScriptedServer server;
  HttpStore store = server.store();
  server.answers = {{leads_to("/b/y.tar?sig=1")},
                    {leads_to("../b/./z.tar#part")},
                    {leads_to("https://other/w")},
                    {partial_answer("abcd")}};
  EXPECT_EQ(error_of_reading(store, {"http://host/a/x.tar", 0, 4}), "none: abcd");
  EXPECT_EQ(server.asked[1].request.url, "http://host/b/y.tar?sig=1");
  EXPECT_EQ(server.asked[2].request.url, "http://host/b/z.tar");
  EXPECT_EQ(server.asked[3].request.url, "https://other/w");
  EXPECT_EQ(server.header(3, "range"), "bytes=0-3");
  server.answers = {{leads_to("http://other/w?sig=1")}};
  EXPECT_EQ(error_of_reading(store, {"https://host/x", 0, 4}),
            "https://host/x, bytes 0-3: answered with 302 (as nobody: no credentials): this redirect is not "
            "followed (to http://other/w)");
  server.answers = {{leads_to("http://evil/x")}};
  EXPECT_THAT(error_of_reading(store, {"s3://bucket/x", 0, 4}), HasSubstr("this redirect is not followed"));
  for (int i = 0; i <= HttpStore::kMostRedirects; ++i) server.answers.push_back({leads_to("/x")});
  EXPECT_EQ(error_of_reading(store, {"http://host/x", 0, 4}),
            "http://host/x, bytes 0-3: answered with 302 (as nobody: no credentials): this redirect, after 5 "
            "others, is not followed (to http://host/x)");
  server.answers.push_back({world::HttpAnswer{302}});
  EXPECT_THAT(error_of_reading(store, {"http://host/x", 0, 4}),
              HasSubstr("this redirect is not followed: it has no Location over HTTP"));
  EXPECT_TRUE(server.answers.empty());
}

TEST(HttpStore, takes_dots_for_folders_in_urls_and_for_a_name_in_buckets) {
  ScriptedServer server;
  server.environment = {{"AWS_ENDPOINT_URL", "http://host"}};
  HttpStore store = server.store();
  const auto asked = [&](const std::string& object) {
    server.answers = {{partial_answer("abcd")}};
    EXPECT_EQ(error_of_reading(store, {object, 0, 4}), "none: abcd") << object;
    return server.asked.back().request.url;
  };
  EXPECT_EQ(asked("http://host/a/../b/./x.tar?to=/../y"), "http://host/b/x.tar?to=/../y");
  EXPECT_EQ(asked("http://host/../../x.tar"), "http://host/x.tar");
  EXPECT_EQ(asked("http://host/a/b/.."), "http://host/a/");
  EXPECT_EQ(asked("http://host/a..b/.c/..d"), "http://host/a..b/.c/..d");
  EXPECT_EQ(asked("http://host"), "http://host");
  EXPECT_EQ(asked("http://host?x=1"), "http://host?x=1");
  EXPECT_EQ(asked("s3://bucket/x/../y.tar"), "http://host/bucket/x/../y.tar");
  EXPECT_EQ(asked("s3://bucket/./y.tar"), "http://host/bucket/./y.tar");
}

TEST(HttpStore, names_the_region_of_a_bucket_that_is_elsewhere) {
  ScriptedServer server;
  HttpStore store = server.store();
  server.answers = {{world::HttpAnswer{
      301, "<Error><Code>PermanentRedirect</Code></Error>", {{"x-amz-bucket-region", "eu-west-1"}}}}};
  EXPECT_THAT(error_of_reading(store, {"s3://bucket/x", 0, 4}),
              HasSubstr("answered with 301 PermanentRedirect (as nobody: no credentials, region us-east-1, "
                        "s3.us-east-1.amazonaws.com): the bucket is in eu-west-1, set AWS_REGION"));
  server.answers = {{world::HttpAnswer{400,
                                       "<Error><Code>AuthorizationHeaderMalformed</Code>"
                                       "<Region>eu-west-1</Region></Error>"}}};
  EXPECT_THAT(error_of_reading(store, {"s3://bucket/x", 0, 4}), HasSubstr("the bucket is in eu-west-1"));
}

TEST(HttpStore, reads_keys_anew_when_they_are_refused) {
  const auto keys = [](const std::string& id) {
    return AwsFiles{"[default]\naws_access_key_id=" + id + "\naws_secret_access_key=s\n"};
  };
  const world::HttpAnswer expired{400, "<Error><Code>ExpiredToken</Code></Error>"};
  ScriptedServer server;
  server.files = keys("OLD");
  server.newer_files = keys("NEW");
  server.answers = {{expired}, {partial_answer("abcd")}};
  HttpStore store = server.store();
  EXPECT_EQ(error_of_reading(store, {"s3://bucket/x", 0, 4}), "none: abcd");
  EXPECT_THAT(server.header(0, "authorization"), HasSubstr("Credential=OLD/"));
  EXPECT_THAT(server.header(1, "authorization"), HasSubstr("Credential=NEW/"));
  server.answers = {{expired}};
  EXPECT_THAT(error_of_reading(store, {"s3://bucket/x", 0, 4}), HasSubstr("400 ExpiredToken (as key NEW"));
}

TEST(HttpStore, says_in_whose_name_a_refused_request_was_signed) {
  ScriptedServer server;
  server.environment = {{"AWS_ACCESS_KEY_ID", "AKIA1"}, {"AWS_SECRET_ACCESS_KEY", "hidden"}};
  server.answers = {{world::HttpAnswer{403, "<Error><Code>AccessDenied</Code></Error>"}}};
  HttpStore store = server.store();
  EXPECT_EQ(
      read_now(store, {"s3://bucket/a/b.tar", 0, 4}).error().message,
      "s3://bucket/a/b.tar, bytes 0-3: answered with 403 AccessDenied (as key AKIA1, region us-east-1, "
      "s3.us-east-1.amazonaws.com): expected a key that may do this there; allow it, or name another place");
  EXPECT_EQ(server.asked[0].request.url, "https://bucket.s3.us-east-1.amazonaws.com/a/b.tar");
  EXPECT_THAT(server.header(0, "authorization"), HasSubstr("SignedHeaders=host;range;x-amz-content-sha256"));
}

TEST(HttpStore, trusts_other_authorities_for_s3_alone) {
  ScriptedServer server;
  server.environment = {{"AWS_CA_BUNDLE", "/my/authorities.pem"}};
  HttpStore store = server.store();
  for (const std::string object : {"s3://bucket/x", "https://host/x"}) {
    server.answers.push_back({partial_answer("abcd")});
    ASSERT_TRUE(read_now(store, {object, 0, 4}));
  }
  EXPECT_EQ(server.asked[0].request.authorities, "/my/authorities.pem");
  EXPECT_EQ(server.asked[1].request.authorities, "");
}

TEST(HttpStore, asks_google_and_azure_in_their_ways) {
  ScriptedServer server;
  server.environment = {{"GS_ACCESS_KEY_ID", "GOOG1"},
                        {"GS_SECRET_ACCESS_KEY", "hidden"},
                        {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=hidden"}};
  server.answers = {{partial_answer("a")}, {Error{"refused"}}};
  HttpStore store = server.store();
  ASSERT_TRUE(read_now(store, {"gs://bucket/k.tar", 0, 1}));
  EXPECT_EQ(server.asked[0].request.url, "https://storage.googleapis.com/bucket/k.tar");
  EXPECT_THAT(server.header(0, "authorization"), HasSubstr("Credential=GOOG1/20231114/auto/s3/aws4_request"));
  for (int i = 1; i < HttpStore::kAttempts; ++i) server.answers.push_back(server.answers.front());
  const std::string told = read_now(store, {"az://acc/c/x y.tar", 0, 1}).error().message;
  EXPECT_EQ(server.asked[1].request.url, "https://acc.blob.core.windows.net/c/x%20y.tar?sv=1&sig=hidden");
  EXPECT_THAT(told, Not(HasSubstr("hidden")));
}

TEST(HttpStore, reads_no_other_account_of_azure) {
  const auto place = [](const std::string& endpoint) {
    const auto found = object_place(
        "az://acc1/c/x.tar",
        [&](const std::string& name) { return name == "AZURE_STORAGE_ENDPOINT" ? endpoint : ""; }, {});
    return found ? found.value().url : found.error().message;
  };
  EXPECT_EQ(place("http://127.0.0.1:10000/acc1/"), "http://127.0.0.1:10000/acc1/c/x.tar");
  EXPECT_EQ(place("https://acc1.blob.other.net"), "https://acc1.blob.other.net/c/x.tar");
  EXPECT_EQ(place("https://acc1-secondary.blob.other.net"), "https://acc1-secondary.blob.other.net/c/x.tar");
  EXPECT_EQ(
      place("http://127.0.0.1:10000"),
      "az://acc1/c/x.tar: AZURE_STORAGE_ENDPOINT=http://127.0.0.1:10000 does not name the account "
      "acc1, expected http://HOST/acc1 or https://acc1.HOST; for a domain of your own give https:// URLs");
  EXPECT_THAT(place("http://127.0.0.1:10000/acc2"), HasSubstr("does not name the account acc1"));
  EXPECT_EQ(place("https://proxy/azure/acc1/v"), "https://proxy/azure/acc1/v/c/x.tar");
}

TEST(HttpStore, knows_by_which_name_a_store_is_priced) {
  using Variables = std::map<std::string, std::string>;
  const auto name = [](const std::string& object, Variables variables) {
    return object_place(object, [&](const std::string& key) { return variables[key]; }, {}).value().store;
  };
  EXPECT_EQ(name("s3://bucket/k", {{"AWS_REGION", "eu-west-1"}}), "s3:eu-west-1");
  EXPECT_EQ(name("s3://bucket/k", {{"AWS_ENDPOINT_URL", "https://s3.us-west-004.backblazeb2.com"}}), "b2");
  EXPECT_EQ(name("s3://bucket/k", {{"AWS_ENDPOINT_URL", "https://x.r2.cloudflarestorage.com"}}), "r2");
  EXPECT_EQ(name("s3://bucket/k", {{"AWS_ENDPOINT_URL", "http://127.0.0.1:9000"}}), "127.0.0.1:9000");
  EXPECT_EQ(name("gs://bucket/k", {{"GS_REGION", "us-west1"}}), "gcs:us-west1");
  EXPECT_EQ(name("gs://bucket/k", {}), "gcs");
  EXPECT_EQ(name("az://a/c/b", {}), "az");
  EXPECT_EQ(name("https://me:secret@host:80/x?sig=1", {}), "host:80");
}

TEST(HttpStore, refuses_names_that_are_none) {
  ScriptedServer server;
  HttpStore store = server.store();
  server.answers = {{world::HttpAnswer{403}}};
  EXPECT_THAT(error_of_reading(store, {"gs://bucket/x", 0, 4}),
              HasSubstr("(as nobody: GS_ACCESS_KEY_ID is not set, region auto, storage.googleapis.com)"));
  EXPECT_EQ(look_now(store, "az://account/container").error().message,
            "az://account/container: expected az://ACCOUNT/CONTAINER/BLOB");
  EXPECT_EQ(look_now(store, "gs://bucket").error().message, "gs://bucket: expected gs://BUCKET/KEY");
  EXPECT_THAT(look_now(store, "s3://bucket").error().message, HasSubstr("expected s3://BUCKET/KEY"));
}

}  // namespace
}  // namespace tw::host
