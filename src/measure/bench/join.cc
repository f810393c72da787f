// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "base/result.h"
#include "base/text/quantity.h"
#include "host/system/temporary_folder.h"
#include "launch/local/child.h"
#include "measure/bench/bench_peer.h"
#include "measure/bench/pump.h"
#include "measure/bench/watch.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/event_log_tail.h"

namespace tw::measure {
namespace {

using world::Event;
using namespace std::chrono_literals;

constexpr Duration kLookJoin = 2ms;
/// Before the join, so that buffers are allocated and speeds are known.
constexpr Round kRoundsBefore = 3;
/// More than a turn can last.
constexpr Round kRoundsWithoutEnd = 1'000'000;
constexpr std::uint64_t kBuffersOfState = 3;

const monitor::LogEntry* find(const std::vector<monitor::LogEntry>& log,
                              const std::function<bool(const Event&)>& fits) {
  const auto found =
      std::ranges::find_if(log, [&](const monitor::LogEntry& entry) { return fits(entry.event); });
  return found == log.end() ? nullptr : &*found;
}

template <class Kind>
bool is(const Event& event) {
  return event.as<Kind>() != nullptr;
}

bool contributes(const Event& event) {
  const auto* commit = event.as<event::Commit>();
  return commit && commit->samples > 0;
}

bool has_state(const Event& event) {
  const auto* restored = event.as<event::Restore>();
  return restored && !restored->digest.empty();
}

/// The peers of one turn, a process each.
class Company {
 public:
  explicit Company(const JoinOptions& options) : options_(options) {}

  Status start(std::uint64_t id, const std::string& join) {
    const BenchPeer options{.id = id,
                            .peers = options_.peers,
                            .bytes = options_.bytes / kBuffersOfState,
                            .codec = codec::Codec::int8,
                            .rounds = kRoundsWithoutEnd,
                            .out = folder_.path(),
                            .listen = "127.0.0.1:0"};
    std::vector<std::string> more = {"--adamw", "--work-ms", std::to_string(options_.work / 1ms)};
    if (!join.empty()) more.insert(more.end(), {"--join", join});
    const PeerId peer{id};
    TW_TRY(auto child, launch::Child::start_self(words_of(options, more), output_of(peer)));
    children_.emplace(peer, std::move(child));
    tails_.emplace(peer, monitor::EventLogTail(folder_.path() + "/" + monitor::event_log_name(peer)));
    logs_[peer];
    return Unit{};
  }

  Status until(const std::string& what, const std::function<bool()>& holds) {
    Status state = Unit{};
    const Status in_time = wait_until(what, kLookJoin, [&] {
      state = look();
      return !state || holds();
    });
    return in_time ? state : in_time;
  }

  const std::vector<monitor::LogEntry>& log(std::uint64_t id) const { return logs_.at(PeerId{id}); }

 private:
  Status look() {
    for (auto& [id, tail] : tails_) {
      TW_TRY(auto entries, tail.poll());
      logs_[id].insert(logs_[id].end(), entries.begin(), entries.end());
      if (!children_.at(id).ending()) continue;
      return Error{fmt::format("peer {} ended: {}", to_string(id), launch::last_words(output_of(id)))};
    }
    return Unit{};
  }

  std::string output_of(PeerId id) const { return folder_.path() + "/peer-" + to_string(id) + ".log"; }

