// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/frozen_file.h"

#include <fmt/format.h>

#include "base/text/write_file.h"
#include "host/system/calendar.h"

namespace tw::cli {

Status write_page(const std::string& path, monitor::PageKind kind, const std::string& title,
                  const std::string& json) {
  return write_file(path, frozen_page(kind, title, json));
}

Status write_dated_page(const std::string& path, monitor::PageKind kind, const std::string& title,
                        const std::string& fields) {
  return write_page(path, kind, title, fmt::format("{{\"made_s\":{},{}}}", host::now_unix_s(), fields));
}

}  // namespace tw::cli
