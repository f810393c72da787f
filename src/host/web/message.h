// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tw::host {

/// What somebody asks of the web server: a line and the few headers that matter. Empty: not there.
struct WebRequest {
  std::string method;  ///< "GET"
  std::string path;    ///< "/board.json", as it was sent
  std::string query;   ///< what stands after the question mark
  std::string host{};  ///< with or without a port
  std::string authorization{};
  std::string cookie{};
  std::string last_event_id{};
};

struct WebAnswer {
  int status = 200;
  std::string content_type{};
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< besides those that every answer has
  bool follows = false;  ///< no body: from now on it hears what is published
};

/// A refusal in words: one line of plain text.
WebAnswer refusal(int status, const std::string& why);

/// The value of one key: "token" in "token=abc&x=1". Empty: not there. Nothing is decoded.
std::string value_in(const std::string& query, const std::string& key);

}  // namespace tw::host
