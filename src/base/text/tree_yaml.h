// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tw {

/// A value of a YAML file. Anchors stand for a copy of their value.
struct Tree {
  enum class Kind : std::uint8_t { nothing, word, list, map };

  Kind kind = Kind::nothing;
  int line = 1;             ///< from 1; of a value in a map, that of its key
  std::string key;          ///< in a map; "?" where it is no word
  std::string word;         ///< of a word
  std::vector<Tree> items;  ///< of a list or map, as in the file; a key may stand there more than once

  bool is_list() const { return kind == Kind::list; }

  bool is_map() const { return kind == Kind::map; }

  bool is_word() const { return kind == Kind::word; }

  /// nullptr: no such key.
  const Tree* find(std::string_view name) const;
};

/// The error begins with "FILE:LINE: ". A file of more than 10,000 values or 100 levels is refused, for
/// aliases of aliases can stand for more than a memory holds.
Result<Tree> parse_yaml(const std::string& file, std::string_view text);

}  // namespace tw
