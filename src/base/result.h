// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace tw {

/// A failure of the world, in words that a user can act on.
struct Error {
  std::string message;
  bool lasting = false;  ///< the same question gets the same answer: what is asked for is gone
};

/// A value or the reason why there is none. For failures of the world (disk, network, input), not for bugs.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(value)) {}

  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }

  explicit operator bool() const { return ok(); }

  T& value() & {
    TW_CHECK(ok());
    return std::get<0>(state_);
  }

  const T& value() const& {
    TW_CHECK(ok());
    return std::get<0>(state_);
  }

  T&& value() && {
    TW_CHECK(ok());
    return std::get<0>(std::move(state_));
  }

  const Error& error() const {
    TW_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// The value of Result<Unit>: success without a value.
struct Unit {};

using Status = Result<Unit>;

}  // namespace tw

// NOLINTBEGIN(cppcoreguidelines-macro-usage,cppcoreguidelines-avoid-do-while,bugprone-macro-parentheses)

/// TW_TRY(const auto value, f()); declares the value of a Result, or returns its error from the function.
/// TW_TRY(f()); returns the error if there is one.
#define TW_TRY(...)                                                                              \
  TW_TRY_PICK(__VA_ARGS__, TW_TRY_VALUE, TW_TRY_VALUE, TW_TRY_VALUE, TW_TRY_VALUE, TW_TRY_VALUE, \
              TW_TRY_DONE, unused)                                                               \
  (__VA_ARGS__)

#define TW_TRY_PICK(a, b, c, d, e, f, name, ...) name
#define TW_TRY_JOIN(a, b) a##b
#define TW_TRY_NAME(line) TW_TRY_JOIN(tried_, line)

#define TW_TRY_VALUE(declaration, ...)                              \
  auto TW_TRY_NAME(__LINE__) = (__VA_ARGS__);                       \
  if (!TW_TRY_NAME(__LINE__)) return TW_TRY_NAME(__LINE__).error(); \
  declaration = std::move(TW_TRY_NAME(__LINE__)).value()

#define TW_TRY_DONE(expression)                                        \
  do {                                                                 \
    if (const auto tried = (expression); !tried) return tried.error(); \
  } while (false)

// NOLINTEND(cppcoreguidelines-macro-usage,cppcoreguidelines-avoid-do-while,bugprone-macro-parentheses)
