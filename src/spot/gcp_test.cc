// SPDX-License-Identifier: Apache-2.0
#include "spot/gcp.h"

#include <gtest/gtest.h>

#include "spot/test_source.h"

namespace tw::spot {
namespace {

const std::string kInstanceUrl = "http://metadata.google.internal/computeMetadata/v1/instance/";

world::HttpHeaders of_google(const std::string& etag) {
  return {{"Metadata-Flavor", "Google"}, {"ETag", etag}};
}

TEST(Gcp, asks_at_once_and_then_waits_for_a_change) {
  Gcp gcp(Gcp::Topic::preempted);
  Conversation talk(gcp);
  EXPECT_EQ(talk.asks(), (world::HttpRequest{.url = kInstanceUrl + "preempted",
                                             .headers = {{"Metadata-Flavor", "Google"}},
                                             .patience = 5s}));
  EXPECT_FALSE(gcp.has_looked());
  expect_quiet(talk.hears(200, "FALSE", of_google("e1")));
  EXPECT_TRUE(gcp.has_looked());
  EXPECT_EQ(
      talk.asks(),
      (world::HttpRequest{.url = kInstanceUrl + "preempted?wait_for_change=true&timeout_sec=60&last_etag=e1",
                          .headers = {{"Metadata-Flavor", "Google"}},
                          .patience = 65s}));
  EXPECT_EQ(talk.now, Conversation::kBegin) << "no pause between two of them";
  talk.now += 60s;
  expect_quiet(talk.hears(200, "FALSE\n", of_google("e1")));
  EXPECT_TRUE(talk.asks().url.ends_with("last_etag=e1"));
  expect_notice(talk.hears(200, "TRUE\n", of_google("e2")), NoticeKind::preempt, talk.now + 30s, "preempted");
  EXPECT_TRUE(talk.asks().url.ends_with("last_etag=e2"));
  expect_quiet(talk.hears(200, "TRUE", of_google("e2")));
}

TEST(Gcp, says_at_the_first_look_that_a_machine_is_condemned) {
  Gcp gcp(Gcp::Topic::preempted);
  Conversation talk(gcp);
  talk.asks();
  expect_notice(talk.hears(200, "TRUE", of_google("e")), NoticeKind::preempt, talk.now + 30s, "preempted");
}

TEST(Gcp, tries_again_a_second_after_503) {
  Gcp gcp(Gcp::Topic::maintenance);
  Conversation talk(gcp);
  talk.asks();
  expect_quiet(talk.hears(503));
  talk.asks();
  EXPECT_EQ(talk.now, Conversation::kBegin + 1s);
  expect_quiet(talk.hears(200, "NONE", of_google("e")));
}

TEST(Gcp, hears_of_a_migration_and_of_a_termination) {
  Gcp gcp(Gcp::Topic::maintenance);
  Conversation talk(gcp);
  EXPECT_EQ(talk.asks().url, kInstanceUrl + "maintenance-event");
  expect_quiet(talk.hears(200, "NONE", of_google("e1")));
  talk.asks();
  expect_notice(talk.hears(200, "MIGRATE_ON_HOST_MAINTENANCE", of_google("e2")), NoticeKind::freeze,
                talk.now + 60s, "MIGRATE_ON_HOST_MAINTENANCE");
  talk.asks();
  expect_quiet(talk.hears(200, "NONE", of_google("e3")));
  talk.asks();
  expect_notice(talk.hears(200, "TERMINATE_ON_HOST_MAINTENANCE", of_google("e4")), NoticeKind::maintenance,
                talk.now + 60s, "TERMINATE_ON_HOST_MAINTENANCE");
  talk.asks();
  expect_quiet(talk.hears(200, "NONE", of_google("e5")));
  talk.asks();
  EXPECT_EQ(talk.hears(200, "TERMINATE_ON_HOST_MAINTENANCE", of_google("e6")).notices.size(), 1U)
      << "a second one";
}

TEST(Gcp, believes_nobody_but_google) {
  Gcp gcp(Gcp::Topic::preempted);
  Conversation talk(gcp);
  for (int i = 0; i < 2; ++i) {
    talk.asks();
    expect_quiet(talk.hears(200, "TRUE", {{"ETag", "e"}}));
  }
  talk.asks();
  EXPECT_NE(talk.hears(200, "TRUE").trouble.find("lacks Metadata-Flavor: Google"), std::string::npos);
  EXPECT_EQ(talk.now, Conversation::kBegin + 10s) << "not asked without a pause";
}

TEST(Gcp, without_etag_is_asked_now_and_then) {
  Gcp gcp(Gcp::Topic::preempted);
  Conversation talk(gcp);
  talk.asks();
  expect_quiet(talk.hears(200, "FALSE", {{"Metadata-Flavor", "Google"}}));
  EXPECT_EQ(talk.asks().url, kInstanceUrl + "preempted");
  EXPECT_EQ(talk.now, Conversation::kBegin + 5s);
}

TEST(Gcp, does_not_put_into_an_address_what_is_none) {
  Gcp gcp(Gcp::Topic::preempted);
  Conversation talk(gcp);
  talk.asks();
  expect_quiet(talk.hears(200, "FALSE", of_google("e1 HTTP/1.1\r\nX: y")));
  EXPECT_EQ(talk.asks().url, kInstanceUrl + "preempted");
}

TEST(Gcp, tells_of_a_value_that_it_does_not_know) {
  Gcp gcp(Gcp::Topic::preempted);
  Conversation talk(gcp);
  talk.asks();
  EXPECT_EQ(talk.hears(200, "MAYBE", of_google("e")).trouble,
            "gcp: preempted: MAYBE: expected TRUE or FALSE");
}

}  // namespace
}  // namespace tw::spot
