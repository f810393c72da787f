// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/number.h"

/// Comma-separated values (RFC 4180): fields in quotes may hold commas, line ends and doubled quotes. Lines
/// end in LF or CRLF; empty lines are left out; a byte-order mark is skipped. Control characters and bytes
/// that are not UTF-8 are errors.
namespace tw {

class CsvTable;

struct CsvRange {
  double least = -kInfinity;
  double most = kInfinity;
};

/// A line of a table, read by column names. The first problem is kept; ask for it once, after the last field.
/// After it fields are empty or 0. A column that the table lacks reads as an empty field. The table outlives
/// it.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, std::size_t index) : table_(&table), index_(index) {}

  /// Line in the file where the row begins, from 1.
  int line() const;

  /// The field without spaces around it.
  const std::string& text(std::string_view column) const;

  bool empty(std::string_view column) const { return text(column).empty(); }

  /// Like text, but an empty field is a problem.
  std::string word(std::string_view column);

  double number(std::string_view column, CsvRange range = {});
  double number_or(std::string_view column, double other, CsvRange range = {});

  /// A whole number ("4" or "4.0").
  int count(std::string_view column, CsvRange range = {.least = 0, .most = 1e9});

  /// A problem that the reader found: "FILE:LINE: COLUMN VALUE: expected EXPECTED".
  void complain(std::string_view column, const std::string& expected);

  Status status() const;

 private:
  const CsvTable* table_;
  std::size_t index_;
  std::optional<Error> problem_;
};

class CsvTable {
 public:
  /// `file` is its name in messages. Errors, which name it: no header line, a required column is missing, or
  /// a line has fewer or more fields than the header.
  static Result<CsvTable> parse(std::string file, std::string_view text,
                                const std::vector<std::string>& required);

  const std::string& file() const { return file_; }

  const std::vector<std::string>& columns() const { return columns_; }

  /// A misspelt column would be left out of all rows. The error names the first one that is not known, and
  /// the name that was meant.
  Status knows_only(std::span<const std::string> known) const;

  bool has(std::string_view column) const { return places_.find(column) != places_.end(); }

  std::size_t size() const { return lines_.size(); }

  CsvRow row(std::size_t index) const { return {*this, index}; }

 private:
  friend class CsvRow;

  struct Line {
    int number = 0;
    std::vector<std::string> fields;
  };

  Status check_plain(const Line& line) const;
  Status take_header(Line header, const std::vector<std::string>& required);

  std::string file_;
  std::vector<std::string> columns_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<Line> lines_;
};

/// One line, ended by LF; fields are quoted where they must be.
std::string csv_line(const std::vector<std::string>& fields);

/// The shortest text that reads back as the same number.
std::string csv_number(double number);

}  // namespace tw
