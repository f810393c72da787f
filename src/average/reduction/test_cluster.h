// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "average/reduction/mean_digest.h"
#include "average/reduction/reduction.h"
#include "average/reduction/reference.h"
#include "average/reduction/test_decoded.h"
#include "base/prng.h"
#include "wire/frame.h"

namespace tw::average {

/// Peers 1..n with their Reductions, links whose messages overtake each other, and plans and completed slots
/// that reach each peer at random times: a seed gives one sequence of events. Each peer adds on as many
/// threads as its id says.
class Cluster {
 public:
  struct Setup {
    std::uint64_t seed = 1;
    std::uint64_t peers = 3;
    codec::Codec codec = codec::Codec::fp32;
    Geometry geometry;
    bool stochastic = false;  ///< where the codec is int8
  };

  using Slot = std::pair<PeerId, std::uint32_t>;

  explicit Cluster(Setup setup) : setup_(setup), prng_(setup.seed) {
    for (std::uint64_t id = 1; id <= setup.peers; ++id) {
      peers_.try_emplace(
          PeerId{id},
          Reduction::Options{PeerId{id}, {kRound}, setup.geometry, setup.codec, setup.stochastic, 0, id});
    }
  }

  static constexpr Round kRound = 7;

  Prng& prng() { return prng_; }

  Reduction& at(std::uint64_t id) { return peers_.at(PeerId{id}).reduction; }

  std::vector<PeerId> alive() const {
    std::vector<PeerId> ids;
    for (const auto& [id, peer] : peers_) {
      if (peer.alive) ids.push_back(id);
    }
    return ids;
  }

  /// The slot will be complete at some later time.
  void give(Slot slot) {
    auto& [samples, values] = slots_[slot];
    samples = 1 + prng_.below(200);
    values.resize(setup_.geometry.length);
    for (float& value : values) {
      const double magnitude = prng_.chance(0.1) ? 1e-6 : (prng_.chance(0.05) ? 1e5 : 1.0);
      value = static_cast<float>((prng_.uniform() - 0.5) * magnitude * static_cast<double>(samples));
      if (prng_.chance(0.02)) value = -0.0F;  // which a sum does not keep
    }
    peers_.at(slot.first).slots.push_back(slot.second);
  }

  std::vector<float>& gradient_sum(Slot slot) { return slots_.at(slot).second; }

  wire::Plan plan(std::uint32_t version, const std::vector<Slot>& slots,
                  std::vector<wire::Share> shares) const {
    wire::Plan plan;
    plan.version = version;
    plan.draft.round = kRound;
    for (const Slot& slot : slots) {
      const RangeSet microbatches(Range{slot.first.value * 100 + slot.second, 1});
      plan.draft.contributors.push_back({slot.first, slot.second, slots_.at(slot).first, microbatches});
    }
    plan.shares = std::move(shares);
    plan.participants = alive();
    return plan;
  }

  /// The plan will reach these peers at some later time.
  void call(const wire::Plan& plan, const std::vector<PeerId>& peers) {
    for (const PeerId id : peers) peers_.at(id).plans.push_back(plan);
  }

  void call(const wire::Plan& plan) { call(plan, alive()); }

  /// The peer dies. Messages that it sent may still arrive, up to a point on each link.
  void die(std::uint64_t id) {
    peers_.at(PeerId{id}).alive = false;
    for (auto& [link, queue] : links_) {
      if (link.first == PeerId{id}) queue.resize(prng_.below(queue.size() + 1));
      if (link.second == PeerId{id}) queue.clear();
    }
  }

  /// One event happens; false when none can.
  bool step() {
    std::vector<std::function<void()>> moves;
    for (auto& [id, peer] : peers_) {
      if (!peer.alive) continue;
      if (!peer.plans.empty()) moves.emplace_back([this, &peer = peer] { take_plan(peer); });
      if (!peer.slots.empty()) moves.emplace_back([this, id = id, &peer = peer] { take_slot(id, peer); });
      for (const PeerId to : peer.reduction.take_wakeups()) peer.pulls.insert(to);
      for (const PeerId to : peer.pulls) {
        if (links_[{id, to}].size() < 4) moves.emplace_back([this, id = id, to] { pull(id, to); });
      }
    }
    for (auto& [link, queue] : links_) {
      if (!queue.empty()) moves.emplace_back([this, link = link] { deliver(link.first, link.second); });
    }
    if (moves.empty()) return false;
    moves[prng_.below(moves.size())]();
    return true;
  }

  void run() {
    while (step()) {
    }
  }

  void run(std::uint64_t steps) {
    while (steps-- > 0 && step()) {
    }
  }

