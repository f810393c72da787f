// SPDX-License-Identifier: Apache-2.0
//
// All-reduce (sum) with Gloo over TCP, for comparison with bench_reduce.
//   bench_gloo_reduce [--peers N] [--bytes N] [--repetitions N] [--algorithm default|ring_chunked]
// default: gloo::allreduce, which PyTorch calls.

#include <gloo/allreduce.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <filesystem>

#include "all_reduce.h"

namespace tw::bench {
namespace {

struct Board {
  Barrier barrier;
  Stamps stamps;
};

struct Setup {
  AllReduce task;
  bool ring_chunked = false;
  std::string folder;  ///< where the ranks find each other
};

bool take_part(int rank, const Setup& setup, Board& board) {
  gloo::transport::tcp::attr loopback("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(loopback);
  gloo::rendezvous::FileStore store(setup.folder);
  // owners: this and the algorithms below
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, setup.task.peers);
  context->connectFullMesh(store, device);

  std::vector<float> values(setup.task.length());
  gloo::AllreduceRingChunked<float> ring_chunked(context, {values.data()}, static_cast<int>(values.size()));
  gloo::AllreduceOptions options(context);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(
      [](void* out, const void* a, const void* b, std::size_t count) { gloo::sum<float>(out, a, b, count); });
  bool well = true;
  for (int repetition = 0; repetition <= setup.task.repetitions; ++repetition) {
    fill(values, rank);
    options.setTag(static_cast<std::uint32_t>(repetition));
    board.stamps.of[rank][repetition] =
        stamp([&] { board.barrier.wait(); },
              [&] { setup.ring_chunked ? ring_chunked.run() : gloo::allreduce(options); });
    well = well && is_sum(values, setup.task.peers, 1, 1e-4);
  }
  board.barrier.wait();
  return well;
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  using namespace tw::bench;
  CLI::App app("All-reduce with Gloo between processes on loopback");
  Setup setup;
  setup.task.describe(app);
  std::string algorithm = "default";
  app.add_option("--algorithm", algorithm)
      ->check(CLI::IsMember({"default", "ring_chunked"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::string folder = (std::filesystem::temp_directory_path() / "gloo-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "cannot make a folder like {}\n", folder);
    return 1;
  }
  setup.folder = folder;
  setup.ring_chunked = algorithm == "ring_chunked";
  auto& board = shared_with_forks<Board>();
  board.barrier.set(setup.task.peers);
  const bool well =
      in_processes(setup.task.peers, 300, [&](int rank) { return take_part(rank, setup, board); });
  std::filesystem::remove_all(folder);
  if (!well) {
    fmt::print(stderr, "a peer failed, or its sum is wrong\n");
    return 1;
  }
  print("gloo " + algorithm, setup.task, board.stamps);
  return 0;
}
