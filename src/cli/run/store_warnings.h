// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace tw::cli {

/// For host::Stores: warns of a store that does not answer, at most once in 10 s. Any thread.
std::function<void(const std::string&)> warn_of_stores();

}  // namespace tw::cli
