// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/summary_json.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

Summary some_summary() {
  Summary summary;
  summary.rounds = 12;
  summary.board.last_round = 400;
  summary.samples = 6144;
  summary.board.ledger = {.handed_over = 512, .skipped = 3};
  summary.samples_carried = 32;
  summary.samples_per_s = 1024.5;
  summary.calc_s = 0.5;
  summary.identical = true;
  summary.board.peers = {{.peer = PeerId{1ULL << 63},
                          .heard_s = 1000,
                          .rounds = 12,
                          .samples = 3072,
                          .usage = {.hours = 2.5, .bytes_sent = 17, .bytes_received = 19},
                          .digest = "00ff",
                          .usd_per_h = 0.5},
                         {.peer = PeerId{2}, .usd_per_h = 0.5}};
  summary.board.evaluations = {{12, 1001, PeerId{2}, "accuracy", 0.75}};
  summary.board.money = {
      .machine_hours = 4.5, .priced_hours = 2.5, .machines_usd = 1.25, .egress_usd = 0, .requests_usd = 0};
  summary.lost = {
      {.peer = PeerId{2}, .round = 6, .detected_s = 0.25, .why = "killed", .microbatches_again = 5}};
  summary.joined = {{.peer = PeerId{4}, .round = 8, .seconds = 1.5}};
  summary.notices = {
      {.peer = PeerId{4}, .round = 9, .source = "aws", .kind = "preempt", .deadline_s = 120, .used_s = {}}};
  summary.handovers = {{.peer = PeerId{5},
                        .round = 7,
                        .to = PeerId{1},
                        .samples = 512,
                        .bytes = 1000000,
                        .took_s = 1.5,
                        .round_left_s = {}}};
  summary.microbatches_again = 5;
  summary.insecure = false;
  return summary;
}

constexpr const char* kAllKeys = R"({
  "rounds": 12,
  "last_round": 400,
  "ended": null,
  "samples": 6144,
  "samples_skipped": 3,
  "samples_carried": 32,
  "samples_per_s": 1024.5,
  "loss": null,
  "evaluations": [
    {
      "round": 12,
      "peer": 2,
      "name": "accuracy",
      "value": 0.75
    }
  ],
  "granularity": null,
  "calc_s": 0.5,
  "comm_s": null,
  "hidden": null,
  "peers": [
    {
      "id": 9223372036854775808,
      "rounds": 12,
      "samples": 3072,
      "digest": "00ff",
      "bytes_sent": 17,
      "bytes_received": 19,
      "hours": 2.5,
      "usd": 1.25
    },
    {
      "id": 2,
      "rounds": 0,
      "samples": 0,
      "digest": "",
      "bytes_sent": null,
      "bytes_received": null,
      "hours": null,
      "usd": null
    }
  ],
  "identical": true,
  "insecure": false,
  "lost": [
    {
      "peer": 2,
      "round": 6,
      "detected_s": 0.25,
      "extra_s": null,
      "why": "killed",
      "microbatches_again": 5
    }
  ],
  "joined": [
    {
      "peer": 4,
      "round": 8,
      "seconds": 1.5
    }
  ],
  "left": [],
  "notices": [
    {
      "peer": 4,
      "round": 9,
      "source": "aws",
      "kind": "preempt",
      "deadline_s": 120.0,
      "used_s": null
    }
  ],
  "handovers": [
    {
      "peer": 5,
      "round": 7,
      "to": 1,
      "samples": 512,
      "bytes": 1000000,
      "took_s": 1.5,
      "round_left_s": null
    }
  ],
  "samples_handed_over": 512,
  "microbatches_again": 5,
  "samples_again": null,
  "machine_hours": 4.5,
  "priced_hours": 2.5,
  "usd": 1.25,
  "egress_usd": 0.0,
  "requests_usd": 0.0,
  "usd_again": null,
  "delays": []
}
)";

TEST(SummaryJson, has_every_promised_key_and_null_for_what_is_unknown) {
  EXPECT_EQ(to_json(some_summary()), kAllKeys);
}

TEST(SummaryJson, has_the_difference_where_there_is_one) {
  Summary summary = some_summary();
  summary.difference = "after round 4, peer 1 has aa and peer 2 has bb";
  const std::string json = to_json(summary);
  EXPECT_NE(json.find("\"difference\": \"after round 4"), std::string::npos) << json;
}

TEST(SummaryJson, says_why_a_run_is_over_short_of_its_goal) {
  Summary summary = some_summary();
  summary.board.ended = "its budget is spent";
  EXPECT_NE(to_json(summary).find("\"ended\": \"its budget is spent\""), std::string::npos);
}

TEST(SummaryJson, says_what_the_logs_lack) {
  Summary summary = some_summary();
  summary.unlogged_rounds = 5;
  summary.missing = {{.peer = PeerId{3},
                      .events = 214,
                      .from_unix_nanos = 1'767'225'600'000'000'000,
                      .to_unix_nanos = 1'767'225'660'000'000'000,
                      .why = "No space left on device"}};
  const std::string json = to_json(summary);
  for (const char* part :
       {"\"unlogged_rounds\": 5", "\"events\": 214", "\"to\": \"2026-01-01T00:01:00.000Z\""})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  summary.missing[0].to_unix_nanos.reset();
  EXPECT_NE(to_json(summary).find("\"to\": null"), std::string::npos) << "to the end of the run";
}

TEST(SummaryJson, that_cannot_be_written_names_the_path) {
  const Status status = write_summary("/proc/no-such-folder", some_summary());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "/proc/no-such-folder/summary.json: cannot be written: No such file or directory");
}

TEST(SummaryJson, of_a_running_peer_has_null_for_what_only_whole_logs_tell) {
  const std::string json = to_json(summary_of(Board{}));
  for (const char* key : {"samples_per_s", "handovers", "microbatches_again", "samples_again", "usd_again",
                          "samples_carried", "insecure"})
    EXPECT_NE(json.find('"' + std::string(key) + "\": null"), std::string::npos) << key << "\n" << json;
}

TEST(SummaryJson, of_stores_without_a_price_has_null) {
  Summary summary = some_summary();
  summary.board.links = {{.from = "my.host", .to = "here", .bytes = 7, .store = "my.host", .requests = 3000}};
  summary.board.links[0].requests_usd = 0.5;
  summary.board.money.egress_usd.reset();
  const std::string json = to_json(summary);
  for (const char* part : {"\"egress_usd\": null", "\"requests\": 3000", "\"store\": \"my.host\"",
                           "\"usd\": null", "\"requests_usd\": 0.5"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace tw::monitor
