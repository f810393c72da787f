// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "monitor/report/report.h"
#include "monitor/report/report_text.h"

namespace tw::monitor {
namespace {

using world::Phase;
using Log = std::vector<LogEntry>;

LogEntry at_hour(double hour, std::uint64_t writer, Phase phase) {
  return {.writer = PeerId{writer},
          .unix_nanos = 0,
          .event = {.at = Instant(from_seconds(hour * 3600)), .fact = world::fact_of(phase)}};
}

TEST(Cost, hours_last_from_the_start_of_each_process_to_its_stop_or_last_line) {
  const Log local = {at_hour(0, 0, Phase::start), at_hour(9, 0, Phase::stop)};
  const Log stopped = {at_hour(1, 1, Phase::start), at_hour(3, 1, Phase::stop)};
  const Log killed_and_back = {at_hour(1, 2, Phase::start), at_hour(1.5, 2, Phase::apply),
                               at_hour(4, 2, Phase::start), at_hour(5, 2, Phase::stop)};
  // The machine was started anew meanwhile: its clock begins at 0.
  const Log rebooted = {at_hour(6, 3, Phase::start), at_hour(7, 3, Phase::apply),
                        at_hour(0.5, 3, Phase::start), at_hour(0.75, 3, Phase::apply)};
  std::map<PeerId, double> hours;
  for (const BoardPeer& peer : summarize({local, stopped, killed_and_back, rebooted, {}}).board.peers)
    hours[peer.peer] = peer.usage.hours;
  const std::map<PeerId, double> expected = {{PeerId{1}, 2}, {PeerId{2}, 1.5}, {PeerId{3}, 1.25}};
  EXPECT_EQ(hours, expected);
}

/// Peers 1 to 3 ran for 10, 2 and 4 hours; no event of peer 4 is here. 900 samples count, 100 were given out
/// again.
std::vector<Log> logs(bool says_microbatch = true) {
  std::vector<Log> logs;
  for (const auto& [id, hours] : {std::pair{1U, 10}, {2U, 2}, {3U, 4}}) {
    Log& log = logs.emplace_back(Log{at_hour(0, id, Phase::start), at_hour(hours, id, Phase::stop)});
    if (id != 1) continue;
    if (says_microbatch) log[0].event.fact = event::Start{.microbatch = 10};
    LogEntry lost = at_hour(1, id, Phase::lost), reissue = at_hour(1, id, Phase::reissue);
    LogEntry commit = at_hour(2, id, Phase::commit);
    lost.event.peer = reissue.event.peer = PeerId{4};
    reissue.event.fact = event::Reissue{.microbatches = 10};
    commit.event.round = 1;
    commit.event.fact = event::Commit{.samples = 900, .samples_total = 900};
    log.insert(log.begin() + 1, {lost, reissue, commit});
  }
  return logs;
}

TEST(Cost, is_by_the_prices_of_a_plan_where_these_alone_count) {
  auto all = logs();
  std::get<event::Start>(all[1][0].event.fact).usd_per_h = 9;
  const std::map<PeerId, double> plan{{PeerId{1}, 0.5}, {PeerId{2}, 1}};
  EXPECT_EQ(summarize(all, {.usd_per_h = plan}).board.money.usd(), 5 + 2 * 9);
  EXPECT_EQ(summarize(all, {.usd_per_h = plan, .keeps_to_usd_per_h = true}).board.money.usd(), 5 + 2 * 1);
}

TEST(Cost, is_that_of_the_hours_whose_price_is_known) {
  const Summary told = summarize(logs(), {.usd_per_h = {{PeerId{1}, 0.5}, {PeerId{2}, 0}, {PeerId{4}, 7}}});
  EXPECT_EQ(told.board.money.usd(), 5);
  EXPECT_EQ(told.board.money.priced_hours, 12) << "peer 2 is owned";
  EXPECT_EQ(told.usd_again(), 0.5) << "a tenth of all samples that were leased";
  const std::string text = render(told);
  for (const char* part : {"machine hours  16.000\n",
                           "cost           5.00 USD for 12.000 hours; of the other 4.000 no price is known\n",
                           "only leased to them, at most 100 samples (0.500 USD)\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Cost, says_nothing_of_money_where_no_price_is_known) {
  const Summary told = summarize(logs(), {.usd_per_h = {{PeerId{9}, 1}}});
  EXPECT_EQ(told.board.money.usd(), std::nullopt);
  EXPECT_EQ(told.usd_again(), std::nullopt);
  EXPECT_EQ(render(told).find("USD"), std::string::npos) << render(told);
}

LogEntry traffic(std::uint64_t writer, world::Event event) {
  event.at = Instant(from_seconds(5));
  return {.writer = PeerId{writer}, .unix_nanos = 0, .event = std::move(event)};
}

Summary of_reads(const char* store) {
  return summarize(
      {{traffic(1, {.fact = event::Start{.site = "aws:us-east-1:a"}}),
        traffic(2, {.fact = event::Start{.site = "gcp:us-central1:b"}}),
        traffic(1, {.fact = event::Traffic{.from = {{store, 1'000'000'000}}, .asked = {{store, 1000}}}}),
        traffic(2, {.fact = event::Traffic{.from = {{store, 2'000'000'000}}, .asked = {{store, 2000}}}})}});
}

TEST(Cost, of_stores_is_told_with_bytes_and_requests) {
  const Summary told = of_reads("s3:us-east-1");
  const std::vector<StoreUsed> stores = stores_of(told.board.links);
  ASSERT_EQ(stores.size(), 1U);
  const StoreTraffic& s3 = stores[0].read;
  EXPECT_EQ(s3.bytes, 3'000'000'000U);
  EXPECT_EQ(s3.requests, 3000U);
  EXPECT_NEAR(s3.usd.value(), 2 * 0.09, 1e-12) << "nothing within the region";
  EXPECT_NEAR(s3.requests_usd.value(), 3000 * 0.4e-6, 1e-12);
  EXPECT_EQ(told.board.money.egress_usd, s3.usd);
  EXPECT_EQ(told.board.money.requests_usd, s3.requests_usd);
  EXPECT_NE(
      render(told).find("read from      s3:us-east-1: 3.00 GB (0.18 USD), 3000 requests (0.0012 USD)\n"),
      std::string::npos)
      << render(told);
}

TEST(Cost, of_copies_in_a_store_is_that_of_writes_and_of_what_leaves_the_peers_provider) {
  const Summary told = summarize({{traffic(1, {.fact = event::Start{.site = "gcp:us-central1:b"}}),
                                   traffic(1, {.fact = event::Traffic{.into = {{"s3:us-east-1", 1e9}},
                                                                      .wrote = {{"s3:us-east-1", 1000}}}})}});
  const std::vector<StoreUsed> stores = stores_of(told.board.links);
  ASSERT_EQ(stores.size(), 1U);
  const StoreTraffic& written = stores[0].written;
  EXPECT_EQ(written.bytes, 1'000'000'000U);
  EXPECT_EQ(written.usd, usual_egress_price("gcp:us-central1:b", "aws:us-east-1:a"));
  EXPECT_GT(written.usd.value(), 0);
  EXPECT_NEAR(written.requests_usd.value(), 1000 * 5e-6, 1e-12);
  EXPECT_NE(render(told).find("written to     s3:us-east-1: 1.00 GB ("), std::string::npos) << render(told);
  EXPECT_EQ(told.board.money.egress_usd, written.usd);
}

TEST(Cost, of_a_store_without_a_price_is_not_nothing) {
  const Summary told = of_reads("my.host:9000");
  EXPECT_EQ(told.board.money.egress_usd, std::nullopt);
  EXPECT_EQ(told.board.money.requests_usd, std::nullopt);
  EXPECT_NE(render(told).find("my.host:9000: 3.00 GB (price not known), 3000 requests (price not known)\n"),
            std::string::npos)
      << render(told);
}

TEST(Cost, of_what_was_given_out_again_is_unknown_where_its_samples_are) {
  const Summary told =
      summarize(logs(false), {.usd_per_h = {{PeerId{1}, 0.5}, {PeerId{2}, 0.5}, {PeerId{3}, 0.5}}});
  EXPECT_EQ(told.board.money.usd(), 8);
  EXPECT_EQ(told.usd_again(), std::nullopt);
  EXPECT_NE(render(told).find("cost           8.00 USD\n"), std::string::npos) << render(told);
}

}  // namespace
}  // namespace tw::monitor
