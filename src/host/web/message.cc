// SPDX-License-Identifier: Apache-2.0
#include "host/web/message.h"

#include <string_view>

namespace tw::host {

WebAnswer refusal(int status, const std::string& why) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = why + "\n"};
}

std::string value_in(const std::string& query, const std::string& key) {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    if (pair.starts_with(key + "=")) return std::string(pair.substr(key.size() + 1));
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  return "";
}

}  // namespace tw::host
