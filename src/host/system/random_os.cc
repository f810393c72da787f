// SPDX-License-Identifier: Apache-2.0
#include "host/system/random_os.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace tw::host {

std::uint64_t OsRandom::next() {
  std::uint64_t value = 0;
  // Requests of up to 256 bytes are neither cut short nor interrupted (getrandom(2)) once the kernel has its
  // seed.
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) TW_CHECK(errno == EINTR);
  return value;
}

}  // namespace tw::host
