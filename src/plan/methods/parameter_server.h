// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

/// Asynchronous workers with parameter servers, as in Li et al. 2019 and CM-DARE 2020: each worker computes a
/// step, sends its gradients to the servers, and begins again. A closed queueing network with constant
/// service times (mean value analysis).
namespace tw::plan {

/// Busy seconds of a server for one step of one worker: 94 us per tensor and 1.37 ms per 1e6 bytes of float32
/// parameters. Fitted to the plateaus of CM-DARE (ICDCS 2020, steps/s by workers), within 14 %.
double server_step_s(int tensors, double megabytes);

/// Equal workers.
struct WorkerClass {
  int count = 0;
  double step_s = 0;  ///< time of a step without the servers: calculation and transfer
};

/// Steps per second of all workers; parameters are split evenly among the servers. Up to 1 % too high if the
/// servers are the limit.
double steps_per_s(const std::vector<WorkerClass>& workers, double server_step_s, int servers = 1);

}  // namespace tw::plan
