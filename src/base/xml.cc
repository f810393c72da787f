// SPDX-License-Identifier: Apache-2.0
#include "base/xml.h"

namespace tw {

std::string xml_escaped(std::string_view text) {
  std::string xml;
  for (const char c : text) {
    switch (c) {
      case '&':
        xml += "&amp;";
        break;
      case '<':
        xml += "&lt;";
        break;
      case '>':
        xml += "&gt;";
        break;
      default:
        xml += c;
    }
  }
  return xml;
}

}  // namespace tw
