// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/board_csv.h"

#include <fmt/format.h>

#include <vector>

#include "base/text/csv.h"

namespace tw::monitor {

namespace {

std::string field(const std::optional<double>& value) { return value ? csv_number(*value) : ""; }

/// To the microsecond: more is noise of the sums.
std::string time_field(const std::optional<double>& at_s) {
  return at_s && *at_s > 0 ? fmt::format("{:.6f}", *at_s) : "";
}

std::string ids(const std::vector<PeerId>& peers) {
  std::string text;
  for (const PeerId peer : peers) text += (text.empty() ? "" : " ") + to_string(peer);
  return text;
}

std::string reasons(const std::vector<LeftOut>& left_out) {
  std::string text;
  for (const LeftOut& one : left_out)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", to_string(one.peer), one.why);
  return text;
}

}  // namespace

std::string rounds_csv(const Board& board) {
  std::string text = csv_line({"round", "begun_unix_s", "called_unix_s", "committed_unix_s", "calc_s",
                               "comm_s", "bound_share", "samples", "contributors", "left_out", "loss"});
  for (const BoardRound& round : board.rounds)
    text += csv_line({std::to_string(round.round), time_field(round.begun_s), time_field(round.called_s),
                      time_field(round.committed_s), field(round.calc_s), field(round.comm_s),
                      field(round.bound_share), std::to_string(round.samples), ids(round.contributors),
                      reasons(round.left_out), field(round.loss)});
  return text;
}

std::string peers_csv(const Board& board) {
  std::string text = csv_line({"peer",          "site",
                               "hardware",      "anchor",
                               "state",         "since_unix_s",
                               "heard_unix_s",  "round",
                               "rounds",        "samples",
                               "samples_per_s", "hours",
                               "cpu_s",         "peak_memory_bytes",
                               "gpu_busy",      "gpu_memory_bytes",
                               "sent_bytes",    "received_bytes",
                               "usd_per_h",     "ended"});
  for (const BoardPeer& peer : board.peers)
    text += csv_line({to_string(peer.peer),
                      peer.site,
                      peer.hardware,
                      peer.anchor ? "1" : "0",
                      std::string(name_of(peer.state)),
                      time_field(peer.since_s),
                      time_field(peer.heard_s),
                      std::to_string(peer.round),
                      std::to_string(peer.rounds),
                      std::to_string(peer.samples),
                      csv_number(peer.samples_per_s),
                      csv_number(peer.usage.hours),
                      csv_number(peer.usage.cpu_s),
                      std::to_string(peer.usage.peak_memory),
                      peer.gpu ? field(peer.gpu->busy) : "",
                      peer.gpu ? std::to_string(peer.gpu->memory) : "",
                      std::to_string(peer.usage.bytes_sent),
                      std::to_string(peer.usage.bytes_received),
                      field(peer.usd_per_h),
                      peer.ended});
  return text;
}

std::string interruptions_csv(const Board& board) {
  std::string text = csv_line({"kind", "at_unix_s", "round", "peer", "detail"});
  for (const Interruption& event : board.interruptions)
    text += csv_line({std::string(name_of(event.kind)), time_field(event.at_s), std::to_string(event.round),
                      to_string(event.peer), event.detail});
  return text;
}

std::string links_csv(const Board& board) {
  std::string text = csv_line({"from", "to", "bytes", "rate_mbit_s", "bound_mbit_s", "tariff_usd_per_gb",
                               "cost_usd", "store", "requests", "requests_usd"});
  for (const BoardLink& link : board.links)
    text += csv_line({link.from, link.to, std::to_string(link.bytes), csv_number(link.mbit_s),
                      field(link.bound_mbit_s), field(link.usd_per_gb), csv_number(link.usd), link.store,
                      std::to_string(link.requests), field(link.requests_usd)});
  return text;
}

std::string evaluations_csv(const Board& board) {
  std::string text = csv_line({"round", "name", "value", "peer", "at_unix_s"});
  for (const BoardEvaluation& one : board.evaluations)
    text += csv_line({std::to_string(one.round), one.name, csv_number(one.value), to_string(one.peer),
                      time_field(one.at_s)});
  return text;
}

}  // namespace tw::monitor
