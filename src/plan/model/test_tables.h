// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "base/text/csv.h"

/// Tables of published measurements, for tests.
namespace tw::plan::testing_tables {

/// Rows for a range-based for; an unreadable table fails the test.
class Table {
 public:
  explicit Table(CsvTable table) : table_(std::make_unique<CsvTable>(std::move(table))) {}

  class Rows {
   public:
    Rows(const CsvTable* table, std::size_t at) : table_(table), at_(at) {}

    CsvRow operator*() const { return table_->row(at_); }

    Rows& operator++() {
      ++at_;
      return *this;
    }

    bool operator!=(const Rows& other) const { return at_ != other.at_; }

   private:
    const CsvTable* table_;
    std::size_t at_;
  };

  Rows begin() const { return {table_.get(), 0}; }

  Rows end() const { return {table_.get(), table_->size()}; }

 private:
  std::unique_ptr<CsvTable> table_;  ///< its address stays when this is moved: rows point to it
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The table `name` under TW_REFERENCE_DIR.
inline Table require_table(const std::string& name) {
  Result<CsvTable> table = CsvTable::parse(name, read_text(TW_REFERENCE_DIR "/" + name), {});
  EXPECT_TRUE(table.ok()) << (table ? "" : table.error().message);
  return Table(table ? std::move(table).value() : CsvTable());
}

}  // namespace tw::plan::testing_tables
