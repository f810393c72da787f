// SPDX-License-Identifier: Apache-2.0
//
// All-reduce (sum) with MPI_Allreduce, for comparison with bench_reduce. Over TCP, as the others:
//   mpirun -n 2 --mca btl tcp,self --mca pml ob1 build/bench/bench_mpi_reduce [--bytes N] [--repetitions N]

#include <mpi.h>

#include <memory>

#include "all_reduce.h"

namespace tw::bench {
namespace {

bool take_part(int rank, const AllReduce& task, Stamp (&stamps)[kMostRepetitions]) {
  std::vector<float> values(task.length());
  bool well = true;
  for (int repetition = 0; repetition <= task.repetitions; ++repetition) {
    fill(values, rank);
    stamps[repetition] = stamp([] { MPI_Barrier(MPI_COMM_WORLD); },
                               [&] {
                                 MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                                               MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                               });
    well = well && is_sum(values, task.peers, 1, 1e-4);
  }
  return well;
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  using namespace tw::bench;
  MPI_Init(&argc, &argv);
  CLI::App app("All-reduce with MPI between the processes of mpirun");
  AllReduce task;
  task.describe(app);
  CLI11_PARSE(app, argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &task.peers);
  if (task.peers > kMostRanks) {
    fmt::print(stderr, "at most {} processes\n", kMostRanks);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const auto stamps = std::make_unique<Stamps>();
  const bool well = take_part(rank, task, stamps->of[rank]);
  if (!well) {
    fmt::print(stderr, "the sum of rank {} is wrong\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  Stamp* mine = stamps->of[rank];
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : mine, sizeof(stamps->of[0]), MPI_BYTE, stamps->of[0],
             sizeof(stamps->of[0]), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) print("openmpi", task, *stamps);
  MPI_Finalize();
  return 0;
}
