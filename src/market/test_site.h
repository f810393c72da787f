// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "market/site.h"

/// For tests only.
namespace tw::market {

/// The site of this name, which must be valid.
inline Site at(const std::string& text) { return parse_site(text).value(); }

}  // namespace tw::market
