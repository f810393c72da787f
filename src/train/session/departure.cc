// SPDX-License-Identifier: Apache-2.0
#include "train/session/departure.h"

#include <algorithm>
#include <array>
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

bool Departure::ask_to_leave(Ending as) {
  TW_CHECK(!ended() && as != Ending::none && as < Ending::complete);
  const bool first = asked_as_ == Ending::none;
  asked_as_ = std::max(asked_as_, as);
  if (first && stage_ == Stage::running) go_to(Stage::draining);
  return first;
}

void Departure::stand_at(bool last) {
  if (last) {
    go_to(Stage::last_round);
  } else {
    go_to(asked_as_ != Ending::none ? Stage::draining : Stage::running);
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

// A peer that was asked to leave, but saw the last round, ended with the run.
void Departure::end(std::string reason) {
  const bool with_the_run = at_the_end() || asked_as_ == Ending::none;
  if (!ended()) end_as(with_the_run ? Ending::complete : asked_as_, std::move(reason));
}

void Departure::fail(std::string reason, Ending as) {
  TW_CHECK(is_failure(as));
  if (!is_failure(ending_)) end_as(as, std::move(reason));
}

void Departure::end_as(Ending ending, std::string reason) {
  const bool first = !ended();
  if (first) go_to(Stage::ended);
  ending_ = ending;
  reason_ = std::move(reason);
  if (first) ends_();
}

std::string_view name_of(Ending ending) {
  constexpr std::array<std::string_view, 9> kNames = {"",     "left",   "notice", "interrupted", "complete",
                                                      "left", "failed", "lost",   "taken"};
  return kNames.at(static_cast<std::size_t>(ending));
}

}  // namespace tw::train
