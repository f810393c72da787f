// SPDX-License-Identifier: Apache-2.0
#include "sync/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace tw::sync {
namespace {

using wire::ObjectKind;
using namespace std::chrono_literals;

/// Wait for answers that could improve the choice, and before a state that no peer had is asked for again.
constexpr Duration kOfferPatience = 500ms;

/// While nobody offers anything, those who have not answered are asked again this often.
constexpr Duration kAnswerPatience = 10s;

}  // namespace

Fetch::Fetch(Options options) : options_(std::move(options)), sources_(options_.window, options_.rarely) {
  const auto is_layout = [](const ChunkLayout& one) { return one.bytes > 0 && one.chunk_bytes > 0; };
  TW_CHECK(is_layout(options_.state) && !options_.means.empty());
  TW_CHECK(std::ranges::all_of(options_.means, is_layout));
}

// A fetch begins and stops at any time; the stages in between have an order.
void Fetch::enter(Stage next) {
  const auto comes_from = [&](std::initializer_list<Stage> before) {
    return std::ranges::find(before, stage_) != before.end();
  };
  switch (next) {
    case Stage::idle:
    case Stage::asking:
      break;
    case Stage::fetching:
      TW_CHECK(comes_from({Stage::asking, Stage::fetching}) && object_.begun());
      break;
    case Stage::complete:
      TW_CHECK(comes_from({Stage::fetching}) && object_.complete());
      break;
    case Stage::gone:
      TW_CHECK(comes_from({Stage::asking}) && wanted_.kind == ObjectKind::mean && !object_.begun());
      break;
  }
  stage_ = next;
}

const ChunkLayout& Fetch::layout() const {
  if (wanted_.kind == ObjectKind::state) return options_.state;
  return options_.means[wanted_.round % options_.means.size()];
}

void Fetch::want_state(Instant now, const std::vector<PeerId>& sources) {
  begin(now, {ObjectKind::state, 0}, sources);
}

void Fetch::want_other_state(Instant now, const wire::Record& here, const std::vector<PeerId>& sources) {
  TW_CHECK(here.run == options_.run);
  want_state(now, sources);
  here_ = digest_of(here);
}

void Fetch::want_mean(Instant now, const wire::Record& after, const std::vector<PeerId>& sources) {
  TW_CHECK(after.run == options_.run);
  parent_ = digest_of(after);
  begin(now, {ObjectKind::mean, after.round + 1}, sources);
}

void Fetch::keep_to(const wire::Record& record) {
  TW_CHECK(record.run == options_.run);
  floor_ = rank_of(record);
  before_floor_ = record.parent;
}

void Fetch::begin(Instant now, wire::ObjectId wanted, const std::vector<PeerId>& sources) {
  wanted_ = wanted;
  here_ = {};
  enter(Stage::asking);
  sources_.clear();
  object_.clear();
  choose_at_ = ask_again_at_ = kNever;
  ask_silent_at_ = now + kAnswerPatience;
  set_sources(now, sources);
}

void Fetch::set_sources(Instant now, const std::vector<PeerId>& sources) {
  if (stage_ != Stage::asking && stage_ != Stage::fetching) return;
  for (const PeerId peer : sources_.set(sources, object_)) ask(peer);
  reconsider(now);
}

void Fetch::ask(PeerId peer) {
  told_.insert(peer);
  outbox_.push_back({peer, wire::ObjectAsk{wanted_}});
}

std::string Fetch::fault_of(const wire::ObjectOffer& offer) const {
  const wire::Record& record = offer.record;
  if (record.run != options_.run) return "offers a state of another run";
  if (record.members.empty()) return "offers a record without members";
  if (record.round != offer.object.round) return "offers a record that does not belong to its object";
  if (offer.bytes != layout().bytes || offer.chunks.size() != layout().count()) {
    return fmt::format("offers {} bytes in {} chunks, expected {} in {}", offer.bytes, offer.chunks.size(),
                       layout().bytes, layout().count());
  }
  if (wanted_.kind == ObjectKind::mean && record.parent != parent_) {
    return fmt::format("offers a round {} of another history", record.round);
  }
  if (wanted_.kind == ObjectKind::mean && offer.content != record.mean)
    return "offers a mean that is not its record's";
  return {};
}

bool Fetch::gives_way(const wire::Record& record) const {
  const wire::Rank offered = rank_of(record);
  return floor_ && goes_before(*floor_, offered) && offered.record != before_floor_;
}

void Fetch::refuse(PeerId peer, std::string why) {
  std::string& last = refused_[peer];
  if (last == why) return;
  last = why;
  refusals_.push_back({peer, std::move(why)});
}

void Fetch::on_offer(Instant now, PeerId from, wire::ObjectOffer offer) {
  Sources::Source* const source = sources_.find(from);
  if (source == nullptr || source->answered || offer.object.kind != wanted_.kind) return;
  if (wanted_.kind == ObjectKind::mean && offer.object != wanted_) return;
  source->answered = true;
  const bool is_here = here_ != Digest{} && digest_of(offer.record) == here_;
  if (is_here || gives_way(offer.record)) return reconsider(now);
  if (std::string fault = fault_of(offer); !fault.empty()) {
    refuse(from, std::move(fault));
  } else {
    Sources::keep_offer(*source, std::move(offer));
    if (choose_at_ == kNever) choose_at_ = now + kOfferPatience;
  }
  reconsider(now);
}

