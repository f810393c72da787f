// SPDX-License-Identifier: Apache-2.0
#include "base/cause_text.h"

namespace tw {

std::string cause_text(const std::error_code& cause) {
  std::string text = cause.message();
  if (cause == std::errc::too_many_files_open)
    text += " (raise the limit of this process, for example: ulimit -n 65536)";
  if (cause == std::errc::too_many_files_open_in_system)
    text += " (raise the limit of this machine: sysctl fs.file-max)";
  return text;
}

std::string cause_text(int cause) { return cause_text(std::error_code(cause, std::generic_category())); }

}  // namespace tw
