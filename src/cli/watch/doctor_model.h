// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/commands.h"
#include "host/store/stores.h"
#include "measure/doctor/findings.h"
#include "train/learn/trainer.h"
#include "train/run/run.h"

namespace tw::cli {

/// The checks of `tw doctor` on the run file: size of its model, speed of its data.
class DoctorModel {
 public:
  DoctorModel(std::string folder, std::optional<train::RunOptions> run, std::unique_ptr<host::Stores> stores,
              std::unique_ptr<train::Trainer> trainer);

  measure::Needs needs() const;

  /// Writes a file of the size of a checkpoint, at most 256 MiB.
  measure::Finding look_at_disk(const measure::Needs& needs) const;

  /// Trains for a second. Nothing: there is no run file, or its model is a program's own.
  std::optional<measure::Finding> look_at_data() const;

 private:
  std::string folder_;
  std::optional<train::RunOptions> run_;
  std::unique_ptr<host::Stores> stores_;     ///< of the trainer; nullptr: there is none
  std::unique_ptr<train::Trainer> trainer_;  ///< nullptr: as look_at_data()
};

/// run_file: may be empty. The error names the file.
Result<DoctorModel> open_doctor_model(const DoctorArguments& arguments, const std::string& run_file);

}  // namespace tw::cli
