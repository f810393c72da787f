// SPDX-License-Identifier: Apache-2.0
#include "host/system/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace tw::host {

void hold_standard_streams() {
  // Opened for the wrong direction, so that using them fails as it does when they are closed.
  for (const auto& [stream, flags] : {std::pair{STDIN_FILENO, O_WRONLY}, std::pair{STDOUT_FILENO, O_RDONLY},
                                      std::pair{STDERR_FILENO, O_RDONLY}})
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", flags);  // takes the lowest free number
}

}  // namespace tw::host
