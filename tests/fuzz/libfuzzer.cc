// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "fuzz/target.h"

// TW_FUZZ_TARGET is one of target.h: a program each.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tw::fuzz::Input input({data, size});
  tw::fuzz::TW_FUZZ_TARGET(input);
  return 0;
}
