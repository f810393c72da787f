// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.h"
#include "plan/advise/replan.h"

namespace tw::cli {

struct ReplanAnswer {
  Result<plan::Replan> replan;
  int code = kDone;  ///< exit code
};

/// The answer of `tw replan`.
ReplanAnswer replan_now(const ReplanArguments& arguments);

}  // namespace tw::cli
