// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

/// Asynchronous workers around parameter servers, as in Li et al. 2019 and CM-DARE 2020: each worker computes
/// a step, has the servers take its gradients, and begins again. A closed queueing network with constant
/// service times (mean value analysis).
namespace tw::plan {

/// Busy seconds of a server for one step of one worker: 94 us a tensor and 1.37 ms per 1e6 bytes of float32
/// parameters, fitted to the plateaus of CM-DARE (ICDCS 2020, steps/s by workers), there within 14 %.
double server_step_s(int tensors, double megabytes);

/// Equal workers.
struct WorkerClass {
  int count = 0;
  double step_s = 0;  ///< of a step without the servers: calculation, and the way to them
};

/// Steps per second of all workers together; the parameters are split evenly among the servers. Up to 1 % too
/// high where the servers are the limit.
double steps_per_s(const std::vector<WorkerClass>& workers, double server_step_s, int servers = 1);

}  // namespace tw::plan
