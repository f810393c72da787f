// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "monitor/board/board.h"

/// For tests.
namespace tw::monitor {

inline BoardPeer busy_peer() {
  return {
      .peer = PeerId{1},
      .site = "aws:us-east-1:a",
      .hardware = "1 x T4",
      .anchor = true,
      .state = PeerState::averaging,
      .since_s = 1000.5,
      .heard_s = 1001.5,
      .round = 13,
      .rounds = 12,
      .samples = 3072,
      .samples_per_s = 512.25,
      .usage = {.hours = 0.5, .cpu_s = 900, .peak_memory = 1 << 30, .bytes_sent = 17, .bytes_received = 19},
      .gpu = BoardGpu{.busy = 0.93, .memory = 12'000'000'000, .memory_total = 16'000'000'000},
      .digest = "00ff",
      .digest_round = 12,
      .notice = BoardNotice{.source = "aws", .kind = "preempt", .told_s = 1001, .deadline_s = 1121},
      .wait = BoardWait{.text = "waits for the mean", .since_s = 1000.75, .peers = {PeerId{2}}},
      .usd_per_h = 0.15,
      .ended = ""};
}

inline BoardPeer lost_peer() {
  return {.peer = PeerId{2}, .state = PeerState::lost, .since_s = 1001, .ended = "silent for 2.25 s"};
}

inline Money some_money() {
  return {.machine_hours = 2,
          .priced_hours = 1.5,
          .machines_usd = 0.25,
          .egress_usd = 0.125,
          .requests_usd = 0.0625,
          .usd_per_h = 0.3,
          .usd_per_million = 71.2,
          .forecast = UsdRange{.low = 1, .likely = 2, .high = 3},
          .left_s = 360,
          .budget_usd = 5};
}

inline std::vector<Interruption> some_interruptions() {
  return {{.kind = Interruption::Kind::handed_over,
           .at_s = 1001,
           .round = 13,
           .peer = PeerId{2},
           .detail = "128 samples to peer 1"},
          {.kind = Interruption::Kind::resumed,
           .at_s = 1002,
           .round = 13,
           .peer = PeerId{2},
           .detail = "goes on from a checkpoint"}};
}

/// No member has its default value.
inline Board full_board() {
  Board board;
  board.run = "c0ffee";
  board.now_s = 1002;
  board.round = 12;
  board.last_round = 400;
  board.samples = 6144;
  board.speed = {.samples_per_s = 1024.5, .goodput = 0.9, .granularity = 4.5, .hidden = 0.75};
  board.loss = 0.25;
  board.evaluations = {{12, 1001, PeerId{1}, "accuracy", 0.75}};
  board.identical = true;
  board.complete = true;
  board.ended = "its budget is spent";
  board.dead_since_s = 1001;
  board.own_delays = true;
  board.peers = {busy_peer(), lost_peer()};
  board.links = {{.from = "aws:us-east-1:a",
                  .to = "gcp:us-west1:b",
                  .bytes = 1'000'000,
                  .mbit_s = 93.5,
                  .bound_mbit_s = 100,
                  .usd_per_gb = 0.09,
                  .usd = 0.125}};
  board.rounds = {{.round = 12,
                   .begun_s = 990,
                   .called_s = 995,
                   .committed_s = 996,
                   .calc_s = 5,
                   .comm_s = 1,
                   .bound_share = 0.93,
                   .samples = 512,
                   .samples_total = 6144,
                   .carried = 32,
                   .contributors = {PeerId{1}},
                   .left_out = {{.peer = PeerId{2}, .why = "silent"}},
                   .loss = 0.25}};
  board.spans = {{.peer = PeerId{1},
                  .round = 12,
                  .state = PeerState::applying,
                  .from_s = 996,
                  .to_s = 996.5,
                  .why = "waits for peer 2"}};
  board.interruptions = some_interruptions();
  board.ledger = {.committed = 6144, .handed_over = 128, .again = 64, .skipped = 32};
  board.money = some_money();
  board.delays = {{.cause = Delay::Cause::link,
                   .peer = PeerId{2},
                   .to = PeerId{1},
                   .since_s = 980,
                   .round_s = 0.5,
                   .share = 0.25,
                   .seconds = 4.5,
                   .usd_per_h = 0.075,
                   .usd = 0.0004}};
  return board;
}

}  // namespace tw::monitor
