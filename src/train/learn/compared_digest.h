// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/digest.h"
#include "train/run/run.h"
#include "wire/record.h"

namespace tw::train {

/// The digest by which peers compare their parameters after an update: that of the parameters where the run
/// compares them (RunOptions::compares_parameters()), else that of the update's record, which peers without
/// the parameters know, too. Compute thread only.
class ComparedDigest {
 public:
  struct Options {
    std::size_t threads = 1;
    std::function<void()> about_to_read{};  ///< the parameters; empty: they are always there
  };

  /// The parameters outlive this object.
  ComparedDigest(const RunOptions& run, std::span<const float> parameters, Options options);

  const Digest& now() const { return now_; }

  /// All parameters are other ones: the initial ones.
  const Digest& begin();

  /// These values of them have the update of this record.
  const Digest& updated(const wire::Record& record, std::size_t first, std::size_t count);

  /// All are other ones. Until restored() says which.
  void lost() { own_.changed(); }

  /// They are those after this record, with this digest. late: its mean waits for the update.
  const Digest& restored(const wire::Record& record, bool late, const Digest& parameters);

  /// A new history begins after this record with the parameters as they are.
  const Digest& settle(const wire::Record& anew, bool late);

  /// The program has written the parameters out.
  void write_out();

  /// Whether parameters with this digest are those that it wrote then.
  bool is_written(const Digest& parameters) const { return parameters == written_; }

 private:
  bool compares_after(const wire::Record& record, bool late) const;

  RunOptions run_;
  std::span<const float> parameters_;
  Options options_;
  ParameterDigest own_;
  Digest now_;
  bool is_own_ = true;  ///< now_ is that of the parameters, not that of a record
  Digest written_;      ///< of the parameters
};

}  // namespace tw::train
