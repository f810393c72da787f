// SPDX-License-Identifier: Apache-2.0
//
// All-reduce (sum) with MPI_Allreduce, for `tw bench reduce --vs openmpi`, which has mpirun start the ranks.

#include <mpi.h>

#include "all_reduce.h"

int main(int argc, char** argv) {
  using namespace tw::bench;
  MPI_Init(&argc, &argv);
  CLI::App app;
  AllReduce task;
  task.describe(app);
  CLI11_PARSE(app, argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &task.rank);
  std::vector<float> values(task.length());
  const int code = take_part(task, values, [&](int) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  });
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
