// SPDX-License-Identifier: Apache-2.0
//
// What a round costs beside its work: two peers, a process each, with all of a session on loopback TCP and a
// model of 1 M parameters whose target batch is one second of work for both together.
//   bench_round_overhead [--rounds N] [--spin]
// The work sleeps; with --spin it computes, so that both cores are busy. Prints one JSON object with medians.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <thread>

#include "base/median.h"
#include "crew.h"
#include "host/executor_thread.h"
#include "host/files_disk.h"
#include "host/system/random_os.h"
#include "host/tcp/network_tcp.h"
#include "measure.h"
#include "train/session/session.h"

namespace tw::bench {
namespace {

constexpr int kPeers = 2;
constexpr std::uint64_t kParameters = 1'000'000;
constexpr double kWorkSeconds = 1.0;  ///< of a round, shared by kPeers
constexpr Round kWarmUp = 3;          ///< rounds in which the leader learns how fast the peers are
constexpr Round kMostRounds = 1000;

/// When things happened to one peer in one round, on wall_seconds(); 0 where they did not.
struct Moments {
  double worked = 0;  ///< the last microbatch is done
  double call = 0;
  double gather = 0;
  double commit = 0;
  double apply = 0;
};

struct Board {
  Barrier barrier;
  char address[64];
  double cpu_s[kPeers];
  Moments of[kPeers][kMostRounds + 1];
};

train::RunOptions run_of(Round rounds) {
  train::RunOptions run;
  run.model = "one second of work";
  run.batch.size = 512;
  run.microbatch = 16;
  run.rounds = rounds;
  return run;
}

/// The gradient is trivial; a microbatch takes its share of kWorkSeconds.
class SlowModel final : public train::Model {
 public:
  SlowModel(const train::RunOptions& run, bool spin, Moments* moments)
      : target_(run.batch.size.value()), spin_(spin), moments_(moments) {}

  std::vector<std::uint64_t> tensor_sizes() const override { return {kParameters}; }

  void initial_parameters(std::span<float> out) override { std::fill(out.begin(), out.end(), 1.0F); }

  train::WorkDone work(std::span<const float> parameters, const swarm::WorkItem& item,
                       std::span<float> gradient_sum) override {
    const std::uint64_t samples = item.samples.count();
    const double share = static_cast<double>(samples) / static_cast<double>(target_);
    const double end = wall_seconds() + kPeers * kWorkSeconds * share;
    const float weight = 1e-3F * static_cast<float>(samples);
    for (std::size_t i = 0; i < gradient_sum.size(); ++i) gradient_sum[i] += weight * parameters[i];
    while (spin_ && wall_seconds() < end) {
    }
    if (!spin_) std::this_thread::sleep_for(std::chrono::duration<double>(end - wall_seconds()));
    moments_[item.round].worked = wall_seconds();
    return {item.microbatches.count(), samples, static_cast<double>(samples)};
  }

 private:
  std::uint64_t target_;
  bool spin_;
  Moments* moments_;
};

/// Notes when the first event of each phase of a round came.
class Notes final : public world::EventSink {
 public:
  explicit Notes(Moments* moments) : moments_(moments) {}

  void emit(const world::Event& event) override {
    if (event.round > kMostRounds) return;
    Moments& round = moments_[event.round];
    double* at = event.phase() == world::Phase::call     ? &round.call
                 : event.phase() == world::Phase::gather ? &round.gather
                 : event.phase() == world::Phase::commit ? &round.commit
                 : event.phase() == world::Phase::apply  ? &round.apply
                                                         : nullptr;
    if (at != nullptr && *at == 0) *at = wall_seconds();
  }