  std::vector<float> expected(const wire::Plan& plan) const {
    std::vector<WeightedGradient> inputs;
    for (const wire::Contribution& c : plan.draft.contributors) {
      const auto& [samples, values] = slots_.at({c.peer, c.slot});
      inputs.push_back({samples, values, c.group});
      if (setup_.stochastic) inputs.back().dither = dither_seed(kRound, c.peer, c.slot);
    }
    return reference_mean(setup_.codec, inputs, setup_.geometry);
  }

  /// All live participants have exactly the mean of this plan.
  ::testing::AssertionResult all_have_the_mean_of(const wire::Plan& plan) {
    const std::vector<float> mean = expected(plan);
    for (const PeerId id : alive()) {
      const Reduction& reduction = peers_.at(id).reduction;
      const std::string who = "peer " + to_string(id) + ", seed " + std::to_string(setup_.seed);
      if (!reduction.complete()) return ::testing::AssertionFailure() << who << " is not complete";
      if (!reduction.scattered() || !reduction.owing().empty())
        return ::testing::AssertionFailure() << who << " waits";
      const auto applied = decoded(codec_of_mean(setup_.codec), setup_.geometry, reduction.mean().segments());
      if (std::memcmp(applied.data(), mean.data(), 4 * mean.size()) != 0) {
        return ::testing::AssertionFailure() << who << " has another mean";
      }
      if (reduction.mean().digest() != digest_of_mean(mean, setup_.geometry)) {
        return ::testing::AssertionFailure() << who << " has another digest";
      }
    }
    return ::testing::AssertionSuccess();
  }

  /// Number of times that this contribution segment was sent on this link.
  using ScatterKey = std::tuple<PeerId, PeerId, std::uint32_t, std::uint64_t>;
  std::map<ScatterKey, int> scatters;
  /// Number of times that this segment of the mean of this set was sent on this link.
  using GatherKey = std::tuple<PeerId, PeerId, std::uint64_t, std::uint64_t>;
  std::map<GatherKey, int> gathers;
  /// The same for site-local sums.
  std::map<GatherKey, int> site_sums;
  std::vector<std::string> refusals;

 private:
  struct Peer {
    explicit Peer(const Reduction::Options& options) : reduction(options) {}

    Reduction reduction;
    bool alive = true;
    std::deque<wire::Plan> plans;
    std::deque<std::uint32_t> slots;
    std::set<PeerId> pulls;  ///< where next_bulk may have something
  };

  void take_plan(Peer& peer) {
    EXPECT_TRUE(peer.reduction.adopt(swarm::shared_plan(peer.plans.front())));
    peer.plans.pop_front();
  }

  void take_slot(PeerId id, Peer& peer) {
    const auto& [samples, values] = slots_.at({id, peer.slots.front()});
    peer.reduction.contribute(peer.slots.front(), {values}, samples);
    peer.slots.pop_front();
  }

  void pull(PeerId from, PeerId to) {
    Peer& peer = peers_.at(from);
    std::optional<wire::Message> message = peer.reduction.next_bulk(to);
    if (!message) {
      peer.pulls.erase(to);
      return;
    }
    if (const auto* scatter = std::get_if<wire::Scatter>(&*message)) {
      ++scatters[{from, to, scatter->slot, scatter->segment}];
    } else {
      const auto& gather = std::get<wire::Gather>(*message);
      ++(gather.of_site ? site_sums : gathers)[{from, to, gather.set, gather.segment}];
    }
    if (peers_.at(to).alive) links_[{from, to}].push_back(std::move(*message));
  }

  void deliver(PeerId from, PeerId to) {
    auto& queue = links_.at({from, to});
    const std::size_t which = prng_.below(queue.size());
    const wire::Message message = std::move(queue[which]);
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(which));
    Reduction& reduction = peers_.at(to).reduction;
    const auto* scatter = std::get_if<wire::Scatter>(&message);
    const Status status = scatter != nullptr ? reduction.on_scatter(from, *scatter)
                                             : reduction.on_gather(from, std::get<wire::Gather>(message));
    if (!status) refusals.push_back(status.error().message);
  }

  Setup setup_;
  Prng prng_;
  std::map<PeerId, Peer> peers_;
  std::map<Slot, std::pair<std::uint64_t, std::vector<float>>> slots_;
  std::map<std::pair<PeerId, PeerId>, std::deque<wire::Message>> links_;
};

/// The largest of these counts.
template <class Key>
int most(const std::map<Key, int>& counts) {
  int most = 0;
  for (const auto& [key, count] : counts) most = std::max(most, count);
  return most;
}

}  // namespace tw::average
