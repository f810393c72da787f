// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tw {

/// For the text of an element of XML or HTML.
std::string xml_escaped(std::string_view text);

}  // namespace tw
