// SPDX-License-Identifier: Apache-2.0
#include "host/allocation.h"

#include <malloc.h>

namespace tw {

void keep_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace tw
