// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/terminal_line.h"

#include <algorithm>
#include <array>

#include "base/text/columns.h"
#include "base/text/printable.h"

namespace tw::monitor {

namespace {

/// SGR of ECMA-48, in the order of Paint.
constexpr std::array<std::string_view, 7> kSequences = {"",         "\x1b[1m",  "\x1b[2m",   "\x1b[32m",
                                                        "\x1b[36m", "\x1b[33m", "\x1b[1;31m"};
constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kCut = "…";  ///< that cut_to ends with

std::string painted(const std::string& text, Paint paint) {
  const std::string_view sequence = kSequences.at(static_cast<std::size_t>(paint));
  if (sequence.empty() || text.empty()) return text;
  return std::string(sequence) + text + std::string(kReset);
}

}  // namespace

TerminalLine& TerminalLine::add(std::string_view text, Paint paint) {
  pieces_.push_back({printable_line(text), paint});
  columns_ += columns_of(pieces_.back().text);
  return *this;
}

TerminalLine& TerminalLine::cell(std::string_view text, std::size_t columns, Paint paint) {
  return add(fitted(printable_line(text), columns) + " ", paint);
}

TerminalLine& TerminalLine::number(std::string_view text, std::size_t columns, Paint paint) {
  return add(fitted(printable_line(text), columns, true) + " ", paint);
}

std::string TerminalLine::text(std::size_t width, bool colour) const {
  std::string whole;
  for (const Piece& piece : pieces_) whole += piece.text;
  whole.resize(whole.find_last_not_of(' ') + 1);
  const std::string shown = cut_to(whole, width);
  if (!colour) return shown;
  const bool cut = shown != whole;
  std::size_t left = cut && width > 0 ? shown.size() - kCut.size() : shown.size();
  std::string coloured;
  for (const Piece& piece : pieces_) {
    const std::size_t bytes = std::min(left, piece.text.size());
    coloured += painted(piece.text.substr(0, bytes), piece.paint);
    left -= bytes;
  }
  return cut && width > 0 ? coloured + std::string(kCut) : coloured;
}

}  // namespace tw::monitor
