// SPDX-License-Identifier: Apache-2.0
#include "peer/notice_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "spot/aws.h"
#include "spot/azure.h"
#include "spot/gcp.h"
#include "train/session/test_clock.h"

namespace tw::peer {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// A server that answers when the test says so.
class VirtualHttp final : public world::Http {
 public:
  struct Exchange {
    world::HttpRequest request;
    Done done;
  };

  void request(world::HttpRequest request, Done done) override {
    under_way.push_back({std::move(request), std::move(done)});
  }

  std::deque<Exchange> under_way;
};

class Watching : public testing::Test {
 protected:
  void watch(NoticeWatch::Sources sources) {
    auto door = std::make_unique<VirtualHttp>();
    http = door.get();
    watch_ = std::make_unique<NoticeWatch>(
        clock, std::move(door), std::move(sources),
        NoticeWatch::Ears{.heed = [this](const spot::Notice& notice) { heard.push_back(notice); },
                          .warn = [this](const std::string& line) { warned.push_back(line); }});
    watch_->start();
  }

  template <class... Source>
  void watch_for(std::unique_ptr<Source>... source) {
    NoticeWatch::Sources sources;
    (sources.push_back(std::move(source)), ...);
    watch(std::move(sources));
  }

  /// Answers the request that has been under way for the longest time.
  void answer(int status, const std::string& body, world::HttpHeaders headers = {}) {
    ASSERT_FALSE(http->under_way.empty());
    const VirtualHttp::Exchange exchange = std::move(http->under_way.front());
    http->under_way.pop_front();
    exchange.done(world::HttpAnswer{status, body, std::move(headers)});
  }

  std::vector<std::string> asked() const {
    std::vector<std::string> urls;
    for (const VirtualHttp::Exchange& exchange : http->under_way) urls.push_back(exchange.request.url);
    return urls;
  }

  train::HandClock clock;
  VirtualHttp* http = nullptr;  ///< of watch_
  std::vector<spot::Notice> heard;
  std::vector<std::string> warned;
  std::unique_ptr<NoticeWatch> watch_;
};

const world::HttpHeaders kGoogles = {{"Metadata-Flavor", "Google"}, {"ETag", "e"}};

TEST_F(Watching, asks_several_at_the_same_time_though_one_hangs) {
  watch_for(std::make_unique<spot::Gcp>(spot::Gcp::Topic::preempted),
            std::make_unique<spot::Gcp>(spot::Gcp::Topic::maintenance));
  const std::string root = "http://metadata.google.internal/computeMetadata/v1/instance/";
  EXPECT_THAT(asked(), ElementsAre(root + "preempted", root + "maintenance-event"));
  EXPECT_FALSE(watch_->has_looked());
  answer(200, "FALSE", kGoogles);
  EXPECT_TRUE(watch_->has_looked());
  const std::string hangs = "?wait_for_change=true&timeout_sec=60&last_etag=e";
  EXPECT_THAT(asked(), ElementsAre(root + "maintenance-event", root + "preempted" + hangs));
  answer(200, "MIGRATE_ON_HOST_MAINTENANCE", kGoogles);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].kind, spot::NoticeKind::freeze);
  EXPECT_EQ(heard[0].deadline, clock.now() + 60s);
}

TEST_F(Watching, asks_again_when_the_time_has_come) {
  watch_for(std::make_unique<spot::Aws>());
  answer(200, "AQAEA");
  for (int i = 0; i < 3; ++i) answer(404, "");
  EXPECT_TRUE(asked().empty());
  clock.run_until(clock.now() + 1999ms);
  EXPECT_TRUE(asked().empty());
  clock.run_until(clock.now() + 1ms);
  EXPECT_THAT(asked(), ElementsAre("http://169.254.169.254/latest/meta-data/spot/instance-action"));
  answer(200, R"({"action":"terminate","time":"1970-01-01T00:02:00Z"})");
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].deadline, clock.now() + 120s) << "the wall clock of the test stands at 1970";
}

TEST_F(Watching, says_what_is_wrong) {
  watch_for(std::make_unique<spot::Aws>());
  for (int i = 0; i < 4; ++i) {
    answer(403, "");
    clock.run_until(clock.now() + 2s);
  }
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_TRUE(warned[0].starts_with("notices: aws: no answer of the instance metadata (HTTP status 403)"));
}

TEST_F(Watching, approves_what_waits_for_the_peer) {
  watch_for(std::make_unique<spot::Azure>());
  answer(200, "vm1");
  answer(200, R"({"Events":[{"EventId":"A","EventType":"Preempt","Resources":["vm1"]}]})");
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_TRUE(watch_->says_goodbye());
  ASSERT_EQ(http->under_way.size(), 1U);
  EXPECT_EQ(http->under_way[0].request.method, "POST");
  EXPECT_TRUE(watch_->says_goodbye());
  EXPECT_EQ(http->under_way.size(), 1U) << "once";
  answer(200, "");
  EXPECT_FALSE(watch_->says_goodbye());
}

TEST_F(Watching, hears_nothing_after_its_end) {
  watch_for(std::make_unique<spot::Aws>());
  const VirtualHttp::Exchange late = std::move(http->under_way.front());
  watch_.reset();
  late.done(world::HttpAnswer{200, "AQAEA"});
  clock.run_until(clock.now() + 10s);
  EXPECT_TRUE(heard.empty());
}

}  // namespace
}  // namespace tw::peer
