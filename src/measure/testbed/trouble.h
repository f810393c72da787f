// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launch/local/child.h"
#include "measure/bench/arguments.h"

namespace tw::measure {

class Testbed;

/// The trouble of `--disturb` that strikes a whole machine or a link, from begin() until end(): two loops
/// that would each use a core, or the links of the testbed's first site at a tenth of their rate. A stopped
/// peer is the crew's affair (crew.h). It ends with this object at the latest.
class Trouble {
 public:
  /// testbed: needed for a link.
  Trouble(TroubleKind kind, std::string folder, const Testbed* testbed)
      : kind_(kind), folder_(std::move(folder)), testbed_(testbed) {}

  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;

  ~Trouble() { (void)end(); }

  /// Errors: a process that does not start, or what tw-wan says.
  Status begin();
  Status end();

 private:
  TroubleKind kind_;
  std::string folder_;
  const Testbed* testbed_;
  std::vector<launch::Child> loops_;
  bool narrow_ = false;
};

}  // namespace tw::measure
