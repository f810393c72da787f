// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tw::monitor {

/// Foregrounds of the 16 colours that each terminal has, and weights.
enum class Paint { plain, title, dim, good, busy, caution, alarm };

/// One line for a terminal, made of pieces. What peers said is made printable here.
class TerminalLine {
 public:
  TerminalLine& add(std::string_view text, Paint paint = Paint::plain);

  /// A cell of this many columns and a space behind it.
  TerminalLine& cell(std::string_view text, std::size_t columns, Paint paint = Paint::plain);
  TerminalLine& number(std::string_view text, std::size_t columns, Paint paint = Paint::plain);

  std::size_t columns() const { return columns_; }

  bool is_empty() const { return pieces_.empty(); }

  /// At most `width` columns, without spaces at the end; with escape sequences for the colours or without.
  std::string text(std::size_t width, bool colour) const;

 private:
  struct Piece {
    std::string text;
    Paint paint;
  };

  std::vector<Piece> pieces_;
  std::size_t columns_ = 0;
};

}  // namespace tw::monitor
