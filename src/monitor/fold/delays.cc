// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/delays.h"

#include <algorithm>
#include <numeric>

#include "base/median.h"

namespace tw::monitor {
namespace {

/// A round is closed when one so much later begins to be decided: all that follow the run have told of it.
constexpr Round kClosedAfter = 2;
/// Speeds of like machines differ by less.
constexpr double kLikeSpeed = 0.9;
constexpr double kClearly = 1.25;
/// So much of a peer's time is clearly more, however much all peers have.
constexpr double kClearShare = 0.1;
/// A bandwidth below this part of the median is examined.
constexpr double kThinLink = 0.75;
/// Transfers take longer than the bound: up to this many times is put down to bandwidth.
constexpr double kMostOverBound = 1.5;
/// A link counts if the bound without it is below this part of that with it.
constexpr double kBinds = 0.95;
/// Most of a peer's time that a cause may take: a speed is never judged by less of it than the rest.
constexpr double kMostExcess = 0.95;

template <class T, class Value>
std::optional<double> median_of_others(const std::vector<T>& all, const T& self, Value value) {
  std::vector<double> values;
  for (const T& one : all)
    if (one.peer != self.peer) values.push_back(value(one));
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

/// A lone peer has nobody to compare with.
template <class T, class Value>
double above_others(const std::vector<T>& all, const T& self, Value value) {
  const auto usual = median_of_others(all, self, value);
  return usual ? std::max(0.0, value(self) - *usual) : 0;
}

/// Above the others, if it is a quarter of what they have, or a tenth of its time: less is the noise of a
/// machine that works.
template <class T, class Value>
double more_than_others(const std::vector<T>& all, const T& self, Value value) {
  const double more = above_others(all, self, value);
  const bool clearly = more > (kClearly - 1) * (value(self) - more) || more > kClearShare * self.work_s;
  return clearly ? more : 0;
}

double bound_of(const std::vector<swarm::Participant>& participants) {
  return swarm::best_split(participants).seconds_per_byte;
}

}  // namespace

std::vector<std::pair<PeerId, PeerId>> binding_pairs(const std::vector<swarm::Participant>& all,
                                                     const swarm::Split& split) {
  std::map<PeerId, std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) places[all[i].peer] = i;
  std::map<std::pair<PeerId, PeerId>, double> seconds;  // of the slower direction
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const wire::PairRate& slow : all[i].bandwidth.slow) {
      const auto to = places.find(slow.to);
      if (to == places.end() || slow.bytes_per_s <= 0) continue;
      const double vectors = all[i].contributions * split.parts[to->second] + split.parts[i];
      const double takes_s = vectors / slow.bytes_per_s;
      if (takes_s < kBinds * split.seconds_per_byte) continue;
      double& slowest_s = seconds[std::minmax(all[i].peer, slow.to)];
      slowest_s = std::max(slowest_s, takes_s);
    }
  }
  std::vector<std::pair<PeerId, PeerId>> pairs;
  for (const auto& [pair, takes_s] : seconds) pairs.push_back(pair);
  std::ranges::stable_sort(pairs, std::ranges::greater(), [&](const auto& pair) { return seconds.at(pair); });
  if (pairs.size() > kMostBindingPairs) pairs.resize(kMostBindingPairs);
  return pairs;
}

void Delays::Counter::pass(double Grown::*phase, double end_s, std::optional<double> reading) {
  passed.*phase += std::max(0.0, end_s - seen_s);
  seen_s = std::max(seen_s, end_s);
  if (!reading) return;
  const double more = last ? std::max(0.0, *reading - *last) : 0;
  const double computing = passed.sum() > 0 ? passed.computing / passed.sum() : 0;
  grown.computing += more * computing;
  grown.averaging += more * (1 - computing);
  last = reading;
  passed = {};
}

double Delays::Suspect::recent_seconds() const { return std::accumulate(recent.begin(), recent.end(), 0.0); }

