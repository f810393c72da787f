// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "wan/netns.h"

/// One request is one line, its answer is "ok" or "error", a newline, and text until the end.
namespace tw::wan {

Result<Fd> listen_at(const std::string& path);

/// The text of the answer, or what the box refused.
Result<std::string> ask(const std::string& path, const std::string& request);

/// One client of the box. Never waits.
class Client {
 public:
  /// A connection that waits at the listener; without one, valid() is false.
  explicit Client(const Fd& listener);

  bool valid() const { return connection_.valid(); }

  int fd() const { return connection_.get(); }

  /// Reads available bytes, and answers when the line is complete. False: the request is done.
  bool read(const std::function<Result<std::string>(const std::string& request)>& answer);

 private:
  void send(const Result<std::string>& answer) const;

  Fd connection_;
  std::string request_;
};

}  // namespace tw::wan
