// SPDX-License-Identifier: Apache-2.0
//
// What grows with the number of peers: control traffic, commit latency, memory, and the simulator's own time.
//   bench_scaling [--peers N...] [--seconds S] [--limit S]
// A simulated run of each size, in a process of its own: one microbatch of 8 samples a peer and second,
// rounds of about 10 s, a vector of 64 segments, paths of 1 ms and 1 Gbit/s. One line of JSON each, over
// the time after the first commit.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "base/median.h"
#include "measure.h"
#include "sim/virtual/world.h"

namespace {

using namespace tw;

constexpr double kRoundSeconds = 10;
constexpr std::uint64_t kSegments = 64;

struct Settings {
  std::vector<int> peers{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  double seconds = 120;
  double limit_s = 300;
};

sim::WorldOptions world_of(int peers) {
  const auto n = static_cast<std::uint64_t>(peers);
  sim::WorldOptions world;
  world.run.model = "synthetic";
  world.run.microbatch = 1;
  world.run.batch.size = static_cast<std::uint64_t>(kRoundSeconds) * n;
  world.run.rounds = 1'000'000;
  world.model = {kSegments * world.segment_length, 1};
  world.wait_for = static_cast<std::uint32_t>(peers);
  world.links = {{.from = "", .to = "", .latency_s = 1e-3, .jitter = 0.1, .bytes_per_s = 125e6}};
  return world;
}

double held_mb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

struct Moment {
  double simulated_s = 0, cpu_s = 0;
  std::uint64_t events = 0, control_bytes = 0, messages = 0;
};

Moment moment_of(sim::World& world, const std::vector<PeerId>& peers) {
  Moment moment{to_seconds(world.now() - sim::Scheduler::kStart), host::cpu_seconds(),
                world.scheduler().events()};
  for (const PeerId peer : peers) {
    const sim::PeerPaths::Sent sent = world.paths().sent(peer);
    moment.control_bytes += sent.control_bytes;
    moment.messages += sent.messages;
  }
  return moment;
}

/// The median over rounds of the time from when the last one has the whole mean to when the last one knows
/// the commit.
class Latencies {
 public:
  void on_event(const world::Event& event) {
    const double at = to_seconds(event.at - sim::Scheduler::kStart);
    if (event.as<event::Gather>()) complete_[event.round] = at;
    if (const auto* commit = event.as<event::Commit>()) {
      committed_[event.round] = at;
      members_ = static_cast<double>(commit->members);
    }
  }

  std::size_t rounds() const { return committed_.size(); }

  double members() const { return members_; }

  double median_s() const {
    std::vector<double> seconds;
    for (const auto& [round, at] : committed_) seconds.push_back(at - complete_.at(round));
    return median(seconds);
  }

 private:
  std::map<Round, double> complete_, committed_;
  double members_ = 0;
};

void measure(int count, const Settings& settings) {
  const double base_mb = held_mb();
  sim::World world(world_of(count));
  Latencies latencies;
  world.watch([&](PeerId, const world::Event& event) { latencies.on_event(event); });
  std::vector<PeerId> peers;
  for (int i = 0; i < count; ++i) peers.push_back(world.add_peer(sim::PeerSpec{0, 1.0, {125e6, 125e6}}));
  const double begin = bench::wall_seconds();
  const auto go_on = [&](double until_s) {
    while (to_seconds(world.now() - sim::Scheduler::kStart) < until_s &&
           bench::wall_seconds() - begin < settings.limit_s)
      world.run_until(world.now() + std::chrono::milliseconds(200));
  };
  while (latencies.rounds() < 1 && bench::wall_seconds() - begin < settings.limit_s)
    world.run_until(world.now() + std::chrono::milliseconds(200));
  const Moment from = moment_of(world, peers);
  go_on(from.simulated_s + settings.seconds);
  const Moment to = moment_of(world, peers);
  const double s = std::max(1e-9, to.simulated_s - from.simulated_s);
  const double cpu = std::max(1e-9, to.cpu_s - from.cpu_s);
  const double n = count;
  fmt::print(R"({{"peers": {}, "simulated_s": {:.1f}, "rounds": {}, "members": {}, )"
             R"("control_bytes_per_peer_s": {:.0f}, "messages_per_peer_s": {:.1f}, )"
             R"("commit_latency_s": {:.4f}, "held_mb_per_peer": {:.3f}, )",
             count, s, latencies.rounds(), latencies.members(),
             static_cast<double>(to.control_bytes - from.control_bytes) / n / s,
             static_cast<double>(to.messages - from.messages) / n / s, latencies.median_s(),
             (held_mb() - base_mb) / n);
  fmt::print(R"("events_per_cpu_s": {:.0f}, "cpu_s_per_hour": {:.0f}, "violations": {}}})"
             "\n",
             static_cast<double>(to.events - from.events) / cpu, 3600 * cpu / s,
             world.referee().violations().size());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What grows with the number of peers");
  Settings settings;
  app.add_option("--peers", settings.peers, "sizes")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "simulated, of each")->capture_default_str();
  app.add_option("--limit", settings.limit_s, "wall seconds of each at most")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  for (const int peers : settings.peers) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      measure(peers, settings);
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return 0;
}
