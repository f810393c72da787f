// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tw::host {

/// A request to the web server: a line and the few headers that matter. Empty: missing.
struct WebRequest {
  std::string method;  ///< "GET"
  std::string path;    ///< "/board.json", as it was sent
  std::string query;   ///< text after the question mark
  std::string host{};  ///< with or without a port
  std::string authorization{};
  std::string cookie{};
  std::string last_event_id{};
  bool waited = false;  ///< an event was published since the answer to it was WebAnswer::waits
};

struct WebAnswer {
  int status = 200;
  std::string content_type{};
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< in addition to those of every answer
  bool follows = false;  ///< no body: the connection gets all published events
  bool waits = false;    ///< no answer yet: it is asked for again with the next published event
};

/// A refusal in words: one line of plain text.
WebAnswer refusal(int status, const std::string& why);

/// The value of one key: "token" in "token=abc&x=1". Empty: missing. Nothing is decoded.
std::string value_in(const std::string& query, const std::string& key);

}  // namespace tw::host
