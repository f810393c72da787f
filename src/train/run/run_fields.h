// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/field_table.h"
#include "train/run/run.h"

namespace tw::train {

/// One key of a run file: "training.microbatch". One table of all keys serves reading, checks, suggestions
/// and the reference.
struct RunField;

/// "training.microbatch".
std::string key_of(const RunField& field);

/// nullptr: no such key.
const RunField* find_run_field(std::string_view key);

/// The whole key of a name: "training.rounds" of "rounds", where no other key ends so. Unknown: the name.
std::string whole_run_key(std::string_view name);

/// What is wrong where one key, by its whole or last name, has two values; empty: nothing.
std::string given_twice(const std::vector<std::pair<std::string, std::string>>& settings);

/// Whether some keys begin with "name.".
bool is_run_section(std::string_view name);

/// "a whole number of at least 1".
std::string expectation(const RunField& field);

/// Whether it is true or false.
bool is_flag(const RunField& field);

/// Stores a value; returns the complaint about it, or an empty string.
std::string assign(const RunField& field, const GivenValue& given, RunOptions& options);

/// The absolute path, if the field takes a folder and the value is one.
std::optional<std::string> absolute_path(const RunField& field, const GivenValue& given);

/// The complaint about a key that is not in the table, with the nearest name that is. section: empty at the
/// top.
std::string unknown_run_key(std::string_view section, std::string_view name);

/// All keys that a program may set, with their values in these options.
std::vector<FieldRow> run_rows(const RunOptions& options);

/// All keys with their values, defaults and meaning, as a Markdown table.
std::string run_file_reference();

}  // namespace tw::train
