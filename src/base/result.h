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
