// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "monitor/web/web_page.h"

namespace tw::cli {

/// Writes a page that holds its data (monitor/web/web_page.h). An error names the file.
Status write_page(const std::string& path, monitor::PageKind kind, const std::string& title,
                  const std::string& json);

/// The same for `fields`, the inside of a JSON object, which gets `made_s` (now) before it.
Status write_dated_page(const std::string& path, monitor::PageKind kind, const std::string& title,
                        const std::string& fields);

}  // namespace tw::cli
