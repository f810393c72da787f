// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/lifeline.h"
#include "spot/notice_source.h"
#include "train/session/alarm.h"
#include "world/clock.h"
#include "world/http.h"

namespace tw::peer {

/// Polls the sources of notices, each at its own times. Loop thread only; the clock outlives it.
class NoticeWatch {
 public:
  struct Ears {
    std::function<void(const spot::Notice&)> heed;
    std::function<void(const std::string& line)> warn;
  };

  using Sources = std::vector<std::unique_ptr<spot::NoticeSource>>;

  NoticeWatch(world::Clock& clock, std::unique_ptr<world::Http> http, Sources sources, Ears ears);

  void start();

  /// Each source has answered for the first time, or does not answer.
  bool has_looked() const;

  /// The peer has left: sources send their last requests. True until these are done or have failed.
  bool says_goodbye();

 private:
  void step();
  void take(std::size_t number, const Result<world::HttpAnswer>& answer);

  world::Clock& clock_;
  std::unique_ptr<world::Http> http_;
  Sources sources_;
  Ears ears_;
  train::Alarm alarm_;
  host::Lifeline life_;
};

}  // namespace tw::peer
