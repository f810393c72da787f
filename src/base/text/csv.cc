// SPDX-License-Identifier: Apache-2.0
#include "base/text/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/printable.h"
#include "base/text/text.h"

namespace tw {
namespace {

/// Splits a file into lines and fields.
class Scanner {
 public:
  Scanner(const std::string& file, std::string_view text)
      : file_(file), text_(without_byte_order_mark(text)) {}

  bool at_end() const { return text_.empty(); }

  int line() const { return line_; }

  /// The fields of the line that begins here.
  Result<std::vector<std::string>> next() {
    std::vector<std::string> fields;
    for (;;) {
      TW_TRY(std::string field, text_.starts_with('"') ? quoted() : plain());
      fields.push_back(std::move(field));
      if (text_.starts_with(',')) {
        text_.remove_prefix(1);
        continue;
      }
      if (text_.starts_with('\r')) text_.remove_prefix(1);
      if (!text_.empty()) text_.remove_prefix(1);
      ++line_;
      return fields;
    }
  }

 private:
  Result<std::string> plain() {
    std::string field(text_.substr(0, text_.find_first_of(",\n")));
    text_.remove_prefix(field.size());
    if (field.ends_with('\r') && !text_.starts_with(',')) field.pop_back();
    return std::string(trimmed(field));
  }

  Result<std::string> quoted() {
    const int begin = line_;
    text_.remove_prefix(1);
    std::string field;
    for (;;) {
      const auto quote = text_.find('"');
      if (quote == std::string_view::npos)
        return Error{fmt::format("{}:{}: a quoted field has no closing quote", file_, begin)};
      field += text_.substr(0, quote);
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('"')) break;
      field += '"';
      text_.remove_prefix(1);
    }
    line_ += static_cast<int>(std::count(field.begin(), field.end(), '\n'));
    if (!text_.empty() && text_.find_first_of(",\r\n") != 0)
      return Error{fmt::format("{}:{}: {} after a closing quote: expected a comma or the end of the line",
                               file_, line_, text_.substr(0, 1))};
    return field;
  }

  const std::string& file_;
  std::string_view text_;
  int line_ = 1;
};

}  // namespace

Result<CsvTable> CsvTable::parse(std::string file, std::string_view text,
                                 const std::vector<std::string>& required) {
  CsvTable table;
  table.file_ = std::move(file);
  Scanner scanner(table.file_, text);
  while (!scanner.at_end()) {
    Line line{scanner.line(), {}};
    auto fields = scanner.next();
    if (!fields) return fields.error();
    line.fields = std::move(fields).value();
    if (line.fields.size() == 1 && line.fields.front().empty()) continue;
    TW_TRY(table.check_plain(line));
    if (table.columns_.empty()) {
      TW_TRY(table.take_header(std::move(line), required));
      continue;
    }
    if (line.fields.size() != table.columns_.size())
      return Error{fmt::format("{}:{}: {} fields, expected {} as in the header: {}", table.file_, line.number,
                               line.fields.size(), table.columns_.size(), fmt::join(table.columns_, ","))};
    table.lines_.push_back(std::move(line));
  }
  if (table.columns_.empty())
    return Error{
        fmt::format("{}: empty; expected a header line with {}", table.file_, fmt::join(required, ","))};
  return table;
}

Status CsvTable::knows_only(std::span<const std::string> known) const {
  for (const std::string& column : columns_) {
    if (std::ranges::find(known, column) != known.end()) continue;
    const std::string meant = did_you_mean(column, known);
    return Error{
        fmt::format("{}: unknown column {}{}", file_, column,
                    meant.empty() ? fmt::format("; known here: {}", fmt::join(known, ", ")) : meant)};
  }
  return Unit{};
}

Status CsvTable::check_plain(const Line& line) const {
  for (const std::string& field : line.fields) {
    std::string rest = field;
    std::erase(rest, '\r');  // quoted fields may hold line ends and tabs
    if (printable(rest) == rest) continue;
    return Error{fmt::format("{}:{}: {}: expected text without control characters, in UTF-8", file_,
                             line.number, printable_line(field))};
  }
  return Unit{};
}

Status CsvTable::take_header(Line header, const std::vector<std::string>& required) {
  columns_ = std::move(header.fields);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!places_.emplace(columns_[i], i).second)
      return Error{
          fmt::format("{}:{}: column {} stands twice in the header", file_, header.number, columns_[i])};
  }
  for (const std::string& column : required) {
    if (!has(column))
      return Error{fmt::format("{}:{}: no column {}; the header is {}", file_, header.number, column,
                               fmt::join(columns_, ","))};
  }
  return Unit{};
}

int CsvRow::line() const { return table_->lines_[index_].number; }

const std::string& CsvRow::text(std::string_view column) const {
  static const std::string kNone;
  const auto place = table_->places_.find(column);
  return place == table_->places_.end() ? kNone : table_->lines_[index_].fields[place->second];
}

std::string CsvRow::word(std::string_view column) {
  if (empty(column)) complain(column, "a value");
  return text(column);
}

double CsvRow::number(std::string_view column, CsvRange range) {
  const NumberBounds bounds{.low = range.least, .high = range.most};
  const auto number = number_in<double>(text(column), bounds);
  if (!number) complain(column, number_text(bounds));
  return number.value_or(0);
}

double CsvRow::number_or(std::string_view column, double other, CsvRange range) {
  return empty(column) ? other : number(column, range);
}

int CsvRow::count(std::string_view column, CsvRange range) {
  const double value = number(column, range);
  if (value != std::floor(value)) complain(column, "a whole number");
  return static_cast<int>(value);
}

void CsvRow::complain(std::string_view column, const std::string& expected) {
  if (problem_) return;
  const std::string& value = text(column);
  problem_ = Error{fmt::format("{}:{}: {} {}: expected {}", table_->file_, line(), column,
                               value.empty() ? "is empty" : value, expected)};
}

Status CsvRow::status() const {
  if (problem_) return *problem_;
  return Unit{};
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    const bool plain = field.find_first_of(",\"\r\n") == std::string::npos && field == trimmed(field);
    if (plain) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

std::string csv_number(double number) { return fmt::format("{}", number); }

}  // namespace tw