void Delays::take(const Seen& seen) {
  Peer& peer = peers_[seen.writer()];
  if (const auto* start = seen.event().as<event::Start>()) {
    peer = {.hardware = start->hardware};
    peer.queued = peer.disk = {.last = 0, .seen_s = seen.at_s};
  }
  if (const auto* call = seen.event().as<event::Call>()) take_call(seen, *call);
  if (const auto* commit = seen.event().as<event::Commit>()) take_commit(seen, *commit);
}

void Delays::take_call(const Seen& seen, const event::Call& call) {
  const Round round = seen.event().round;
  Peer& peer = peers_[seen.writer()];
  if (const auto bound_s = event::finite(call.bound_s)) open_[round].bound_s = *bound_s;
  if (round == std::exchange(peer.called, round)) return;  // again: a peer was lost
  peer.queued.pass(&Grown::computing, seen.at_s, event::finite(call.use.queued_s));
  peer.disk.pass(&Grown::computing, seen.at_s, event::finite(call.use.disk_s));
}

void Delays::take_commit(const Seen& seen, const event::Commit& commit) {
  const Round number = seen.event().round;
  if (const auto open = open_.find(number); open != open_.end()) {
    std::vector<Part>& parts = open->second.parts;
    const auto before = std::ranges::find(parts, seen.writer(), &Part::peer);
    if (before != parts.end() && before->at_s == seen.at_s) return;  // of a log that is here twice
    if (before != parts.end()) parts.erase(before);  // it gave that history up, and has the round again
  }
  Peer& peer = peers_[seen.writer()];
  for (auto [counter, reading] : {std::pair(&peer.queued, event::finite(commit.use.queued_s)),
                                  std::pair(&peer.disk, event::finite(commit.use.disk_s))}) {
    if (const auto since_s = only_averaged_since(seen, commit))
      counter->pass(&Grown::computing, *since_s, std::nullopt);
    counter->pass(&Grown::averaging, seen.at_s, reading);
  }
  const Grown queued = std::exchange(peer.queued.grown, {}), disk = std::exchange(peer.disk.grown, {});
  peer.bandwidth = {event::finite(commit.bandwidth.up_mbit_s).value_or(0),
                    event::finite(commit.bandwidth.down_mbit_s).value_or(0),
                    {}};
  for (const auto& [to, mbit_s] : commit.slow)
    if (mbit_s > 0) peer.bandwidth.slow.push_back({to, mbit_s});

  while (!open_.empty() && open_.begin()->first + kClosedAfter <= number) {
    close(open_.begin()->second);
    open_.erase(open_.begin());
  }
  Account& account = open_[number];
  if (account.committed_s == 0) account.committed_s = seen.at_s;
  if (!event::finite(commit.work_s)) return;
  const auto seconds = [](const event::Measure& told) { return event::finite(told).value_or(0); };
  account.parts.push_back({.peer = seen.writer(),
                           .at_s = seen.at_s,
                           .samples = static_cast<double>(commit.samples),
                           .work_s = seconds(commit.work_s),
                           .data_s = seconds(commit.data_s),
                           .calc_s = seconds(commit.calc_s),
                           .comm_s = std::max(0.0, seconds(commit.comm_s) - seconds(commit.hidden_s)),
                           .queued = queued,
                           .disk = disk});
}

void Delays::rewind(Round to) {
  open_.erase(open_.upper_bound(to), open_.end());
  if (to > 0) return;
  closed_s_.reset();
  took_.clear();
  suspects_.clear();
}

