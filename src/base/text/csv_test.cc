// SPDX-License-Identifier: Apache-2.0
#include "base/text/csv.h"

#include <gmock/gmock.h>

#include "base/prng.h"

namespace tw {
namespace {

CsvTable table_of(std::string_view text) {
  auto table = CsvTable::parse("offers.csv", text, {});
  EXPECT_TRUE(table.ok()) << table.error().message;
  return std::move(table).value();
}

std::string refusal(std::string_view text, const std::vector<std::string>& required = {}) {
  const auto table = CsvTable::parse("offers.csv", text, required);
  return table ? "read" : table.error().message;
}

TEST(Csv, fields_are_found_by_the_name_of_their_column_in_any_order) {
  const CsvTable table = table_of("gpu,price\nT4,0.18\n");
  const CsvTable turned = table_of("price,gpu\r\n0.18, T4 \r\n");
  for (const CsvTable* t : {&table, &turned}) {
    CsvRow row = t->row(0);
    EXPECT_EQ(row.text("gpu"), "T4");
    EXPECT_EQ(row.number("price"), 0.18);
    EXPECT_TRUE(row.status().ok());
  }
}

TEST(Csv, quoted_fields_hold_commas_quotes_and_line_ends) {
  const CsvTable table = table_of("info,n\n\"{'a': 1, 'b': 2}\",1\n\"say \"\"so\"\"\nnow\",2\nx,3\n");
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table.row(0).text("info"), "{'a': 1, 'b': 2}");
  EXPECT_EQ(table.row(1).text("info"), "say \"so\"\nnow");
  EXPECT_EQ(table.row(1).line(), 3);
  EXPECT_EQ(table.row(2).line(), 5);
}

TEST(Csv, a_byte_order_mark_and_empty_lines_are_skipped) {
  const CsvTable table = table_of("\xef\xbb\xbfgpu\n\nT4\n\n");
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table.row(0).text("gpu"), "T4");
  EXPECT_EQ(table.row(0).line(), 3);
}

TEST(Csv, a_last_line_without_an_end_and_an_empty_last_field_are_read) {
  const CsvTable table = table_of("gpu,zone\nT4,");
  ASSERT_EQ(table.size(), 1U);
  EXPECT_TRUE(table.row(0).empty("zone"));
}

TEST(Csv, what_a_row_lacks_is_named_once_with_file_line_column_value_and_what_was_expected) {
  const CsvTable table = table_of("gpu,price,count\n,x,1.5\nT4,-1,2.0\n");
  CsvRow bad = table.row(0);
  bad.number("price");
  bad.word("gpu");
  EXPECT_EQ(bad.status().error().message, "offers.csv:2: price x: expected a number");
  CsvRow unnamed = table.row(0);
  unnamed.word("gpu");
  EXPECT_EQ(unnamed.status().error().message, "offers.csv:2: gpu is empty: expected a value");
  CsvRow part = table.row(0);
  part.count("count");
  EXPECT_EQ(part.status().error().message, "offers.csv:2: count 1.5: expected a whole number");
  CsvRow negative = table.row(1);
  EXPECT_EQ(negative.count("count"), 2);
  negative.number("price", {.least = 0});
  EXPECT_EQ(negative.status().error().message, "offers.csv:3: price -1: expected a number from 0");
  CsvRow without = table.row(1);
  EXPECT_EQ(without.number_or("memory", 7), 7);
  EXPECT_TRUE(without.status().ok());
}

TEST(Csv, files_that_are_no_table_are_refused) {
  EXPECT_EQ(refusal("", {"gpu", "price"}), "offers.csv: empty; expected a header line with gpu,price");
  EXPECT_EQ(refusal("gpu,zone\n", {"gpu", "price"}), "offers.csv:1: no column price; the header is gpu,zone");
  EXPECT_EQ(refusal("gpu,gpu\n"), "offers.csv:1: column gpu stands twice in the header");
  EXPECT_EQ(refusal("gpu,zone\nT4\n"), "offers.csv:2: 1 fields, expected 2 as in the header: gpu,zone");
  EXPECT_EQ(refusal("gpu\n\"T4\n"), "offers.csv:2: a quoted field has no closing quote");
  EXPECT_EQ(refusal("gpu\n\"T4\"x\n"),
            "offers.csv:2: x after a closing quote: expected a comma or the end of the line");
}

TEST(Csv, control_characters_and_bytes_that_are_no_text_are_named_with_their_line) {
  for (const std::string& field : {std::string("a\0b", 3), std::string("\x1b[31m"), std::string("\xff")}) {
    const auto table = CsvTable::parse("t.csv", "name,n\nfine,1\n" + field + ",2\n", {});
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().message.find("t.csv:3: "), 0U) << table.error().message;
    EXPECT_NE(table.error().message.find("without control characters"), std::string::npos);
  }
  EXPECT_TRUE(CsvTable::parse("t.csv", "name,n\n\"two\nlines\tand größer\",2\n", {}));
}

TEST(Csv, what_was_written_is_read_back) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng random(seed);
    std::vector<std::string> fields{"x"};
    for (int f = 0; f < 3; ++f) {
      std::string& field = fields.emplace_back();
      for (std::uint64_t n = random.below(6); n > 0; --n) field += "a\", \n\r'b"[random.below(8)];
    }
    const CsvTable table = table_of("w,a,b,c\n" + csv_line(fields));
    ASSERT_EQ(table.size(), 1U) << "seed " << seed;
    const CsvRow row = table.row(0);
    EXPECT_THAT((std::vector{row.text("w"), row.text("a"), row.text("b"), row.text("c")}), fields)
        << "seed " << seed;
  }
}

TEST(Csv, numbers_are_written_so_that_they_read_back) {
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number(4), "4");
}

}  // namespace
}  // namespace tw
