// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/frozen_file.h"

#include <fmt/format.h>

#include <fstream>

#include "host/system/calendar.h"

namespace tw::cli {

Status write_page(const std::string& path, monitor::PageKind kind, const std::string& title,
                  const std::string& json) {
  std::ofstream file(path, std::ios::binary);
  file << frozen_page(kind, title, json);
  file.close();
  if (file) return Unit{};
  return Error{
      fmt::format("{}: cannot be written; expected a file in a folder that is there and writable", path)};
}

Status write_dated_page(const std::string& path, monitor::PageKind kind, const std::string& title,
                        const std::string& fields) {
  return write_page(path, kind, title, fmt::format("{{\"made_s\":{},{}}}", host::now_unix_s(), fields));
}

}  // namespace tw::cli
