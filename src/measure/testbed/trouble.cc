// SPDX-License-Identifier: Apache-2.0
#include "measure/testbed/trouble.h"

#include "base/check.h"
#include "measure/testbed/testbed.h"

namespace tw::measure {
namespace {

constexpr int kLoops = 2;
constexpr double kNarrow = 0.1;

}  // namespace

Status Trouble::begin() {
  if (kind_ == TroubleKind::link) {
    TW_CHECK(testbed_ != nullptr);
    narrow_ = true;
    return testbed_->limit_first_site(kNarrow);
  }
  for (int i = 0; kind_ == TroubleKind::busy && i < kLoops; ++i) {
    auto loop = launch::Child::start({"/bin/sh", "-c", "while :; do :; done"}, folder_ + "/loop.log");
    if (!loop) return loop.error();
    loops_.push_back(std::move(loop).value());
  }
  return Unit{};
}

Status Trouble::end() {
  loops_.clear();
  return std::exchange(narrow_, false) ? testbed_->limit_first_site(1) : Status(Unit{});
}

}  // namespace tw::measure
