// SPDX-License-Identifier: Apache-2.0
#include "market/built_in.h"

#include <algorithm>

#include "base/check.h"

namespace tw::market {

std::string_view built_in_file(std::string_view name) {
  const auto files = built_in_files();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const BuiltInFile& f) { return f.name == name; });
  TW_CHECK(file != files.end());
  return file->text;
}

}  // namespace tw::market
