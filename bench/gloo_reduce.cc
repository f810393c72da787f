// SPDX-License-Identifier: Apache-2.0
//
// One rank of an all-reduce (sum) with Gloo over TCP, for `tw bench reduce --vs gloo,gloo-ring`.
// default: gloo::allreduce, which PyTorch calls.

#include <gloo/allreduce.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "all_reduce.h"

namespace tw::bench {
namespace {

struct Setup : Rank {
  bool ring_chunked = false;
};

int reduce(const Setup& setup) {
  gloo::transport::tcp::attr own(setup.address.c_str());
  auto device = gloo::transport::tcp::CreateDevice(own);
  gloo::rendezvous::FileStore store(setup.store);
  // owners: this and the algorithms below
  const auto context = std::make_shared<gloo::rendezvous::Context>(setup.task.rank, setup.task.peers);
  context->connectFullMesh(store, device);

  std::vector<float> values(setup.task.length());
  gloo::AllreduceRingChunked<float> ring_chunked(context, {values.data()}, static_cast<int>(values.size()));
  gloo::AllreduceOptions options(context);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(
      [](void* out, const void* a, const void* b, std::size_t count) { gloo::sum<float>(out, a, b, count); });
  return take_part(setup.task, values, [&](int round) {
    options.setTag(static_cast<std::uint32_t>(round));
    setup.ring_chunked ? ring_chunked.run() : gloo::allreduce(options);
  });
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  using namespace tw::bench;
  CLI::App app;
  Setup setup;
  setup.describe(app);
  std::string algorithm = "default";
  app.add_option("--algorithm", algorithm)->check(CLI::IsMember({"default", "ring_chunked"}));
  CLI11_PARSE(app, argc, argv);
  setup.ring_chunked = algorithm == "ring_chunked";
  return reduce(setup);
}
