// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/advise/limited_search.h"

namespace tw::plan {

/// Why no plan meets all limits of the job: names each limit that could be relaxed alone, and a value with
/// which there is a plan; or else what each limit needs without the others.
Error no_plan(const LimitedSearch& search);

}  // namespace tw::plan
