// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

/// The page of web/, which is part of the program (cmake/web.cmake).
namespace tw::monitor {

extern const std::array<std::string_view, 3>
    kPagePieces;  ///< title between the first two, data before the last
extern const std::string_view kPagePolicy;

}  // namespace tw::monitor
