// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "cli/bench_crew.h"
#include "cli/bench_pump.h"
#include "cli/bench_rivals.h"
#include "codec/codec.h"

namespace tw::bench {
namespace {

constexpr Duration kPumpTime = std::chrono::milliseconds(500);

/// What was measured, over all turns.
struct Tally {
  std::vector<double> seconds, committed_s, cpu_s_per_gb, disturbed_s, pumped, pump_cpu;
  std::map<PeerId, std::vector<double>> bytes_sent;
  std::map<std::string, RivalTimes> rivals;
  bool identical = true;
  std::string difference;
};

/// Of the temporary files; goes with it.
class Folder {
 public:
  Folder() {
    const std::filesystem::path base = std::filesystem::temp_directory_path();
    std::string name = (base / "tw-bench-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  /// Empty where there can be none.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void add(Tally& tally, const CrewOutcome& outcome) {
  for (const RoundTimes& round : outcome.rounds) {
    double sent = 0;
    for (const auto& [peer, bytes] : round.bytes_sent) {
      sent += bytes;
      tally.bytes_sent[peer].push_back(bytes);
    }
    tally.seconds.push_back(round.mean_s);
    tally.committed_s.push_back(round.commit_s);
    tally.cpu_s_per_gb.push_back(round.cpu_s / (sent / 1e9));
  }
  if (outcome.disturbed) tally.disturbed_s.push_back(outcome.disturbed->commit_s);
  if (outcome.identical || !tally.identical) return;
  tally.identical = false;
  tally.difference = outcome.difference;
}

Result<CrewOutcome> crew_turn(const ReduceOptions& options, const std::vector<Host>& hosts) {
  const Folder folder;
  if (folder.path().empty()) return Error{"cannot make a folder for temporary files"};
  Crew crew({.hosts = hosts,
             .bytes = options.bytes,
             .codec = options.codec,
             .warm_up = options.warm_up,
             .rounds = options.rounds,
             .disturbance = options.disturbance,
             .folder = folder.path()});
  return crew.run();
}

Status rival_turn(const std::string& rival, const ReduceOptions& options, const std::vector<Host>& hosts,
                  Tally& tally) {
  const Folder folder;
  if (folder.path().empty()) return Error{"cannot make a folder for temporary files"};
  auto times = run_rival(rival, {.hosts = hosts,
                                 .bytes = options.bytes,
                                 .warm_up = static_cast<int>(options.warm_up),
                                 .rounds = static_cast<int>(options.rounds),
                                 .folder = folder.path()});
  if (!times) return times.error();
  RivalTimes& all = tally.rivals[rival];
  all.seconds.insert(all.seconds.end(), times.value().seconds.begin(), times.value().seconds.end());
  all.cpu_s.insert(all.cpu_s.end(), times.value().cpu_s.begin(), times.value().cpu_s.end());
  return Unit{};
}

Status take_turn(const ReduceOptions& options, const std::vector<Host>& hosts, Tally& tally) {
  const auto pumped = pump_loopback(static_cast<int>(options.peers), kPumpTime);
  if (!pumped) return pumped.error();
  tally.pumped.push_back(pumped.value().bytes_per_s);
  tally.pump_cpu.push_back(pumped.value().cpu_s_per_gb);
  const auto outcome = crew_turn(options, hosts);
  if (!outcome) return outcome.error();
  add(tally, outcome.value());
  for (const std::string& rival : options.rivals) {
    if (const Status taken = rival_turn(rival, options, hosts, tally); !taken) return taken;
  }
  return Unit{};
}

SystemTimes times_over(const std::vector<double>& seconds, double cpu_s_per_gb) {
  return {median(seconds), *std::min_element(seconds.begin(), seconds.end()),
          *std::max_element(seconds.begin(), seconds.end()), cpu_s_per_gb};
}

std::string describe(const Disturbance& disturbance) {
  return fmt::format("--{} {}@{:g}", disturbance.kind == Disturbance::Kind::kill ? "kill" : "stop",
                     disturbance.victim ? to_string(*disturbance.victim) : "leader", disturbance.fraction);
}

void fill(BenchResult& result, const ReduceOptions& options, const Tally& tally) {
  result.tradewind = times_over(tally.seconds, median(tally.cpu_s_per_gb));
  for (const auto& [peer, bytes] : tally.bytes_sent) {
    result.bytes_sent.push_back(median(bytes));
    result.bytes_sent_per_peer += median(bytes) / static_cast<double>(options.peers);
  }
  // Every all-reduce of fp32 has to move so much.
  const double gb = 2 * static_cast<double>(options.peers - 1) * static_cast<double>(options.bytes) / 1e9;
  for (const auto& [rival, times] : tally.rivals)
    result.rivals[rival] = times_over(times.seconds, median(times.cpu_s) / gb);
  const std::vector<double> capacities(options.peers,
                                       median(tally.pumped) / static_cast<double>(options.peers));
  result.bound_s =
      bound_s(static_cast<double>(encoded_bytes(options.codec, options.bytes / sizeof(float))), capacities);
  result.bound_cpu_s_per_gb = median(tally.pump_cpu);
  result.identical = tally.identical;
  result.difference = tally.difference;
  if (options.disturbance)
    result.disturbed = {describe(*options.disturbance), median(tally.committed_s), median(tally.disturbed_s)};
}

}  // namespace

Result<BenchResult> reduce(const ReduceOptions& options, const std::function<void(const std::string&)>& say) {
  BenchResult result{.topology = "loopback",
                     .peers = options.peers,
                     .bytes = options.bytes,
                     .codec = codec_name(options.codec),
                     .warm_up = options.warm_up,
                     .rounds = options.rounds,
                     .turns = options.turns};
  sign(result);
  for (const std::string& rival : options.rivals) {
    if (const auto program = rival_program(rival); !program) return program.error();
  }
  const std::vector<Host> hosts(options.peers);
  Tally tally;
  for (Round turn = 1; turn <= options.turns; ++turn) {
    if (options.turns > 1) say(fmt::format("turn {} of {}", turn, options.turns));
    if (const Status taken = take_turn(options, hosts, tally); !taken) return taken.error();
  }
  fill(result, options, tally);
  return result;
}

}  // namespace tw::bench
