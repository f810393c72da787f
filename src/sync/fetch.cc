// SPDX-License-Identifier: Apache-2.0
#include "sync/fetch.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/check.h"
#include "wire/frame.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

/// For answers that would make the choice better, and before a state that nobody had is asked for again.
constexpr Duration kOfferPatience = 500ms;

/// Shortest silence after which chunks are asked of somebody else; the first before any chunk has come: one
/// of 512 KiB takes a second on 4 Mbit/s, and as many as there are sources come side by side.
constexpr Duration kFirstChunkPatience = 5s;
constexpr Duration kLeastChunkPatience = 1s;

/// Each time that a source is given up before a chunk of it comes, the next time takes twice as long, but no
/// longer than so many times the first one.
constexpr int kMostDoublings = 4;

/// While others send, a source of which nothing comes is given up after so many windows of chunks.
constexpr std::size_t kWindowsOfOthers = 2;

Digest digest_of_offer(const ObjectOffer& offer) {
  const Frame frame = encode(Message(offer));
  return digest_of(frame.head.bytes());
}

std::uint64_t bytes_of(const ObjectOffer& offer) {
  std::uint64_t bytes = offer.chunks.size() * sizeof(Digest);
  for (const Member& m : offer.record.members) bytes += sizeof m + m.address.size();
  for (const Contribution& c : offer.record.contributors) {
    bytes += sizeof c + c.microbatches.ranges().size() * sizeof(Range);
  }
  return bytes;
}

}  // namespace

Fetch::Fetch(Options options) : options_(std::move(options)) {
  for (const ChunkLayout& layout : {options_.state, options_.mean})
    TW_CHECK(layout.bytes > 0 && layout.chunk_bytes > 0);
  TW_CHECK(options_.window > 0);
}

const ChunkLayout& Fetch::layout() const {
  return wanted_.kind == ObjectKind::state ? options_.state : options_.mean;
}

void Fetch::want_state(Instant now, const std::vector<PeerId>& sources) {
  begin(now, {ObjectKind::state, 0}, sources);
}

void Fetch::want_other_state(Instant now, const Record& here, const std::vector<PeerId>& sources) {
  want_state(now, sources);
  here_ = digest_of(here);
}

void Fetch::want_mean(Instant now, const Record& after, const std::vector<PeerId>& sources) {
  parent_ = digest_of(after);
  begin(now, {ObjectKind::mean, after.round + 1}, sources);
}

void Fetch::keep_to(const Record& record) {
  floor_ = rank_of(record);
  before_floor_ = record.parent;
}

void Fetch::begin(Instant now, ObjectId wanted, const std::vector<PeerId>& sources) {
  wanted_ = wanted;
  here_ = {};
  stage_ = Stage::asking;
  sources_.clear();
  chosen_.reset();
  chunks_.clear();
  typical_.reset();
  choose_at_ = ask_again_at_ = kNever;
  set_sources(now, sources);
}

void Fetch::set_sources(Instant now, const std::vector<PeerId>& sources) {
  if (stage_ != Stage::asking && stage_ != Stage::fetching) return;
  for (auto& [peer, source] : sources_) {
    if (std::find(sources.begin(), sources.end(), peer) == sources.end()) release_asks(source);
  }
  std::erase_if(sources_, [&](const auto& entry) {
    return std::find(sources.begin(), sources.end(), entry.first) == sources.end();
  });
  for (const PeerId peer : sources) {
    if (sources_.try_emplace(peer).second) ask(peer);
  }
  reconsider(now);
}

void Fetch::ask(PeerId peer) {
  told_.insert(peer);
  outbox_.push_back({peer, ObjectAsk{wanted_}});
}

