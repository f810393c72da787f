// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "host/http.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/web/server.h"
#include "peer/viewer.h"

namespace tw::cli {

/// What a peer with --watch shows, shown again: one look a second, for however many viewers. The loop
/// outlives it.
class WatchedPeer {
 public:
  struct Place {
    std::string url;      ///< "http://127.0.0.1:8080"
    std::string token{};  ///< for https
    std::string pin{};    ///< of the key of its certificate (world::HttpRequest); empty: by an authority
  };

  static Result<std::unique_ptr<WatchedPeer>> open(host::Loop& loop, Place place, host::WebOptions options);

  const peer::Viewer& viewer() const { return *viewer_; }

 private:
  WatchedPeer(host::Loop& loop, Place place) : loop_(loop), place_(std::move(place)), http_(loop) {}

  void ask();
  void take(const Result<world::HttpAnswer>& answer);
  void tell(const std::string& trouble);

  host::Loop& loop_;
  Place place_;
  host::CurlHttp http_;
  monitor::Board board_;
  std::string trouble_;  ///< the last one, which was told; empty: it answers
  std::unique_ptr<peer::Viewer> viewer_;
  host::Lifeline life_;
};

}  // namespace tw::cli
