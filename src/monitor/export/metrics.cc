// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/peer_name.h"

namespace tw::monitor {
namespace {

using Emit = Metric::Emit;

constexpr double kGoneIsForgotten_s = 600;

/// A value of a label: what would end it is written with a backslash.
std::string quoted(std::string_view name, std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == '"') value += '\\';
    if (c == '\n') {
      value += "\\n";
    } else {
      value += c;
    }
  }
  return fmt::format("{}=\"{}\"", name, value);
}

bool has_gone(const BoardPeer& peer) {
  return peer.state == PeerState::left || peer.state == PeerState::lost;
}

/// Where nobody goes on with the run, the time of its end.
double time_of(const Board& board) {
  if (!board.is_over() && !board.dead_since_s) return board.now_s;
  double end_s = 0;
  for (const BoardPeer& peer : board.peers) end_s = std::max({end_s, peer.since_s, peer.heard_s});
  return end_s;
}

bool is_forgotten(double now_s, const BoardPeer& peer) {
  return has_gone(peer) && now_s - peer.since_s > kGoneIsForgotten_s;
}

/// value(peer): a number, or an optional one.
template <class Value>
void each_peer(const Board& board, const Emit& emit, const Value& value) {
  const double now_s = time_of(board);
  for (const BoardPeer& peer : board.peers) {
    const std::optional<double> found = value(peer);
    if (is_forgotten(now_s, peer) || !found) continue;
    emit(quoted("peer", peer_name(peer.peer)) + "," + quoted("site", peer.site), *found);
  }
}

std::optional<double> gpu_busy(const BoardPeer& peer) { return peer.gpu ? peer.gpu->busy : std::nullopt; }

std::optional<double> gpu_bytes(const BoardPeer& peer, std::uint64_t BoardGpu::*bytes) {
  return peer.gpu ? std::optional(static_cast<double>(*peer.gpu.*bytes)) : std::nullopt;
}

void each_link(const Board& board, const Emit& emit, double (*value)(const BoardLink&)) {
  for (const BoardLink& link : board.links)
    emit(quoted("from", link.from) + "," + quoted("to", link.to), value(link));
}

void if_known(const Emit& emit, const std::optional<double>& value, const std::string& labels = "") {
  if (value) emit(labels, *value);
}

double last_commit(const Board& board) {
  const auto committed = [](const BoardRound& round) { return round.committed_s.has_value(); };
  const auto found = std::find_if(board.rounds.rbegin(), board.rounds.rend(), committed);
  return found == board.rounds.rend() ? 0 : *found->committed_s;
}

void peers_by_state(const Board& board, const Emit& emit) {
  for (int i = 0; i <= static_cast<int>(PeerState::lost); ++i) {
    const auto state = static_cast<PeerState>(i);
    emit(quoted("state", name_of(state)),
         static_cast<double>(std::ranges::count(board.peers, state, &BoardPeer::state)));
  }
}

void spent(const Board& board, const Emit& emit) {
  if_known(emit, board.money.machines_usd, quoted("kind", "machines"));
  if_known(emit, board.money.egress_usd, quoted("kind", "egress"));
  if_known(emit, board.money.requests_usd, quoted("kind", "requests"));
}

void forecast(const Board& board, const Emit& emit) {
  if (!board.money.forecast) return;
  emit(quoted("bound", "low"), board.money.forecast->low);
  emit(quoted("bound", "likely"), board.money.forecast->likely);
  emit(quoted("bound", "high"), board.money.forecast->high);
}

/// to: empty but for the link of a pair.
void each_delay(const Board& board, const Emit& emit, std::optional<double> (*value)(const Delay&)) {
  const double now_s = time_of(board);
  for (const Delay& delay : board.delays) {
    const auto peer = std::ranges::find(board.peers, delay.peer, &BoardPeer::peer);
    if (peer == board.peers.end() || is_forgotten(now_s, *peer)) continue;
    const std::string to = delay.to ? peer_name(*delay.to) : "";
    const std::string labels = fmt::format("{},{},{}", quoted("cause", name_of(delay.cause)),
                                           quoted("peer", peer_name(delay.peer)), quoted("to", to));
    if_known(emit, value(delay), labels);
  }
}

/// The same of a run that goes on.
void each_delay_now(const Board& board, const Emit& emit, std::optional<double> (*value)(const Delay&)) {
  if (!board.is_over() && !board.dead_since_s) each_delay(board, emit, value);
}

double number(std::uint64_t count) { return static_cast<double>(count); }

