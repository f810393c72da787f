// SPDX-License-Identifier: Apache-2.0
#include "train/session/departure.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tw::train {
namespace {

bool may_follow(Departure::Stage before, Departure::Stage next) {
  using Stage = Departure::Stage;
  switch (before) {
    case Stage::before:
      return next == Stage::running || next == Stage::ended;
    case Stage::running:
      return next != Stage::lingering;
    case Stage::draining:
      return next == Stage::draining || next == Stage::last_round || next == Stage::ended;
    case Stage::last_round:
    case Stage::lingering:
      return true;
    case Stage::ended:
      return false;
  }
  return false;
}

}  // namespace

void Departure::go_to(Stage next) {
  TW_CHECK(may_follow(stage_, next));
  stage_ = next;
}

bool Departure::ask_to_leave() {
  TW_CHECK(!ended());
  if (std::exchange(asked_, true)) return false;
  if (!at_the_end()) go_to(Stage::draining);
  return true;
}

void Departure::stand_at(bool last) {
  if (last) {
    go_to(Stage::last_round);
  } else {
    go_to(asked_ ? Stage::draining : Stage::running);
  }
}

void Departure::finish_last_job() {
  TW_CHECK(last_jobs_ > 0);
  --last_jobs_;
}

bool Departure::linger(Instant now, bool missing, Instant asked) {
  TW_CHECK(at_the_end() && !has_last_jobs());
  if (stage_ == Stage::last_round) {
    go_to(Stage::lingering);
    lingers_since_ = now;
  }
  const Instant heard = std::max(asked, lingers_since_);
  return !missing || now - heard > kLinger || now - lingers_since_ > kMostLinger;
}

void Departure::end(std::string reason, bool failed) {
  if (ended()) return;
  ends_();
  complete_ = !failed && (at_the_end() || !asked_);
  go_to(Stage::ended);
  reason_ = std::move(reason);
  failed_ = failed;
}

}  // namespace tw::train