/// Seconds of a peer's time in which it would have computed, were it like the others.
std::map<Delay::Cause, double> Delays::excess(const Account& account, const Part& part) const {
  using Cause = Delay::Cause;
  const auto queued = [](const Part& p) { return p.queued.computing; };
  const auto disk = [](const Part& p) { return p.disk.computing; };
  std::map<Cause, double> lost_s;
  // Also a lone peer waits for its data, though nobody waits for it less.
  const auto data = [](const Part& p) { return p.data_s; };
  lost_s[Cause::loader] =
      account.parts.size() == 1 ? part.data_s : more_than_others(account.parts, part, data);
  lost_s[Cause::core] = std::min(more_than_others(account.parts, part, queued), part.work_s - part.data_s);
  lost_s[Cause::disk] = more_than_others(account.parts, part, disk);

  const auto pure_speed = [&](const Part& p) {
    // What a busy processor explains is no slow computing, be it clear or not.
    const double core_s = std::min(above_others(account.parts, p, queued), 0.9 * (p.work_s - p.data_s));
    return p.samples / std::max(1e-9, p.work_s - p.data_s - core_s);
  };
  const auto hardware = [&](const Part& p) { return peers_.at(p.peer).hardware; };
  std::vector<Part> like = {part};
  for (const Part& other : account.parts)
    if (other.peer != part.peer && hardware(other) == hardware(part)) like.push_back(other);
  const double speed = pure_speed(part), usual = median_of_others(like, like[0], pure_speed).value_or(speed);
  const double pure_s = part.samples / speed;
  if (speed < kLikeSpeed * usual) lost_s[Cause::compute] = pure_s * (1 - speed / usual);
  return lost_s;
}

void Delays::add_computing(const Account& account, Costs& costs) const {
  const std::vector<Part>& parts = account.parts;
  const auto calc_s = [](const Part& p) { return p.calc_s; };
  const auto span_s = [&](const Part& p) {
    return p.work_s + more_than_others(parts, p, [](const Part& one) { return one.disk.computing; });
  };
  double speed = 0;
  std::vector<double> durations;
  for (const Part& part : parts) {
    speed += part.samples / span_s(part);
    durations.push_back(part.calc_s);
  }
  const double usual_s = median(durations);
  for (const Part& part : parts) {
    const double own = part.samples / span_s(part);
    const std::map<Delay::Cause, double> lost_s = excess(account, part);
    auto worst = std::ranges::max_element(lost_s, {}, [](const auto& one) { return one.second; });
    for (const auto& [cause, seconds] : lost_s) {
      const double part_lost = std::min(kMostExcess, seconds / span_s(part));
      const double better = own / (1 - part_lost);
      costs[{cause, part.peer}] += usual_s * (1 - speed / (speed - own + better));
    }
    const double late_s = part.calc_s - median_of_others(parts, part, calc_s).value_or(part.calc_s);
    if (late_s > 0 && worst->second > 0) costs[{worst->first, part.peer}] += late_s;
  }
}

/// comm_s: what its links do not explain.
void Delays::add_averaging(const Account& account, double comm_s, Costs& costs) const {
  const std::vector<Part>& parts = account.parts;
  for (const Part& part : parts) {
    const double queued_s = more_than_others(parts, part, [](const Part& p) { return p.queued.averaging; });
    const double disk_s = more_than_others(parts, part, [](const Part& p) { return p.disk.averaging; });
    costs[{Delay::Cause::core, part.peer}] += std::min(comm_s, queued_s);
    costs[{Delay::Cause::disk, part.peer}] += std::min(comm_s, disk_s);
  }
}

/// Returns what they do not explain of the averaging.
double Delays::add_links(const Account& account, Costs& costs) const {
  double comm_s = account.parts.front().comm_s, explained_s = 0;
  for (const Part& part : account.parts) comm_s = std::min(comm_s, part.comm_s);
  std::vector<swarm::Participant> all;
  for (const Part& part : account.parts)
    all.push_back({.peer = part.peer, .bandwidth = peers_.at(part.peer).bandwidth});
  if (!swarm::fill_in_lines(all)) return comm_s;
  const swarm::Split split = swarm::best_split(all);
  const double bound = split.seconds_per_byte;
  const double most_s = account.bound_s > 0 ? std::min(comm_s, kMostOverBound * account.bound_s) : comm_s;
  // Where the bound is not known in seconds, averaging is taken to be at it.
  const double bound_s = account.bound_s > 0 ? account.bound_s : comm_s;
  const auto charge = [&](const Key& key, const std::vector<swarm::Participant>& without) {
    const double part_left = bound > 0 ? bound_of(without) / bound : 1;
    if (part_left > kBinds) return;
    const double cost_s = std::max(0.0, most_s - bound_s * part_left);
    costs[key] += cost_s;
    explained_s = std::max(explained_s, cost_s);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto up = [](const swarm::Participant& p) { return p.bandwidth.up_bytes_per_s; };
    const auto down = [](const swarm::Participant& p) { return p.bandwidth.down_bytes_per_s; };
    const double usual_up = median_of_others(all, all[i], up).value_or(0);
    const double usual_down = median_of_others(all, all[i], down).value_or(0);
    if (up(all[i]) < kThinLink * usual_up || down(all[i]) < kThinLink * usual_down) {
      std::vector<swarm::Participant> without = all;
      without[i].bandwidth.up_bytes_per_s = std::max(up(all[i]), usual_up);
      without[i].bandwidth.down_bytes_per_s = std::max(down(all[i]), usual_down);
      charge({Delay::Cause::link, all[i].peer}, without);
    }
  }
  for (const auto& [a, b] : binding_pairs(all, split)) {
    std::vector<swarm::Participant> without = all;
    for (swarm::Participant& one : without)
      std::erase_if(one.bandwidth.slow, [&, a = a, b = b](const wire::PairRate& slow) {
        return std::pair<PeerId, PeerId>(std::minmax(one.peer, slow.to)) == std::pair(a, b);
      });
    charge({Delay::Cause::link, a, b}, without);
  }
  return comm_s - explained_s;
}

