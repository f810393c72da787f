// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// Names of all checkers, in order: I1 ... L4, and "failure" (a session gave up).
const std::vector<std::string>& checker_names();

/// The checkers with these names; without names all. An error names the unknown one and lists all names. The
/// ledger is filled by the caller and outlives them.
Result<std::vector<std::unique_ptr<Checker>>> make_checkers(const Rules& rules, const Ledger& ledger,
                                                            const std::vector<std::string>& names);

}  // namespace tw::sim