constexpr std::array kMetrics = {
    Metric{"tw_round", "gauge", "", "Last committed round",
           [](const Board& b, const Emit& emit) { emit("", number(b.round)); }},
    Metric{"tw_last_round", "gauge", "", "Round with which the run ends, where the run file says so",
           [](const Board& b, const Emit& emit) {
             if (b.last_round) emit("", number(*b.last_round));
           }},
    Metric{"tw_last_commit_timestamp_seconds", "gauge", "",
           "When the last round was committed, in seconds since 1970",
           [](const Board& b, const Emit& emit) {
             if (last_commit(b) > 0) emit("", last_commit(b));
           }},
    Metric{"tw_run_complete", "gauge", "", "1 when the run has reached its goal",
           [](const Board& b, const Emit& emit) { emit("", b.complete ? 1 : 0); }},
    Metric{"tw_run_over", "gauge", "",
           "1 when no round comes any more: complete, its budget is spent, or all peers have left",
           [](const Board& b, const Emit& emit) { emit("", b.is_over() ? 1 : 0); }},
    Metric{
        "tw_run_dead_since_timestamp_seconds", "gauge", "",
        "Since when nobody goes on with a run short of its goal, in seconds since 1970; absent: it goes on",
        [](const Board& b, const Emit& emit) { if_known(emit, b.dead_since_s); }},
    Metric{"tw_delay_ratio", "gauge", "cause, peer, to",
           "Share of the last rounds' time that this peer costs the run, 0 to 1",
           [](const Board& b, const Emit& emit) {
             each_delay_now(b, emit, [](const Delay& delay) { return std::optional(delay.share); });
           }},
    Metric{"tw_delay_seconds_total", "counter", "cause, peer, to", "Time that this peer has cost the run",
           [](const Board& b, const Emit& emit) {
             each_delay(b, emit, [](const Delay& delay) { return std::optional(delay.seconds); });
           }},
    Metric{"tw_delay_usd_per_hour", "gauge", "cause, peer, to",
           "Dollars an hour that this peer costs the run",
           [](const Board& b, const Emit& emit) {
             each_delay_now(b, emit, [](const Delay& delay) { return delay.usd_per_h; });
           }},
    Metric{"tw_samples_total", "counter", "", "Samples in committed rounds",
           [](const Board& b, const Emit& emit) { emit("", number(b.samples)); }},
    Metric{"tw_samples_per_second", "gauge", "", "Speed over the last rounds",
           [](const Board& b, const Emit& emit) {
             if (b.speed.samples_per_s > 0) emit("", b.speed.samples_per_s);
           }},
    Metric{"tw_goodput_ratio", "gauge", "",
           "Share of the peers' time that went into samples that count, 0 to 1",
           [](const Board& b, const Emit& emit) { if_known(emit, b.speed.goodput); }},
    Metric{"tw_granularity_ratio", "gauge", "", "Calculation time by communication time of the last rounds",
           [](const Board& b, const Emit& emit) { if_known(emit, b.speed.granularity); }},
    Metric{"tw_loss", "gauge", "", "Loss of the last batch",
           [](const Board& b, const Emit& emit) { if_known(emit, b.loss); }},
    Metric{"tw_evaluation", "gauge", "name", "What the program measured last of the run's parameters",
           [](const Board& b, const Emit& emit) {
             for (const BoardEvaluation& one : newest_evaluations(b))
               emit(quoted("name", one.name), one.value);
           }},
    Metric{"tw_parameters_identical", "gauge", "",
           "1 when all peers that applied the same rounds have the same parameters, 0 when they differ; "
           "absent: a peer is apart",
           [](const Board& b, const Emit& emit) {
             if (b.identical) emit("", *b.identical ? 1 : 0);
           }},
    Metric{"tw_peers", "gauge", "state", "Peers by what they do", peers_by_state},
    Metric{"tw_samples_again_total", "counter", "", "Samples that were given out again, at most",
           [](const Board& b, const Emit& emit) { emit("", number(b.ledger.again)); }},
    Metric{"tw_samples_skipped_total", "counter", "", "Samples that the run went on without",
           [](const Board& b, const Emit& emit) { emit("", number(b.ledger.skipped)); }},
    Metric{"tw_cost_usd_total", "counter", "kind", "Dollars so far: machines, egress or requests", spent},
    Metric{"tw_cost_usd_per_hour", "gauge", "", "Dollars an hour, now",
           [](const Board& b, const Emit& emit) { if_known(emit, b.money.usd_per_h); }},
    Metric{"tw_cost_usd_per_million_samples", "gauge", "", "Dollars for a million samples, of the run so far",
           [](const Board& b, const Emit& emit) { if_known(emit, b.money.usd_per_million); }},
    Metric{"tw_cost_forecast_usd", "gauge", "bound", "Dollars of the whole run: low, likely or high",
           forecast},
    Metric{"tw_budget_usd", "gauge", "", "Dollars that the run file allows",
           [](const Board& b, const Emit& emit) { if_known(emit, b.money.budget_usd); }},
    Metric{"tw_left_seconds", "gauge", "", "Time to the goal of the run, likely",
           [](const Board& b, const Emit& emit) { if_known(emit, b.money.left_s); }},
    Metric{"tw_peer_up", "gauge", "peer, site", "1 while the peer takes part, 0 once it left or is lost",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return has_gone(peer) ? 0.0 : 1.0; });
           }},
    Metric{"tw_peer_round", "gauge", "peer, site", "Round that the peer works at",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return number(peer.round); });
           }},
    Metric{"tw_peer_heard_timestamp_seconds", "gauge", "peer, site",
           "Last sign of life, in seconds since 1970",
           [](const Board& b,
              const Emit& emit) { each_peer(b, emit, [](const BoardPeer& peer) { return peer.heard_s; }); }},
    Metric{"tw_peer_samples_total", "counter", "peer, site", "Samples of the peer in committed rounds",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return number(peer.samples); });
           }},
    Metric{"tw_peer_samples_per_second", "gauge", "peer, site", "Speed of the peer over its last rounds",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return peer.samples_per_s; });
           }},
    Metric{"tw_peer_waiting", "gauge", "peer, site", "1 while the peer waits for others",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return peer.wait ? 1.0 : 0.0; });
           }},
    Metric{"tw_peer_notice", "gauge", "peer, site", "1 once the peer has a notice that its machine goes",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return peer.notice ? 1.0 : 0.0; });
           }},
    Metric{"tw_peer_cpu_seconds_total", "counter", "peer, site", "CPU time of the peer's processes",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return peer.usage.cpu_s; });
           }},
    Metric{"tw_peer_memory_peak_bytes", "gauge", "peer, site", "The most memory that the peer had in use",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return number(peer.usage.peak_memory); });
           }},
    Metric{"tw_peer_gpu_busy_ratio", "gauge", "peer, site", "Share of the time that its GPU was busy",
           [](const Board& b, const Emit& emit) { each_peer(b, emit, gpu_busy); }},
    Metric{"tw_peer_gpu_memory_bytes", "gauge", "peer, site", "Memory in use on its GPU by all processes",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& p) { return gpu_bytes(p, &BoardGpu::memory); });
           }},
    Metric{"tw_peer_gpu_memory_total_bytes", "gauge", "peer, site", "Memory of its GPU",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& p) { return gpu_bytes(p, &BoardGpu::memory_total); });
           }},
    Metric{"tw_peer_sent_bytes_total", "counter", "peer, site", "Bytes that the peer sent to others",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return number(peer.usage.bytes_sent); });
           }},
    Metric{"tw_peer_received_bytes_total", "counter", "peer, site", "Bytes that the peer had from others",
           [](const Board& b, const Emit& emit) {
             each_peer(b, emit, [](const BoardPeer& peer) { return number(peer.usage.bytes_received); });
           }},
    Metric{"tw_link_bytes_total", "counter", "from, to", "Bytes from one site, or store, to another",
           [](const Board& b, const Emit& emit) {
             each_link(b, emit, [](const BoardLink& link) { return number(link.bytes); });
           }},
    Metric{
        "tw_link_bytes_per_second", "gauge", "from, to", "Rate from one site, or store, to another, lately",
        [](const Board& b, const Emit& emit) {
          each_link(b, emit, [](const BoardLink& link) { return link.mbit_s * 1e6 / 8; });
        }},
    Metric{"tw_link_cost_usd_total", "counter", "from, to",
           "Dollars for the bytes from one site, or store, to another",
           [](const Board& b,
              const Emit& emit) { each_link(b, emit, [](const BoardLink& link) { return link.usd; }); }},
};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

std::string metrics_text(const Board& board) {
  std::string text;
  for (const Metric& metric : kMetrics) {
    std::string lines;
    metric.values(board, [&](const std::string& labels, double value) {
      if (!std::isfinite(value)) return;
      const std::string where = labels.empty() ? "" : "{" + labels + "}";
      lines += fmt::format("{}{} {}\n", metric.name, where, value);
    });
    if (lines.empty()) continue;
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", metric.name, metric.help, metric.name, metric.type,
                        lines);
  }
  return text;
}

}  // namespace tw::monitor
