// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.h"
#include "sync/checkpoint.h"
#include "train/run/run.h"

namespace tw::train {

/// Everything that decides the result of a run (not patience, sites or checkpoints), a
/// fact each: settings as "batch=512", "codec=fp16", and the lines of a program's layout. Peers of one run
/// agree on all of them, and on the number of parameters. Immutable.
class RunFacts {
 public:
  RunFacts(const RunOptions& options, std::uint64_t parameter_count);

  /// Names the run.
  const Digest& digest() const { return digest_; }

  /// 32 bits of the digest of each fact, for the hello; those beyond wire::kMostFacts are left out.
  const std::vector<std::uint32_t>& prints() const { return prints_; }

  /// The first place, counted from 1, where the facts of these prints differ from these facts; 0: none.
  std::uint32_t first_difference(const std::vector<std::uint32_t>& theirs) const;

  /// "batch=512", in quotes; "nothing" beyond the last one.
  std::string at(std::uint32_t place) const;

  /// What a checkpoint says of the run.
  const sync::RunWords& words() const { return words_; }

 private:
  std::vector<std::string> facts_;
  Digest digest_;
  std::vector<std::uint32_t> prints_;
  sync::RunWords words_;
};

inline Digest run_digest(const RunOptions& options, std::uint64_t parameter_count) {
  return RunFacts(options, parameter_count).digest();
}

}  // namespace tw::train