 private:
  Moments* moments_;
};

bool take_part(int rank, const train::RunOptions& run, bool spin, Board& board) {
  host::Loop loop;
  host::OsRandom random;
  host::DiskFiles files;
  Notes notes(board.of[rank]);
  SlowModel model(run, spin, board.of[rank]);
  train::SessionOptions options{
      .self = PeerId{static_cast<std::uint64_t>(rank) + 1}, .wait_for = kPeers, .run = run};
  if (rank > 0) {
    board.barrier.wait();
    options.join = {board.address};
  }
  const auto fail = [&](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  host::TcpNetwork network(loop, options.self, random,
                           [&](event::Cause, const std::string& what) { fail(what); });
  host::ThreadExecutor compute(loop, fail);
  host::ThreadExecutor disk(loop, fail);
  train::Session session({loop, network, files, compute, disk, disk, notes}, options, model);
  const Result<std::string> address = session.start();
  if (rank == 0) {
    address.value().copy(board.address, sizeof(board.address) - 1);
    board.barrier.wait();
  }
  const double rounds = static_cast<double>(run.rounds);
  loop.run_until([&] { return session.view().finished; }, from_seconds(10 + 20 * rounds * kWorkSeconds));
  for (const wire::Member& member : session.members()) network.close(member.peer);
  loop.run_until([&] { return network.flushed(); }, std::chrono::seconds(3));
  board.cpu_s[rank] = host::cpu_seconds();
  return session.view().failure.empty() && session.view().round == run.rounds;
}

/// Times of all rounds between, and the median of them.
struct Spans {
  std::vector<double> round, work, call_to_commit, gather_to_commit, worked_to_apply;
};

Spans spans_of(const Board& board, Round rounds) {
  Spans spans;
  for (Round r = kWarmUp + 1; r <= rounds; ++r) {
    const Moments& leader = board.of[0][r];
    const Moments& other = board.of[1][r];
    const Moments& before = board.of[0][r - 1];
    const double worked = std::max(leader.worked, other.worked);
    const double gathered = std::max(leader.gather, other.gather);
    spans.round.push_back(leader.commit - before.commit);
    spans.work.push_back(worked - before.apply);
    spans.call_to_commit.push_back(leader.commit - leader.call);
    spans.gather_to_commit.push_back(leader.commit - gathered);
    spans.worked_to_apply.push_back(leader.apply - worked);
  }
  return spans;
}

void print(const Board& board, Round rounds, bool spin) {
  const Spans spans = spans_of(board, rounds);
  fmt::print(R"({{"peers": {}, "parameters": {}, "work": "{}", "work_s": {:.3f}, "rounds": {},)"
             "\n",
             kPeers, kParameters, spin ? "computes" : "sleeps", kWorkSeconds, rounds - kWarmUp);
  fmt::print(R"( "round_s": {:.4f}, "slowest_round_s": {:.4f}, "apply_to_worked_s": {:.4f},)"
             "\n",
             median(spans.round), *std::max_element(spans.round.begin(), spans.round.end()),
             median(spans.work));
  fmt::print(R"( "worked_to_apply_s": {:.4f}, "call_to_commit_s": {:.4f}, "last_gather_to_commit_s": {:.5f},)"
             "\n",
             median(spans.worked_to_apply), median(spans.call_to_commit), median(spans.gather_to_commit));
  fmt::print(R"( "cpu_s_per_round_and_peer": {:.4f}}})"
             "\n",
             (board.cpu_s[0] + board.cpu_s[1]) / kPeers / static_cast<double>(rounds));
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  using namespace tw::bench;
  CLI::App app("What a round costs beside its work");
  tw::Round rounds = 20;
  bool spin = false;
  app.add_option("--rounds", rounds, "that are measured")->capture_default_str();
  app.add_flag("--spin", spin, "the work computes instead of sleeping");
  CLI11_PARSE(app, argc, argv);

  rounds = std::min(rounds + kWarmUp, kMostRounds);
  auto& board = shared_with_forks<Board>();
  board.barrier.set(kPeers);
  const tw::train::RunOptions run = run_of(rounds);
  const auto limit_s = static_cast<unsigned>(60 + 25 * rounds);
  if (!in_processes(kPeers, limit_s, [&](int rank) { return take_part(rank, run, spin, board); })) {
    fmt::print(stderr, "a peer failed\n");
    return 1;
  }
  print(board, rounds, spin);
  return 0;
}
