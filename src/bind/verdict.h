// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peer/peer.h"
#include "train/session/session.h"

namespace tw::bind {

/// How the peer's part in its run ended.
struct End {
  peer::Ending ending = peer::Ending::none;
  bool unreached = false;  ///< no peer of a run that had begun before was reached
  bool unsaved = false;    ///< the last checkpoint is missing
};

/// Says in a file, in one word, where the peer stands, for `tw run` (launch/local/verdict.h). Loop thread.
class Verdict {
 public:
  /// Empty: no launcher asks.
  explicit Verdict(std::string file) : file_(std::move(file)) {}

  void join() { say("joining"); }

  /// The peer has the state and asks for work.
  void begin();

  void end(const End& end) { say(word_of(end)); }

 private:
  std::string_view word_of(const End& end) const;
  void say(std::string_view word);

  std::string file_;
  std::string said_;
  bool begun_ = false;
};

}  // namespace tw::bind
