// SPDX-License-Identifier: Apache-2.0
#include "bind/verdict.h"

#include "base/text/write_file.h"

namespace tw::bind {

void Verdict::begin() {
  begun_ = true;
  say("begun");
}

/// A peer that never had a part in the run is "joining" to the end, unless another start would fare no
/// better.
std::string_view Verdict::word_of(train::Ending ending, const Flaws& flaws) const {
  using train::Ending;
  if (ending == Ending::lost || ending == Ending::taken) return name_of(ending);
  if (ending == Ending::unreached) return "unreached";
  if (begun_ && ending == Ending::complete && flaws.differs) return "differs";  // no start mends that
  if (begun_ && ending == Ending::complete && flaws.unsaved) return "unsaved";
  if (begun_ && ending == Ending::left && closes_ && !asked_) return "closed";
  if (begun_) return ending == Ending::none ? "left" : name_of(ending);
  if (ending == Ending::complete) return "over";
  return ending == Ending::notice ? "condemned" : "joining";
}

void Verdict::say(std::string_view word) {
  if (file_.empty() || said_ == word) return;
  said_ = word;
  (void)write_file(file_, said_);  // it is of no use where it cannot be written
}

}  // namespace tw::bind
