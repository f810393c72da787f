// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "world/random.h"

namespace tw::host {

/// The Random door on the generator of the operating system: good for ids and nonces. From any thread.
class OsRandom : public world::Random {
 public:
  std::uint64_t next() override;
};

}  // namespace tw::host
