// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/tree_yaml.h"

namespace tw::plan {

/// A field of a map by GPU, such as `spread: {Tesla T4: 1.2}`.
struct GpuField {
  std::string gpu;   ///< as offers and peers name it: T4
  std::string name;  ///< of the field, as the file has it: "spread.Tesla T4"
  std::string value;
};

/// The fields of a YAML file by name; fields of a nested map as "prices.T4@gcp:us". Like CsvRow it keeps the
/// first problem, "FILE:LINE: NAME VALUE: expected EXPECTED". A field that was never read is a problem, too.
class YamlFields {
 public:
  static Result<YamlFields> read(const std::string& file, std::string_view text);

  bool has(const std::string& name);

  /// Empty if it is missing. A list: its items, joined by ";".
  std::string text(const std::string& name);
  std::string word(const std::string& name);                ///< required
  std::vector<std::string> words(const std::string& name);  ///< of a list, or a single one
  double number(const std::string& name, CsvRange range = {});
  double number_or(const std::string& name, double other, CsvRange range = {});

  /// A whole number ("4" or "4.0"), within bounds of an int.
  int count(const std::string& name, CsvRange range);
  int count_or(const std::string& name, int other, CsvRange range);

  /// The fields of the map `name`: the part after the dot, and the value. words: what they are, such as
  /// "MACHINE: USD", for the complaint about a value in place of the map.
  std::vector<std::pair<std::string, std::string>> map(const std::string& name, const std::string& words);

  /// The fields of a map by GPU; two names of one GPU are a problem.
  std::vector<GpuField> gpu_map(const std::string& name, const std::string& words);

  void complain(const std::string& name, const std::string& expected);

  /// Unread fields, each with the name that may have been meant, and the first problem.
  Status finish() const;

 private:
  Status take(const Tree& value, const std::string& name);
  std::string unknown(const std::string& name, int line) const;

  struct Field {
    std::string value;
    int line = 0;
    bool used = false;
  };

  std::string file_;
  std::map<std::string, Field> fields_;
  std::set<std::string> known_;  ///< names that were read
  std::optional<Error> problem_;
};

}  // namespace tw::plan
