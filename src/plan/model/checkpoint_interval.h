// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How often to write checkpoints. Losses are memoryless, with a mean time between them (mtbf).
namespace tw::plan {

struct CheckpointCost {
  double checkpoint_s = 0;  ///< time to write one, above 0
  double mtbf_s = 0;        ///< of all machines that restart together when one of them is lost, above 0
  double restart_s = 0;     ///< from the loss to work again
};

/// Work between two checkpoints that minimises expected_wall_per_work. Exact: with M = mtbf, C = checkpoint,
/// t = M (1 + W0(-exp(-1 - C/M))), W0 the principal branch of Lambert's function.
double best_interval_s(const CheckpointCost& cost);

/// sqrt(2 C M): Young 1974.
double young_interval_s(const CheckpointCost& cost);

/// Daly 2006, of higher order; M for C >= 2 M.
double daly_interval_s(const CheckpointCost& cost);

/// Expected wall time per second of work: exp(R/M) M (exp((t + C)/M) - 1) / t (Daly 2006).
double expected_wall_per_work(const CheckpointCost& cost, double interval_s);

/// Seconds to write a checkpoint of this many 1e6 bytes to the store of a cloud: 3.7512 + 0.020006 MB, the
/// line that CM-DARE fitted to 5 to 200 MB (ICDCS 2020).
double remote_checkpoint_s(double megabytes);

}  // namespace tw::plan