void Fetch::on_gone(Instant now, PeerId from, const wire::ObjectGone& gone) {
  Sources::Source* const source = sources_.find(from);
  if (source == nullptr) return;
  const bool declined = !source->answered && gone.object == wanted_;
  const bool withdrawn = source->offer && gone.object == source->offer->object;
  if (!declined && !withdrawn) return;
  source->answered = true;
  sources_.drop_offer(from, object_);
  reconsider(now);
}

void Fetch::reconsider(Instant now) {
  if (stage_ != Stage::asking && stage_ != Stage::fetching) return;
  if (!sources_.anybody_offers()) {
    decide_without_offers(now);
    return;
  }
  const bool served = sources_.anybody_serves(object_);
  const bool may_choose = object_.begun() || now >= choose_at_ || sources_.all_answered();
  // Later the chosen object's chunks are on their way. On a slow link another choice would be a second copy.
  const bool may_improve = !object_.any_here() && now - choose_at_ < kOfferPatience;
  if ((!served || may_improve) && may_choose) choose(now);
  if (object_.begun()) ask_for_chunks(now);
}

void Fetch::decide_without_offers(Instant now) {
  enter(Stage::asking);
  object_.clear();
  choose_at_ = kNever;
  if (!sources_.all_answered()) return;
  if (wanted_.kind == ObjectKind::mean) {
    enter(Stage::gone);
  } else if (ask_again_at_ == kNever) {
    ask_again_at_ = now + kOfferPatience;
  }
}

void Fetch::choose(Instant now) {
  const Sources::Source& best = sources_.best();
  if (best.serves(object_)) return;
  sources_.forget_asks();
  object_.begin(now, *best.offer, best.content, layout());
  enter(Stage::fetching);
  ask_again_at_ = kNever;
}

void Fetch::ask_for_chunks(Instant now) {
  std::ranges::move(sources_.ask_for_chunks(now, object_), std::back_inserter(outbox_));
}

void Fetch::on_chunk(Instant now, PeerId from, wire::Chunk chunk) {
  const Sources::Source* const source = sources_.find(from);
  const bool is_wanted = stage_ == Stage::fetching && source != nullptr && source->serves(object_) &&
                         chunk.object == object_.offer().object;
  if (!is_wanted) {
    sources_.on_useless_chunk(now, from);
    return;
  }
  if (!object_.fits(chunk)) {
    refuse(from, fmt::format("sent a chunk {} of round {} that is not what it offered", chunk.index,
                             chunk.object.round));
    sources_.drop_offer(from, object_);
    reconsider(now);
    return;
  }
  const std::uint32_t index = chunk.index;
  const bool is_new = object_.add(std::move(chunk));
  sources_.on_chunk(now, from, index, is_new);
  if (object_.complete()) {
    enter(Stage::complete);
  } else {
    ask_for_chunks(now);
  }
}

void Fetch::step(Instant now) {
  if (stage_ == Stage::asking && now >= ask_again_at_) {
    ask_again_at_ = kNever;
    ask_silent_at_ = now + kAnswerPatience;
    for (const PeerId peer : sources_.start_over()) ask(peer);
  }
  if (stage_ == Stage::asking && now >= ask_silent_at_) {
    ask_silent_at_ = now + kAnswerPatience;
    for (const PeerId peer : sources_.unanswered()) ask(peer);
  }
  if (stage_ == Stage::fetching) sources_.give_up_on_quiet(now, object_);
  reconsider(now);
}

Instant Fetch::next_step() const {
  if (stage_ == Stage::asking) {
    const Instant ask_silent_at = sources_.unanswered().empty() ? kNever : ask_silent_at_;
    return std::min({choose_at_, ask_again_at_, ask_silent_at});
  }
  return stage_ == Stage::fetching ? sources_.next_step() : kNever;
}

void Fetch::finish() {
  for (const PeerId peer : std::exchange(told_, {})) outbox_.push_back({peer, wire::SyncDone{}});
  refused_.clear();
  stop();
}

void Fetch::stop() {
  enter(Stage::idle);
  sources_.clear();
  object_.clear();
}

wire::Outbox Fetch::take_messages() { return std::exchange(outbox_, {}); }

std::vector<BadSource> Fetch::take_refusals() { return std::exchange(refusals_, {}); }

std::optional<StateImage> Fetch::take_state() {
  if (stage_ != Stage::complete || wanted_.kind != ObjectKind::state) return std::nullopt;
  enter(Stage::idle);
  auto [offer, chunks] = object_.release();
  return StateImage{std::move(offer.record), offer.content, std::move(chunks), std::move(offer.chunks)};
}

std::optional<FetchedMean> Fetch::take_mean() {
  if (stage_ != Stage::complete || wanted_.kind != ObjectKind::mean) return std::nullopt;
  enter(Stage::idle);
  auto [offer, chunks] = object_.release();
  return FetchedMean{std::move(offer.record), std::move(chunks)};
}

std::vector<PeerId> Fetch::waiting_for() const {
  if (stage_ == Stage::asking) return sources_.unanswered();
  return stage_ == Stage::fetching ? sources_.sending() : std::vector<PeerId>{};
}

std::uint64_t Fetch::held_bytes() const { return sources_.held_bytes() + object_.held_bytes(); }

FetchProgress Fetch::progress() const {
  if (stage_ != Stage::fetching && stage_ != Stage::complete) return {};
  return {wanted_.kind, object_.offer().object.round, object_.bytes_here(), layout().bytes, object_.since()};
}

}  // namespace tw::sync
