// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/loop.h"
#include "monitor/board/board.h"

namespace tw::cli {

/// The source of boards for a view of a run. Loop thread only.
class BoardFeed {
 public:
  using Done = std::function<void(Result<monitor::Board>)>;

  virtual ~BoardFeed() = default;

  /// Calls once with the present board, or with the reason why there is none; at once or later. One call at a
  /// time.
  virtual void ask(Done done) = 0;

  /// "logs in tw-out", "peer at 10.0.0.5:8080"
  virtual std::string name() const = 0;

  /// What a user has to know of the board, in a sentence: logs that it leaves out. Empty: nothing.
  virtual std::string note() const = 0;
};

struct FeedArguments {
  std::string where;        ///< a folder of event logs, one log, HOST:PORT, or http(s)://HOST:PORT
  std::string plan;         ///< PLAN.yaml with prices for logs; empty: what `tw up` keeps beside them
  std::string token;        ///< a token or @FILE, for https alone
  std::string pin;          ///< of the key of the certificate at https; empty: by an authority
  bool all_rounds = false;  ///< also the older ones, which a peer leaves out otherwise
};

inline bool is_https(const std::string& where) { return where.starts_with("https://"); }

/// Error: names `where`, and what was expected. The loop outlives the feed.
Result<std::unique_ptr<BoardFeed>> open_feed(const FeedArguments& arguments, host::Loop& loop);

}  // namespace tw::cli
