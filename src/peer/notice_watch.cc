// SPDX-License-Identifier: Apache-2.0
#include "peer/notice_watch.h"

#include <algorithm>
#include <utility>

namespace tw::peer {

NoticeWatch::NoticeWatch(world::Clock& clock, std::unique_ptr<world::Http> http, Sources sources, Ears ears)
    : clock_(clock),
      http_(std::move(http)),
      sources_(std::move(sources)),
      ears_(std::move(ears)),
      alarm_(clock, [this] { step(); }) {}

void NoticeWatch::start() { step(); }

bool NoticeWatch::has_looked() const {
  return std::ranges::all_of(sources_, [](const auto& source) { return source->has_looked(); });
}

bool NoticeWatch::says_goodbye() {
  bool under_way = false;
  for (const auto& source : sources_) under_way = source->say_gone() || under_way;
  step();
  return under_way;
}

void NoticeWatch::step() {
  const Instant now = clock_.now();
  Instant next = kNever;
  for (std::size_t number = 0; number < sources_.size(); ++number) {
    spot::NoticeSource& source = *sources_[number];
    if (source.next_request() <= now) {
      http_->request(source.request(now), life_.tie([this, number](const Result<world::HttpAnswer>& answer) {
        take(number, answer);
      }));
    }
    next = std::min(next, source.next_request());
  }
  if (next != kNever) alarm_.set_by(next);
}

void NoticeWatch::take(std::size_t number, const Result<world::HttpAnswer>& answer) {
  constexpr std::int64_t kNanos = 1'000'000'000;
  const spot::Heard heard = sources_[number]->take({clock_.now(), clock_.unix_nanos() / kNanos}, answer);
  if (!heard.trouble.empty() && ears_.warn) ears_.warn("notices: " + heard.trouble);
  for (const spot::Notice& notice : heard.notices) ears_.heed(notice);
  step();
}

}  // namespace tw::peer
