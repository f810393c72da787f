// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/chrome_trace_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/peer_name.h"

namespace tw::monitor {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kThread = 1;

/// The averaging of a peer in a round, and the calculation before it.
struct Stages {
  const BoardSpan* computing = nullptr;
  const BoardSpan* averaging = nullptr;
};

class Trace {
 public:
  explicit Trace(const Board& board) : board_(board) {
    for (const BoardSpan& span : board.spans) zero_s_ = std::min(zero_s_, span.from_s);
    if (board.spans.empty()) zero_s_ = 0;
    number_peers();
  }

  std::string text() {
    for (const BoardPeer& peer : board_.peers) name(peer);
    for (const BoardSpan& span : board_.spans) add(span);
    for (const Interruption& interruption : board_.interruptions) add(interruption);
    for (const BoardRound& round : board_.rounds) add_arrows(round);
    const Json json = {{"traceEvents", std::move(events_)},
                       {"displayTimeUnit", "ms"},
                       {"otherData", {{"run", board_.run}, {"begin_unix_s", zero_s_}}}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  }

 private:
  void number_peers() {
    for (const BoardPeer& peer : board_.peers) pids_[peer.peer] = peer.peer.value;
    for (const BoardSpan& span : board_.spans) pids_[span.peer] = span.peer.value;
    constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (pids_.empty() || pids_.rbegin()->first.value <= kMost) return;
    std::uint64_t place = 0;
    for (auto& [peer, pid] : pids_) pid = ++place;
  }

  std::int64_t microseconds(double at_s) const { return std::llround((at_s - zero_s_) * 1e6); }

  Json event(const char* kind, const std::string& name, PeerId peer) const {
    return {{"ph", kind}, {"name", name}, {"pid", pids_.at(peer)}, {"tid", kThread}};
  }

  void name(const BoardPeer& peer) {
    std::string words = "peer " + peer_name(peer.peer);
    if (!peer.site.empty()) words += " " + peer.site;
    Json process = event("M", "process_name", peer.peer);
    process["args"] = {{"name", words}};
    Json thread = event("M", "thread_name", peer.peer);
    thread["args"] = {{"name", peer.hardware.empty() ? "phases" : "phases, " + peer.hardware}};
    events_.push_back(std::move(process));
    events_.push_back(std::move(thread));
  }

  void add(const BoardSpan& span) {
    Json complete = event("X", std::string(name_of(span.state)), span.peer);
    complete["cat"] = "phase";
    complete["ts"] = microseconds(span.from_s);
    complete["dur"] = std::max<std::int64_t>(0, microseconds(span.to_s) - microseconds(span.from_s));
    complete["args"] = {{"round", span.round}};
    if (!span.why.empty()) complete["args"]["why"] = span.why;
    events_.push_back(std::move(complete));
    Stages& stages = stages_[span.round][span.peer];
    if (span.state == PeerState::computing) stages.computing = &span;
    if (span.state == PeerState::averaging) stages.averaging = &span;
  }

  /// Those of before the first span have no place in it.
  void add(const Interruption& interruption) {
    if (interruption.at_s < zero_s_ || !pids_.contains(interruption.peer)) return;
    Json instant = event("i", std::string(name_of(interruption.kind)), interruption.peer);
    instant["cat"] = "interruption";
    instant["ts"] = microseconds(interruption.at_s);
    instant["s"] = "p";
    instant["args"] = {{"round", interruption.round}, {"detail", interruption.detail}};
    events_.push_back(std::move(instant));
  }

  void add_arrows(const BoardRound& round) {
    const auto found = stages_.find(round.round);
    if (!round.committed_s || found == stages_.end()) return;
    const BoardSpan* slowest = nullptr;
    for (const PeerId peer : round.contributors) {
      const auto stages = found->second.find(peer);
      const BoardSpan* computing = stages == found->second.end() ? nullptr : stages->second.computing;
      if (computing && (!slowest || computing->to_s > slowest->to_s)) slowest = computing;
    }
    if (!slowest) return;
    for (const PeerId peer : round.contributors) {
      const auto stages = found->second.find(peer);
      if (peer != slowest->peer && stages != found->second.end() && stages->second.averaging)
        add_arrow(*slowest, *stages->second.averaging);
    }
  }

  /// The end of a flow is bound to the span around it ("bp": "e").
  void add_arrow(const BoardSpan& from, const BoardSpan& to) {
    const std::string words = "round " + std::to_string(from.round);
    Json begin = event("s", words, from.peer), end = event("f", words, to.peer);
    begin["ts"] = microseconds(from.to_s);
    end["ts"] = microseconds(to.to_s);
    end["bp"] = "e";
    ++arrows_;
    for (Json* point : {&begin, &end}) {
      (*point)["cat"] = "slowest calculation";
      (*point)["id"] = arrows_;
      events_.push_back(std::move(*point));
    }
  }

  const Board& board_;
  double zero_s_ = std::numeric_limits<double>::infinity();
  std::map<PeerId, std::uint64_t> pids_;
  std::map<Round, std::map<PeerId, Stages>> stages_;
  Json events_ = Json::array();
  int arrows_ = 0;
};

}  // namespace

std::string chrome_trace(const Board& board) { return Trace(board).text(); }

}  // namespace tw::monitor