  JoinOptions options_;
  host::TemporaryFolder folder_;
  std::map<PeerId, launch::Child> children_;
  std::map<PeerId, monitor::EventLogTail> tails_;
  std::map<PeerId, std::vector<monitor::LogEntry>> logs_;
};

JoinTimes times_of(const std::vector<monitor::LogEntry>& log, Instant begun) {
  const Event& start = find(log, is<event::Start>)->event;
  const Event& asks = find(log, is<event::Restore>)->event;
  const Event& has = find(log, has_state)->event;
  const event::Restore& restored = *has.as<event::Restore>();
  JoinTimes times;
  times.start_s = to_seconds(start.at - begun);
  times.link_s = to_seconds(asks.at - start.at);
  times.offer_s = restored.offer_s.value_or(0);
  times.transfer_s = restored.transfer_s.value_or(0);
  times.place_s = restored.took_s.value_or(0) - times.offer_s - times.transfer_s;
  times.contribute_s = to_seconds(find(log, contributes)->event.at - has.at);
  return times;
}

double round_seconds(const std::vector<monitor::LogEntry>& log) {
  std::vector<Instant> commits;
  for (const monitor::LogEntry& entry : log)
    if (entry.event.phase() == world::Phase::commit) commits.push_back(entry.event.at);
  std::vector<double> rounds;
  for (std::size_t i = 1; i < commits.size(); ++i) rounds.push_back(to_seconds(commits[i] - commits[i - 1]));
  return median(rounds);
}

struct Turn {
  JoinTimes times;
  double round_s = 0;
};

Result<Turn> join_turn(const JoinOptions& options) {
  Company company(options);
  std::string address;
  TW_TRY(company.start(1, ""));
  const Status listens = company.until("peer 1 does not listen", [&] {
    const monitor::LogEntry* start = find(company.log(1), is<event::Start>);
    if (start != nullptr) address = start->event.as<event::Start>()->address;
    return start != nullptr;
  });
  if (!listens) return listens.error();
  for (std::uint64_t id = 2; id <= options.peers; ++id) {
    TW_TRY(company.start(id, address));
  }
  const Status trains = company.until("the peers do not train", [&] {
    return find(company.log(1),
                [](const Event& e) { return is<event::Commit>(e) && e.round == kRoundsBefore; }) != nullptr;
  });
  if (!trains) return trains.error();
  const double round_s = round_seconds(company.log(1));
  const Instant begun = now();
  const std::uint64_t joiner = options.peers + 1;
  TW_TRY(company.start(joiner, address));
  const Status joined =
      company.until("the joiner does not contribute", [&] { return find(company.log(joiner), contributes); });
  if (!joined) return joined.error();
  return Turn{times_of(company.log(joiner), begun), round_s};
}

}  // namespace

Result<JoinResult> join(const JoinOptions& options, const Say& say) {
  std::vector<double> start, link, offer, transfer, place, contribute, state, rounds, bounds;
  for (Round turn = 1; turn <= options.turns; ++turn) {
    if (options.turns > 1) say(fmt::format("turn {} of {}", turn, options.turns));
    TW_TRY(const auto bound, carry_loopback(options.bytes));
    bounds.push_back(bound);
    TW_TRY(const auto joined, join_turn(options));
    const JoinTimes& times = joined.times;
    start.push_back(times.start_s);
    link.push_back(times.link_s);
    offer.push_back(times.offer_s);
    transfer.push_back(times.transfer_s);
    place.push_back(times.place_s);
    contribute.push_back(times.contribute_s);
    state.push_back(times.state_s());
    rounds.push_back(joined.round_s);
  }
  return JoinResult{
      options,
      {median(start), median(link), median(offer), median(transfer), median(place), median(contribute)},
      median(state),
      median(rounds),
      median(bounds)};
}

std::string render(const JoinResult& result) {
  const JoinTimes& times = result.times;
  std::string text = fmt::format("a peer joins {}, {} of state, loopback; medians of {} turns, seconds\n",
                                 result.options.peers, size_text(result.options.bytes), result.options.turns);
  const auto row = [&](const char* what, double seconds) {
    text += fmt::format("  {:<58}{:>8.3f}\n", what, seconds);
  };
  row("the process starts and listens", times.start_s);
  row("links, asks for the state", times.link_s);
  row("others copy and hash theirs, and offer it", times.offer_s);
  row("chunks cross and are hashed", times.transfer_s);
  row("they are put in place", times.place_s);
  row("until a round with its samples is decided", times.contribute_s);
  row("state: offer, transfer, in place", result.state_s);
  row("bound: as many bytes with a plain socket, hashed once", result.bound_s);
  text += fmt::format("  {:<58}{:>8.2f}\n", "state relative to the bound", result.state_s / result.bound_s);
  row("a round of the others", result.round_s);
  return text;
}

}  // namespace tw::measure