std::string Fetch::fault_of(const ObjectOffer& offer) const {
  const Record& record = offer.record;
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

bool Fetch::gives_way(const Record& record) const {
  const Rank offered = rank_of(record);
  return floor_ && goes_before(*floor_, offered) && offered.record != before_floor_;
}

void Fetch::refuse(PeerId peer, std::string why) {
  std::string& last = refused_[peer];
  if (last == why) return;
  last = why;
  refusals_.push_back({peer, std::move(why)});
}

void Fetch::on_offer(Instant now, PeerId from, ObjectOffer offer) {
  const auto found = sources_.find(from);
  if (found == sources_.end() || found->second.answered || offer.object.kind != wanted_.kind) return;
  if (wanted_.kind == ObjectKind::mean && offer.object != wanted_) return;
  Source& source = found->second;
  source.answered = true;
  const bool is_here = here_ != Digest{} && digest_of(offer.record) == here_;
  if (is_here || gives_way(offer.record)) return reconsider(now);
  if (std::string fault = fault_of(offer); !fault.empty()) {
    refuse(from, std::move(fault));
  } else {
    source.content = digest_of_offer(offer);
    source.offer_bytes = bytes_of(offer);
    source.offer = std::move(offer);
    if (choose_at_ == kNever) choose_at_ = now + kOfferPatience;
  }
  reconsider(now);
}

void Fetch::on_gone(Instant now, PeerId from, const ObjectGone& gone) {
  const auto found = sources_.find(from);
  if (found == sources_.end()) return;
  Source& source = found->second;
  const bool declined = !source.answered && gone.object == wanted_;
  const bool withdrawn = source.offer && gone.object == source.offer->object;
  if (!declined && !withdrawn) return;
  source.answered = true;
  drop_offer(source);
  reconsider(now);
}

void Fetch::reconsider(Instant now) {
  if (stage_ != Stage::asking && stage_ != Stage::fetching) return;
  const auto any = [&](auto&& holds) {
    return std::any_of(sources_.begin(), sources_.end(),
                       [&](const auto& entry) { return holds(entry.second); });
  };
  if (!any([](const Source& s) { return s.offer.has_value(); })) {
    decide_without_offers(now);
    return;
  }
  const bool served = chosen_ && any([&](const Source& s) { return serves(s); });
  const bool may_choose = chosen_ || now >= choose_at_ || !any([](const Source& s) { return !s.answered; });
  if ((!served || done_ == 0) && may_choose) choose(now);
  if (chosen_) ask_for_chunks(now);
}

void Fetch::decide_without_offers(Instant now) {
  stage_ = Stage::asking;
  chosen_.reset();
  choose_at_ = kNever;
  const bool all_answered =
      !sources_.empty() &&
      std::all_of(sources_.begin(), sources_.end(), [](const auto& entry) { return entry.second.answered; });
  if (!all_answered) return;
  if (wanted_.kind == ObjectKind::mean) {
    stage_ = Stage::gone;
  } else if (ask_again_at_ == kNever) {
    ask_again_at_ = now + kOfferPatience;
  }
}

void Fetch::choose(Instant now) {
  struct Candidate {
    Rank rank;
    std::size_t votes = 0;
  };

  std::map<Digest, Candidate> candidates;  // by content
  for (const auto& [peer, source] : sources_) {
    if (!source.offer) continue;
    Candidate& candidate = candidates[source.content];
    candidate.rank = rank_of(source.offer->record);
    ++candidate.votes;
  }
  const auto best = std::ranges::max_element(candidates, [](const auto& a, const auto& b) {
    const bool same = a.second.rank == b.second.rank;
    return same ? a.second.votes < b.second.votes : goes_before(b.second.rank, a.second.rank);
  });
  const Digest content = best->first;
  if (chosen_ && content == chosen_content_) return;
  for (auto& [peer, source] : sources_) {
    source.asked.clear();
    source.owed.clear();
    source.times_given_up = 0;
    source.avoided_until.reset();
  }
  const auto first = std::find_if(sources_.begin(), sources_.end(), [&](const auto& entry) {
    return entry.second.offer && entry.second.content == content;
  });
  chosen_ = first->second.offer;
  chosen_content_ = content;
  chosen_at_ = now;
  stage_ = Stage::fetching;
  ask_again_at_ = kNever;
  chunks_.assign(chosen_->chunks.size(), {});
  done_ = 0;
  unasked_.clear();
  for (std::uint32_t i = 0; i < chunks_.size(); ++i) unasked_.insert(unasked_.end(), i);
}

bool Fetch::serves(const Source& source) const {
  return chosen_ && source.offer && source.content == chosen_content_;
}

void Fetch::ask_for_chunks(Instant now) {
  for (bool progress = true; progress;) {
    progress = false;
    for (auto& [peer, source] : sources_) {
      const std::size_t under_way = source.asked.size() + source.owed.size();
      if (!serves(source) || source.avoided_until || under_way >= options_.window) continue;
      if (const std::optional<std::uint32_t> next = next_chunk_for(source)) {
        progress = true;
        if (rarely(options_.rarely, "fetch.other_source")) continue;
        unasked_.erase(*next);
        ask_for_chunk(now, peer, source, *next);
      } else if (source.asked.empty()) {
        relieve_slowest(now, peer, source);
      }
    }
  }
}

std::optional<std::uint32_t> Fetch::next_chunk_for(const Source& source) const {
  const auto next =
      std::ranges::find_if(unasked_, [&](std::uint32_t index) { return !source.owed.contains(index); });
  return next == unasked_.end() ? std::nullopt : std::optional(*next);
}

void Fetch::ask_for_chunk(Instant now, PeerId peer, Source& source, std::uint32_t index) {
  if (source.asked.empty()) source.heard(now, pieces_);
  source.asked.emplace(index, now);
  outbox_.push_back({peer, ChunkAsk{chosen_->object, index}});
}

/// Near the end a source is idle while another one has a long queue: the idle one is asked for the latter
/// half of it. What the slow one sends of that all the same counts if it is first.
void Fetch::relieve_slowest(Instant now, PeerId peer, Source& idle) {
  const auto slowest = std::max_element(sources_.begin(), sources_.end(), [](const auto& a, const auto& b) {
    return a.second.asked.size() < b.second.asked.size();
  });
  auto& asked = slowest->second.asked;
  if (asked.size() <= options_.window / 4 + 1) return;
  for (auto rest = asked.size() / 2; rest > 0; --rest) {
    const std::uint32_t last = std::prev(asked.end())->first;
    if (idle.owed.contains(last)) return;
    asked.erase(last);
    ask_for_chunk(now, peer, idle, last);
  }
}

void Fetch::release_asks(Source& source) {
  for (const auto& [index, at] : source.asked) unasked_.insert(index);
  source.asked.clear();
}

// What it was asked for may still come: to ask it for the same once more would put a second copy on a line
// that is slow already. It is asked again when it was avoided for a while and nothing came from anybody: as
// long as chunks come, be they of an object that is not wanted any more, the line of this peer is busy.
void Fetch::give_up(Instant now, Source& source) {
  for (const auto& [index, at] : source.asked) source.owed.insert(index);
  release_asks(source);
  source.given_up_last = now;
  source.avoided_until = now + patience_with(source);
  source.times_given_up = std::min(source.times_given_up + 1, kMostDoublings);
}

void Fetch::drop_offer(Source& source) {
  release_asks(source);
  source.owed.clear();
  source.offer.reset();
}

void Fetch::on_chunk(Instant now, PeerId from, Chunk chunk) {
  const auto found = sources_.find(from);
  if (stage_ != Stage::fetching || found == sources_.end()) return;
  Source& source = found->second;
  last_chunk_ = now;
  if (!serves(source) || chunk.object != chosen_->object) return;
  const bool right = chunk.index < chunks_.size() && chunk.payload.size() == layout().size(chunk.index) &&
                     digest_of(chunk.payload.bytes()) == chosen_->chunks[chunk.index];
  if (!right) {
    refuse(from, fmt::format("sent a chunk {} of round {} that is not what it offered", chunk.index,
                             chunk.object.round));
    drop_offer(source);
    reconsider(now);
    return;
  }
  store(now, source, std::move(chunk));
  if (done_ == chunks_.size()) {
    stage_ = Stage::complete;
  } else {
    ask_for_chunks(now);
  }
}

void Fetch::store(Instant now, Source& source, Chunk chunk) {
  source.heard(now, pieces_);
  source.avoided_until.reset();
  source.owed.erase(chunk.index);
  source.times_given_up = 0;
  if (const auto asked = source.asked.find(chunk.index); asked != source.asked.end()) {
    const Duration took = now - asked->second;
    typical_ = typical_ ? *typical_ + (took - *typical_) / 8 : took;
  }
  Blob& place = chunks_[chunk.index];
  if (!place.empty()) return;
  place = std::move(chunk.payload);
  ++done_;
  ++pieces_;
  unasked_.erase(chunk.index);
  for (auto& [peer, other] : sources_) other.asked.erase(chunk.index);
}

Duration Fetch::chunk_patience() const {
  return typical_ ? std::max<Duration>(kLeastChunkPatience, 10 * *typical_) : kFirstChunkPatience;
}

Duration Fetch::patience_with(const Source& source) const {
  return chunk_patience() * (1 << source.times_given_up);
}

Instant Fetch::given_up_at(const Source& source) const {
  const bool others_send = pieces_ - source.pieces_then >= kWindowsOfOthers * options_.window;
  const Instant quiet_since = others_send ? source.quiet_since : std::max(source.quiet_since, last_chunk_);
  return quiet_since + patience_with(source);
}

void Fetch::step(Instant now) {
  if (stage_ == Stage::asking && now >= ask_again_at_) {
    ask_again_at_ = kNever;
    for (auto& [peer, source] : sources_) {
      source = {};
      ask(peer);
    }
  }
  if (stage_ == Stage::fetching) give_up_on_quiet(now);
  reconsider(now);
}

/// Silence of a source is what counts, not the age of an ask: a slow line with a full window is no reason to
/// load another one with the same chunks. Nor is it silence as long as chunks come from others, be they of an
/// object that is not wanted any more: the line of this peer may be what they all wait for.
void Fetch::give_up_on_quiet(Instant now) {
  for (auto& [peer, source] : sources_) {
    if (source.avoided_until && now >= *source.avoided_until) {
      source.avoided_until.reset();
      if (last_chunk_ <= source.given_up_last) source.owed.clear();
    }
    if (source.avoided_until || (source.asked.empty() && source.owed.empty())) continue;
    if (now < given_up_at(source) && !rarely(options_.rarely, "fetch.timeout")) continue;
    give_up(now, source);
  }
}

Instant Fetch::next_step() const {
  if (stage_ == Stage::asking) return std::min(choose_at_, ask_again_at_);
  Instant next = kNever;
  if (stage_ != Stage::fetching) return next;
  for (const auto& [peer, source] : sources_) {
    if (source.avoided_until) {
      next = std::min(next, *source.avoided_until);
    } else if (!source.asked.empty() || !source.owed.empty()) {
      next = std::min(next, given_up_at(source));
    }
  }
  return next;
}

void Fetch::finish() {
  for (const PeerId peer : std::exchange(told_, {})) outbox_.push_back({peer, SyncDone{}});
  refused_.clear();
  stop();
}

void Fetch::stop() {
  stage_ = Stage::idle;
  sources_.clear();
  chosen_.reset();
  chunks_.clear();
}

Outbox Fetch::take_messages() { return std::exchange(outbox_, {}); }

std::vector<BadSource> Fetch::take_refusals() { return std::exchange(refusals_, {}); }

std::optional<StateImage> Fetch::take_state() {
  if (stage_ != Stage::complete || wanted_.kind != ObjectKind::state) return std::nullopt;
  stage_ = Stage::idle;
  return StateImage{std::move(chosen_->record), chosen_->content, std::move(chunks_),
                    std::move(chosen_->chunks)};
}

std::optional<FetchedMean> Fetch::take_mean() {
  if (stage_ != Stage::complete || wanted_.kind != ObjectKind::mean) return std::nullopt;
  stage_ = Stage::idle;
  return FetchedMean{std::move(chosen_->record), std::move(chunks_)};
}

std::vector<PeerId> Fetch::waiting_for() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, source] : sources_) {
    const bool owes =
        stage_ == Stage::asking ? !source.answered : stage_ == Stage::fetching && !source.asked.empty();
    if (owes) peers.push_back(peer);
  }
  return peers;
}

std::uint64_t Fetch::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [peer, source] : sources_) bytes += source.offer ? source.offer_bytes : 0;
  if (chosen_) bytes += chosen_->chunks.size() * sizeof(Digest);
  if (chunks_.empty()) return bytes;
  return bytes + chunks_.size() * sizeof(Blob) + std::min(done_ * layout().chunk_bytes, layout().bytes);
}

FetchProgress Fetch::progress() const {
  if (stage_ != Stage::fetching && stage_ != Stage::complete) return {};
  const std::uint64_t bytes = layout().bytes;
  return {wanted_.kind, chosen_->object.round, std::min(done_ * layout().chunk_bytes, bytes), bytes,
          chosen_at_};
}

}  // namespace tw