void Delays::close(const Account& account) {
  const double begun_s = closed_s_.value_or(account.committed_s);
  if (account.committed_s == 0) return;
  closed_s_ = std::max(begun_s, account.committed_s);
  Account worked = account;
  std::erase_if(worked.parts, [](const Part& part) { return part.samples <= 0 || part.work_s <= 0; });
  Costs costs;
  if (!worked.parts.empty()) {
    add_computing(worked, costs);
    add_averaging(worked, add_links(worked, costs), costs);
  }
  took_.push_back(*closed_s_ - begun_s);
  if (took_.size() > kRecentRounds) took_.pop_front();
  charge(costs, begun_s);
}

void Delays::charge(const Costs& costs, double begun_s) {
  for (const auto& [key, seconds] : costs)
    if (seconds > 0) suspects_.try_emplace(key);
  const double took_s = std::accumulate(took_.begin(), took_.end(), 0.0);
  for (auto& [key, suspect] : suspects_) {
    const auto cost = costs.find(key);
    const double seconds = cost == costs.end() ? 0 : cost->second;
    suspect.seconds += seconds;
    suspect.recent.push_back(seconds);
    if (suspect.recent.size() > kRecentRounds) suspect.recent.pop_front();
    const bool counts = suspect.recent_seconds() > kNamedShare * took_s;
    if (!counts) suspect.since_s.reset();
    if (counts && !suspect.since_s) suspect.since_s = begun_s;
  }
  if (suspects_.size() <= kMostSuspects) return;
  std::erase_if(suspects_, [](const auto& one) { return one.second.recent_seconds() <= 0; });
}

std::vector<Delay> Delays::board(std::optional<double> usd_per_h) const {
  const double took_s = std::accumulate(took_.begin(), took_.end(), 0.0);
  std::vector<Delay> delays;
  for (const auto& [key, suspect] : suspects_) {
    Delay& delay = delays.emplace_back();
    delay.cause = key.cause;
    delay.peer = key.peer;
    delay.to = key.to;
    delay.since_s = suspect.since_s;
    delay.round_s = suspect.recent_seconds() / static_cast<double>(std::max<std::size_t>(1, took_.size()));
    delay.share = took_s > 0 ? std::min(1.0, suspect.recent_seconds() / took_s) : 0;
    delay.seconds = suspect.seconds;
    if (!usd_per_h) continue;
    delay.usd_per_h = delay.share * *usd_per_h;
    delay.usd = delay.seconds / 3600 * *usd_per_h;
  }
  std::ranges::stable_sort(delays, [](const Delay& a, const Delay& b) {
    return std::pair(a.round_s, a.seconds) > std::pair(b.round_s, b.seconds);
  });
  if (delays.size() > Board::kMostDelays) delays.resize(Board::kMostDelays);
  return delays;
}

}  // namespace tw::monitor
