// SPDX-License-Identifier: Apache-2.0
#include "train/session/return_wait.h"

namespace tw::train {

void ReturnWait::begin(Instant now, Duration patience, std::string found) {
  stage_ = Stage::waiting;
  since_ = now;
  patience_ = patience;
  found_ = std::move(found);
}

ReturnWait::Rest ReturnWait::give_up() {
  stage_ = Stage::off;
  return {std::exchange(checkpoint_, std::nullopt), std::exchange(trouble_, {})};
}

void ReturnWait::end() {
  stage_ = Stage::off;
  checkpoint_.reset();
  trouble_.clear();
}

swarm::Wait ReturnWait::waiting(Instant now) const {
  if (stage_ != Stage::waiting) return {};
  swarm::Wait wait{swarm::Wait::Kind::others};
  wait.left = patience_ - (now - since_);
  wait.past = {found_, checkpoint_ ? std::optional(checkpoint_->record.round) : std::nullopt, trouble_};
  return wait;
}

}  // namespace tw::train
