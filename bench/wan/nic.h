// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace tw::wan {

/// Has the kernel send at most so fast over wan0 in the namespace of this thread (a token bucket, qdisc tbf).
/// TCP then sees its packets wait, as with a real card, and holds back instead of losing them.
Status limit_nic(double bit_s);

}  // namespace tw::wan
