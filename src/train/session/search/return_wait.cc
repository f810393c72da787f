// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/return_wait.h"

#include "base/check.h"

namespace tw::train {

// From off to one of the others, and back.
void ReturnWait::enter(Stage next) {
  TW_CHECK((stage_ == Stage::off) != (next == Stage::off));
  stage_ = next;
}

void ReturnWait::begin(Instant now, Duration patience, std::string found) {
  enter(Stage::waiting);
  since_ = now;
  patience_ = patience;
  found_ = std::move(found);
}

ReturnWait::Rest ReturnWait::give_up() {
  TW_CHECK(stage_ == Stage::waiting);
  enter(Stage::off);
  return {std::exchange(checkpoint_, std::nullopt), std::exchange(trouble_, {})};
}

void ReturnWait::end() {
  enter(Stage::off);
  checkpoint_.reset();
  trouble_.clear();
}

swarm::Wait ReturnWait::waiting(Instant now) const {
  if (stage_ != Stage::waiting) return {};
  swarm::Wait wait{swarm::Wait::Kind::others};
  wait.left = patience_ - (now - since_);
  wait.past = {found_, checkpoint_ ? std::optional(checkpoint_->image.record.round) : std::nullopt, trouble_};
  return wait;
}

}  // namespace tw::train
