// SPDX-License-Identifier: Apache-2.0
#include "studies/hivemind.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/prng.h"
#include "sim/virtual/flows.h"
#include "sim/virtual/scheduler.h"

namespace tw::studies {
namespace {

// What is under way in a stream between sites at a time: its window (the bandwidth-delay products of the
// published measurements).
constexpr double kBlockBytes = 2.6e6;
constexpr double kBytesPerParam = 2;

/// Serves one after the other in the order of coming.
class Interpreter {
 public:
  explicit Interpreter(sim::Scheduler& scheduler) : scheduler_(scheduler) {}

  void work(double seconds, std::function<void()> done) {
    free_ = std::max(free_, scheduler_.now()) + from_seconds(seconds);
    scheduler_.at(free_, std::move(done));
  }

 private:
  sim::Scheduler& scheduler_;
  Instant free_{};
};

/// One TCP connection in one direction: messages follow each other.
class Stream {
 public:
  Stream(sim::Flows& flows, const HivemindStream& kind, std::vector<int> links)
      : flows_(flows), kind_(kind), links_(std::move(links)) {}

  bool wanders() const { return kind_.wanders; }

  /// `pace` multiplies the rate.
  void send(double bytes, double pace, std::function<void()> done) {
    waiting_.push_back({bytes, pace, std::move(done)});
    if (waiting_.size() == 1) next();
  }

 private:
  struct Message {
    double bytes, pace;
    std::function<void()> done;
  };

  void next() {
    const Message& first = waiting_.front();
    flows_.start({first.bytes, kind_.bytes_per_s * first.pace, links_}, [this] {
      const std::function<void()> done = std::move(waiting_.front().done);
      waiting_.pop_front();
      if (!waiting_.empty()) next();
      done();
    });
  }

  sim::Flows& flows_;
  HivemindStream kind_;
  std::vector<int> links_;
  std::deque<Message> waiting_;
};

class Training {
 public:
  Training(const HivemindRun& run, const HivemindCosts& costs);
  HivemindFigures figures();

 private:
  struct Peer {
    HivemindPeer kind;
    Interpreter interpreter;
    std::vector<std::unique_ptr<Stream>> to;
    std::vector<int> next_block;  ///< to send, by owner
    std::vector<int> arrived;     ///< contributions to each block of its share
    Instant joined;
    int open_blocks = 0;  ///< of others, whose mean is not here yet
    double communication_s = 0;
  };

  std::size_t count() const { return peers_.size(); }

  Peer& peer(std::size_t index) { return peers_[index]; }

  void begin_round();
  void calculate(std::size_t self);
  void end_microbatch(std::size_t self);
  void average();
  void contribute(std::size_t self, std::size_t owner);
  void contribution_arrived(std::size_t owner, int block);
  void mean_arrived(std::size_t self, std::size_t owner);
  void update(std::size_t self);
  void end_round();
  void handle(std::size_t at, std::function<void()> done);
  void transfer(std::size_t from, std::size_t to, std::function<void()> done);

