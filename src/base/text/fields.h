// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.h"

/// Parts that the tables of fields of files share: bounds, and the words of complaints and references. Pure
/// functions.
namespace tw {

/// Bounds of a number, in the unit of the file.
struct NumberBounds {
  double low = 0;
  double high = kInfinity;
  bool above_low = false;   ///< low itself is excluded
  bool below_high = false;  ///< high itself is excluded

  bool hold(double x) const {
    return (above_low ? x > low : x >= low) && (below_high ? x < high : x <= high);
  }
};

/// A number of a file becomes number * times / over in a struct. Both are whole, so that 150 ms are 0.15 s to
/// the last bit.
struct NumberUnit {
  double times = 1;
  double over = 1;

  double in_struct(double x) const { return x * times / over; }

  double in_file(double x) const { return x * over / times; }
};

/// "a number from 0 to 1", "a number above 0", "a number".
std::string number_text(const NumberBounds& bounds);

/// "a whole number from 1", "a whole number from 1 to 9".
std::string whole_number_text(const NumberBounds& bounds);

/// The number that makes up the whole text, if it is within bounds; a floating-point one must be finite.
template <class Number>
std::optional<Number> number_in(std::string_view text, const NumberBounds& bounds) {
  const auto number = parse_number<Number>(text);
  if (!number || !std::isfinite(static_cast<double>(*number))) return std::nullopt;
  return bounds.hold(static_cast<double>(*number)) ? number : std::nullopt;
}

/// "true", "1", "yes" and "on", or "false", "0", "no" and "off".
std::optional<bool> truth_in(std::string_view text);

/// The complaint about another text: "; did you mean "true"?" for "True"; else empty.
std::string meant_truth(std::string_view written);

/// "expected a name, found "x""; "found nothing" where the text is empty.
std::string unexpected(const std::string& expected, const std::string& found);

/// "; did you mean "kill"?" when one of the known names is near; else empty.
std::string did_you_mean(std::string_view written, std::span<const std::string> known);
std::string did_you_mean(std::string_view written, std::span<const std::string_view> known);

/// A key of a table of fields, as a file may have it.
struct KnownKey {
  std::string name;  ///< in its section
  std::string key;   ///< as shown to a user who wrote it here: the name, or section and name
  bool here = true;  ///< it belongs where it was written
};

/// "unknown key; did you mean "optimizer"?": the nearest name, preferably one that belongs here; else all
/// names that belong here.
std::string unknown_key(std::string_view written, const std::vector<KnownKey>& known);

/// A row of a reference of fields, as Markdown.
struct FieldRow {
  std::string key, expected;
  std::string written;  ///< the value, in a reference the default, as it would be written; empty: none
  std::string_view meaning;
};

std::string reference_of(const std::vector<FieldRow>& rows);

}  // namespace tw
