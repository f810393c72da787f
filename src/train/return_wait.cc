// SPDX-License-Identifier: Apache-2.0
#include "train/return_wait.h"

#include <fmt/format.h>

namespace tw {

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

std::string ReturnWait::describe() const {
  if (stage_ != Stage::waiting) return {};
  const std::string then =
      checkpoint_ ? fmt::format("resumes alone from its checkpoint of round {}", checkpoint_->record.round)
      : trouble_.empty() ? "begins the run anew"
                         : "ends: " + trouble_;
  return fmt::format("the other peers of this run, up to {:.0f} s ({}); then it {}", to_seconds(patience_),
                     found_, then);
}

}  // namespace tw
