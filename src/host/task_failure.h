// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>

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

}  // namespace tw::host
