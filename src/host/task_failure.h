// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "base/result.h"

namespace tw::host {

/// Runs the task. Returns its exception in words; empty without one.
inline std::string failure_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& thrown) {
    const std::string what = thrown.what();
    return what.empty() ? "exception without a message" : what;
  } catch (...) {
    return "exception of an unknown type";
  }
  return {};
}

/// What the work gives; its exception is an error like any other.
template <class T>
Result<T> result_of(const std::function<Result<T>()>& work) {
  Result<T> result = Error{};
  const std::string failure = failure_of([&] { result = work(); });
  if (!failure.empty()) result = Error{failure};
  return result;
}

}  // namespace tw::host
