// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/tree_yaml.h"

/// Files of keys with values, each kind with a table of its keys: an array of rows that have a `section`
/// (empty: the top) and a `name`. Reading, complaints, suggestions and reference are made of that table.
namespace tw {

/// A value as it stands in a file or an option: one word, or a list of them.
struct GivenValue {
  std::vector<std::string> words;
  bool is_list = false;
  std::filesystem::path folder = {};  ///< what relative paths are relative to

  bool is(std::string_view word) const { return !is_list && words.front() == word; }

  /// "0.5", or "[1, 2]".
  std::string text() const;
};

GivenValue given_word(std::string word, std::filesystem::path folder = {});

/// One key of a file, of which the alternative of `Place` says how its value is written (field_values.h).
template <class Target, class PlaceOf>
struct Field {
  using Place = PlaceOf;

  std::string_view section;
  std::string_view name;
  std::string_view meaning;
  Place (*place)(Target&);
  NumberBounds bounds = {};
  NumberUnit unit = {};
};

/// "training.rounds"; at the top "model".
template <class Row>
std::string key_of(const Row& row) {
  return row.section.empty() ? std::string(row.name) : std::string(row.section) + "." + std::string(row.name);
}

/// nullptr: no such key.
template <class Row>
const Row* find_field(std::span<const Row> table, std::string_view section, std::string_view name) {
  for (const Row& row : table)
    if (row.section == section && row.name == name) return &row;
  return nullptr;
}

/// "faults" of "faults.NAME", "sites" of "sites[]".
inline std::string_view first_word(std::string_view section) {
  return section.substr(0, section.find_first_of(".["));
}

/// The complaint about a key that is not in the table, with the nearest name that is. `others`: keys that
/// belong there too.
template <class Row>
std::string unknown_field(std::span<const Row> table, std::string_view section, std::string_view name,
                          std::initializer_list<std::string_view> others = {}) {
  std::vector<KnownKey> known;
  for (const std::string_view other : others) known.push_back({std::string(other), std::string(other)});
  for (const Row& row : table) {
    const bool here = row.section == section;
    const std::string above(first_word(row.section));
    if (section.empty() && !above.empty()) known.push_back({above, above});
    known.push_back({std::string(row.name), here ? std::string(row.name) : key_of(row), here});
  }
  return unknown_key(name, known);
}

/// What is wrong with a file, a line for each fault: "storm.yaml:12: faults.kil: unknown fault".
class Complaints {
 public:
  explicit Complaints(std::string file) : file_(std::move(file)) {}

  std::string place(const Tree& value, const std::string& key = "") const;

  void add(std::string complaint);
  void add(const std::string& where, const std::string& what);

  bool empty() const { return complaints_.empty(); }

  Error error() const;

  /// Calls visit(value, where) for each key of a map, once; nothing at all is an empty map.
  template <class Visit>
  void for_each_key(const Tree& map, const std::string& where, const std::string& path, Visit visit) {
    if (map.kind == Tree::Kind::nothing) return;
    if (!map.is_map()) return add(where, "expected keys with values");
    std::set<std::string_view> seen;
    for (const Tree& value : map.items) {
      const std::string here = place(value, path.empty() ? value.key : path + "." + value.key);
      if (seen.insert(value.key).second) {
        visit(value, here);
      } else {
        add(here, "given twice");
      }
    }
  }

  /// The word or words of a value; empty after a complaint that names what was expected.
  std::optional<GivenValue> given(const Tree& value, const std::string& where, const std::string& expected);

 private:
  std::string file_;
  std::vector<std::string> complaints_;
};

}  // namespace tw
