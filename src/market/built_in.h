// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

/// The tables of the repository's folder catalog/, compiled into the program (cmake/catalog.cmake).
namespace tw::market {

struct BuiltInFile {
  std::string_view name;  ///< "network.csv"
  std::string_view text;
};

std::span<const BuiltInFile> built_in_files();

/// The text of an existing table; another name is a bug.
std::string_view built_in_file(std::string_view name);

}  // namespace tw::market
