// SPDX-License-Identifier: Apache-2.0
#include "monitor/web/web_page.h"

#include <fmt/format.h>

#include "base/xml.h"
#include "monitor/web/web_page_text.h"

namespace tw::monitor {
namespace {

/// In a script element only "<" can end it or begin a comment, and in JSON it stands in strings alone.
std::string for_script(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string page_of(std::string_view title, std::string_view data) {
  return fmt::format("{}{}{}{}{}", kPagePieces[0], title, kPagePieces[1], data, kPagePieces[2]);
}

}  // namespace

std::string_view live_page() {
  static const std::string page = page_of("tradewind", "");
  return page;
}

std::string_view page_policy() { return kPagePolicy; }

std::string_view name_of(PageKind kind) {
  switch (kind) {
    case PageKind::run:
      return "run";
    case PageKind::plan:
      return "plan";
    case PageKind::predict:
      return "predict";
    case PageKind::what_if:
      return "what-if";
  }
  return "run";
}

std::string frozen_page(PageKind kind, std::string_view title, std::string_view json) {
  return page_of(xml_escaped(title),
                 fmt::format(R"({{"kind":"{}","data":{}}})", name_of(kind), for_script(json)));
}

}  // namespace tw::monitor
