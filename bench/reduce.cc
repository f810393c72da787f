// SPDX-License-Identifier: Apache-2.0
//
// All-reduce (mean) with tradewind's Reduction and TcpNetwork, without a session: no membership, no leader.
//   bench_reduce [--peers N] [--bytes N] [--repetitions N] [--codec fp32|fp16]
// N processes on loopback; everybody contributes and owns an equal share. Compare: bench/reduce_versus.py

#include "all_reduce.h"
#include "average/reduction.h"
#include "host/allocation.h"
#include "host/loop.h"
#include "host/network_tcp.h"
#include "host/random_os.h"
#include "wire/frame.h"

namespace tw::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 64;  ///< of each contribution
constexpr std::uint64_t kSegmentLength = 65536;
constexpr Duration kPatience = 60s;

struct Board {
  Barrier barrier;
  char addresses[kMostRanks][64];
  Stamps stamps;
};

PeerId peer_of(int rank) { return PeerId{static_cast<std::uint64_t>(rank) + 1}; }

Plan plan_of(const AllReduce& task, Round round, const Geometry& geometry) {
  Plan plan;
  plan.draft.round = round;
  for (int rank = 0; rank < task.peers; ++rank) {
    const Range microbatch{static_cast<std::uint64_t>(rank), 1};
    plan.draft.contributors.push_back({peer_of(rank), 0, kSamples, RangeSet(microbatch)});
    plan.participants.push_back(peer_of(rank));
  }
  plan.shares = equal_shares(geometry.segments(), plan.participants);
  return plan;
}

class Averager final : public NetworkEvents {
 public:
  Averager(int rank, const AllReduce& task, Codec codec)
      : self_(peer_of(rank)),
        task_(task),
        codec_(codec),
        network_(loop_, self_, random_, [](const std::string&) {}, {}) {}

  /// Links all ranks.
  bool meet(int rank, Board& board) {
    network_.greet_with(encode(Hello{.peer = self_}));
    network_.open("127.0.0.1:0", *this)
        .value()
        .copy(board.addresses[rank], sizeof(board.addresses[rank]) - 1);
    board.barrier.wait();
    for (int other = 0; other < rank; ++other) network_.connect(board.addresses[other]);
    return loop_.run_until([this] { return links_ == others(); }, kPatience);
  }

  void prepare(Round round) {
    round_ = round;
    through_ = 0;
    told_ = false;
    std::vector<float> memory = reduction_ ? reduction_->take_memory() : std::vector<float>();
    reduction_.emplace(Reduction::Options{
        .self = self_, .round = round_, .geometry = geometry_, .codec = codec_, .memory = std::move(memory)});
  }

  /// Returns once everybody has the whole mean.
  bool average(std::span<const float> gradient_sum) {
    TW_CHECK(reduction_->adopt(plan_of(task_, round_, geometry_)));
    reduction_->contribute(0, gradient_sum, kSamples);
    pump();
    return loop_.run_until([this] { return told_ && through_ == others(); }, kPatience);
  }

  std::span<const float> mean() const { return reduction_->mean(); }

  Result<PeerId> admit(const Frame& hello) override { return std::get<Hello>(decode(hello).value()).peer; }

  void on_open(PeerId, const Frame&) override { ++links_; }

  void on_message(PeerId from, Frame frame) override {
    const Message message = decode(frame).value();
    if (const auto* scatter = std::get_if<Scatter>(&message)) {
      TW_CHECK(reduction_->on_scatter(from, *scatter).ok());
    } else if (const auto* gather = std::get_if<Gather>(&message)) {
      TW_CHECK(reduction_->on_gather(from, *gather).ok());
    } else {
      TW_CHECK(std::get<Vote>(message).round == round_);
      ++through_;
    }
    pump();
  }

  void on_close(PeerId, const std::string&) override {}

  void on_refused(const std::string&, const std::string&) override {}

  std::optional<Frame> next_bulk(PeerId to) override {
    const std::optional<Message> segment = reduction_->next_bulk(to);
    if (!segment) return std::nullopt;
    return encode(*segment);
  }

 private:
  int others() const { return task_.peers - 1; }

  void pump() {
    for (const PeerId peer : reduction_->take_wakeups()) network_.pull(peer);
    if (told_ || !reduction_->complete()) return;
    told_ = true;
    const Frame vote = encode(Vote{.round = round_, .mean = reduction_->mean_digest()});
    for (int rank = 0; rank < task_.peers; ++rank) {
      if (peer_of(rank) != self_) network_.send(peer_of(rank), vote);
    }
  }

  PeerId self_;
  AllReduce task_;
  Codec codec_;
  Geometry geometry_{task_.length(), kSegmentLength};
  Loop loop_;
  OsRandom random_;
  std::optional<Reduction> reduction_;
  Round round_ = 0;
  int links_ = 0;
  int through_ = 0;
  bool told_ = false;
  TcpNetwork network_;
};

bool take_part(int rank, const AllReduce& task, Codec codec, Board& board) {
  Averager averager(rank, task, codec);
  bool well = averager.meet(rank, board);
  std::vector<float> gradient_sum(task.length());
  fill(gradient_sum, rank, static_cast<float>(kSamples));
  for (int repetition = 0; repetition <= task.repetitions; ++repetition) {
    averager.prepare(static_cast<Round>(repetition) + 1);
    board.stamps.of[rank][repetition] =
        stamp([&] { board.barrier.wait(); }, [&] { well = averager.average(gradient_sum) && well; });
    well = well && is_sum(averager.mean(), task.peers, 1.0 / task.peers, codec == Codec::fp32 ? 1e-4 : 0.1);
  }
  board.barrier.wait();
  return well;
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  using namespace tw::bench;
  tw::keep_freed_memory();
  CLI::App app("All-reduce with tradewind between processes on loopback");
  AllReduce task;
  task.describe(app);
  std::string codec_name = "fp32";
  app.add_option("--codec", codec_name)->check(CLI::IsMember({"fp32", "fp16"}))->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const tw::Codec codec = codec_name == "fp32" ? tw::Codec::fp32 : tw::Codec::fp16;
  auto& board = shared_with_forks<Board>();
  board.barrier.set(task.peers);
  if (!in_processes(task.peers, 300, [&](int rank) { return take_part(rank, task, codec, board); })) {
    fmt::print(stderr, "a peer failed, or its mean is wrong\n");
    return 1;
  }
  print("tradewind " + codec_name, task, board.stamps);
  return 0;
}
