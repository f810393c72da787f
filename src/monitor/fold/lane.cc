// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/lane.h"

#include <algorithm>

namespace tw::monitor {

void Lane::enter(PeerState state, Round round, double at_s) {
  if (begun_ && state == open_.state && round == open_.round) return;
  const double from_s = begun_ ? std::max(at_s, open_.from_s) : at_s;
  if (begun_ && from_s > open_.from_s) {
    open_.to_s = from_s;
    past_.push_back(open_);
  }
  if (past_.size() > most_spans_) past_.pop_front();
  open_ = {.peer = open_.peer, .round = round, .state = state, .from_s = from_s, .to_s = from_s, .why = {}};
  begun_ = true;
}

void Lane::began_at(double at_s) {
  if (past_.empty() || past_.back().to_s != open_.from_s) return;
  open_.from_s = past_.back().to_s = std::max(at_s, past_.back().from_s);
  if (past_.back().from_s == past_.back().to_s) past_.pop_back();
}

void Lane::append_to(std::vector<BoardSpan>& spans, Round first, double now_s) const {
  for (const BoardSpan& span : past_)
    if (span.round >= first) spans.push_back(span);
  if (!begun_ || open_.round < first || now_s <= open_.from_s) return;
  spans.push_back(open_);
  spans.back().to_s = now_s;
}

}  // namespace tw::monitor