  const HivemindRun& run_;
  const HivemindCosts& costs_;
  sim::Scheduler scheduler_;
  sim::Flows flows_{scheduler_};
  Prng random_;
  std::vector<Peer> peers_;
  int blocks_;  ///< of a share
  double block_bytes_;
  double handling_s_;
  Instant round_began_{};
  std::uint64_t samples_ = 0;
  std::size_t joined_ = 0, updated_ = 0;
  int rounds_left_;
  std::uint64_t all_samples_ = 0;
  double sent_bytes_ = 0;
};

Training::Training(const HivemindRun& run, const HivemindCosts& costs)
    : run_(run), costs_(costs), random_(run.seed), rounds_left_(run.rounds) {
  const std::size_t n = run.peers.size();
  TW_CHECK(n >= 2 && run.streams.size() == n && run.rounds > 0);
  std::vector<int> up, down;
  for (const HivemindPeer& kind : run.peers) {
    peers_.push_back({.kind = kind, .interpreter = Interpreter(scheduler_)});
    up.push_back(flows_.add_link(kind.nic_bytes_per_s));
    down.push_back(flows_.add_link(kind.nic_bytes_per_s));
  }
  for (std::size_t from = 0; from < n; ++from) {
    TW_CHECK(run.streams[from].size() == n);
    for (std::size_t to = 0; to < n; ++to) {
      peers_[from].to.push_back(
          std::make_unique<Stream>(flows_, run.streams[from][to], std::vector<int>{up[from], down[to]}));
    }
  }
  const double share_bytes = run.params_m * 1e6 * kBytesPerParam / static_cast<double>(n);
  blocks_ = std::max(1, static_cast<int>(std::lround(share_bytes / kBlockBytes)));
  block_bytes_ = share_bytes / blocks_;
  handling_s_ = costs.handling_s_per_mb * block_bytes_ / 1e6;
}

HivemindFigures Training::figures() {
  begin_round();
  while (scheduler_.step()) {
  }
  TW_CHECK(rounds_left_ == 0);
  const double rounds = run_.rounds;
  HivemindFigures figures;
  figures.round_s = to_seconds(scheduler_.now() - sim::Scheduler::kStart) / rounds;
  figures.samples_per_s = static_cast<double>(all_samples_) / rounds / figures.round_s;
  double speed = 0;
  for (const Peer& each : peers_) {
    speed += each.kind.samples_per_s;
    figures.communication_s += each.communication_s / rounds / static_cast<double>(count());
  }
  figures.calculation_s = static_cast<double>(all_samples_) / rounds / speed;
  figures.sent_mb_per_peer = sent_bytes_ / 1e6 / rounds / static_cast<double>(count());
  return figures;
}

void Training::begin_round() {
  round_began_ = scheduler_.now();
  samples_ = 0;
  joined_ = 0;
  updated_ = 0;
  for (std::size_t self = 0; self < count(); ++self) calculate(self);
}

void Training::calculate(std::size_t self) {
  const HivemindPeer& kind = peer(self).kind;
  scheduler_.after(from_seconds(static_cast<double>(kind.microbatch) / kind.samples_per_s),
                   [this, self] { end_microbatch(self); });
}

void Training::end_microbatch(std::size_t self) {
  samples_ += peer(self).kind.microbatch;
  if (samples_ < run_.target_batch_size) return calculate(self);
  peer(self).joined = scheduler_.now();
  if (++joined_ < count()) return;
  all_samples_ += samples_;
  const Instant floor = round_began_ + from_seconds(run_.matchmaking_floor_s);
  const double slowest_host =
      std::max_element(peers_.begin(), peers_.end(), [](const Peer& a, const Peer& b) {
        return a.kind.host < b.kind.host;
      })->kind.host;
  const double rendezvous_s =
      costs_.rendezvous_s_per_tensor * run_.tensors * static_cast<double>(count() - 1) * slowest_host;
  scheduler_.at(std::max(scheduler_.now(), floor) + from_seconds(rendezvous_s), [this] { average(); });
}

void Training::average() {
  for (std::size_t self = 0; self < count(); ++self) {
    peer(self).next_block.assign(count(), 0);
    peer(self).arrived.assign(static_cast<std::size_t>(blocks_), 0);
    peer(self).open_blocks = blocks_ * static_cast<int>(count() - 1);
  }
  for (std::size_t self = 0; self < count(); ++self) {
    for (std::size_t owner = 0; owner < count(); ++owner) contribute(self, owner);
  }
}

void Training::contribute(std::size_t self, std::size_t owner) {
  const int block = peer(self).next_block[owner];
  if (block == blocks_) return;
  ++peer(self).next_block[owner];
  handle(self, [this, self, owner, block] {
    if (self == owner) {
      contribution_arrived(owner, block);
      return contribute(self, owner);
    }
    transfer(self, owner, [this, owner, block] {
      handle(owner, [this, owner, block] { contribution_arrived(owner, block); });
    });
  });
}

void Training::contribution_arrived(std::size_t owner, int block) {
  if (++peer(owner).arrived[static_cast<std::size_t>(block)] < static_cast<int>(count())) return;
  for (std::size_t other = 0; other < count(); ++other) {
    if (other == owner) continue;
    handle(owner, [this, owner, other] {
      transfer(owner, other,
               [this, owner, other] { handle(other, [this, owner, other] { mean_arrived(other, owner); }); });
    });
  }
}

void Training::mean_arrived(std::size_t self, std::size_t owner) {
  if (--peer(self).open_blocks == 0) return update(self);
  contribute(self, owner);
}

void Training::update(std::size_t self) {
  const double seconds =
      (costs_.update_s + costs_.update_s_per_m_params * run_.params_m) * peer(self).kind.host;
  scheduler_.after(from_seconds(seconds), [this] {
    if (++updated_ == count()) end_round();
  });
}

void Training::end_round() {
  for (Peer& each : peers_) each.communication_s += to_seconds(scheduler_.now() - each.joined);
  if (--rounds_left_ > 0) begin_round();
}

void Training::handle(std::size_t at, std::function<void()> done) {
  peer(at).interpreter.work(handling_s_ * peer(at).kind.host, std::move(done));
}

void Training::transfer(std::size_t from, std::size_t to, std::function<void()> done) {
  Stream& stream = *peer(from).to[to];
  const double pace = stream.wanders() ? costs_.stream_gain / -std::log1p(-random_.uniform()) : 1;
  sent_bytes_ += block_bytes_;
  stream.send(block_bytes_, std::min(pace, 1e3), std::move(done));
}

}  // namespace

HivemindFigures simulate_hivemind(const HivemindRun& run, const HivemindCosts& costs) {
  return Training(run, costs).figures();
}

}  // namespace tw::studies
