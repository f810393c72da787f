// SPDX-License-Identifier: Apache-2.0
#include "sync/sources.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "wire/frame.h"
#include "wire/rank.h"

namespace tw::sync {
namespace {

using namespace std::chrono_literals;

/// Shortest silence after which chunks are asked of another source; kFirstChunkPatience holds before the
/// first chunk. A chunk of 512 KiB takes a second at 4 Mbit/s, and all sources send at the same time.
constexpr Duration kFirstChunkPatience = 5s;
constexpr Duration kLeastChunkPatience = 1s;

/// Each time that a source is given up before it sends a chunk, its patience doubles, at most this often.
constexpr int kMostDoublings = 4;

/// While others send, a source that sends nothing is given up after this many windows of chunks.
constexpr std::size_t kWindowsOfOthers = 2;

/// This many windows of unwanted chunks may still come from a source: with the usual window, as many asks as
/// a donor keeps (Donor::Options::max_chunk_asks).
constexpr std::size_t kUselessWindows = 4;

Digest digest_of_offer(const wire::ObjectOffer& offer) {
  const Frame frame = encode(wire::Message(offer));
  return digest_of(frame.head.bytes());
}

std::uint64_t bytes_of(const wire::ObjectOffer& offer) {
  std::uint64_t bytes = offer.chunks.size() * sizeof(Digest);
  for (const wire::Member& m : offer.record.members) bytes += sizeof m + m.address.size();
  for (const wire::Contribution& c : offer.record.contributors) {
    bytes += sizeof c + c.microbatches.ranges().size() * sizeof(Range);
  }
  return bytes;
}

}  // namespace

Sources::Sources(std::size_t window, Rarely rarely) : window_(window), rarely_(std::move(rarely)) {
  TW_CHECK(window > 0);
}

void Sources::clear() {
  forget_asks();
  sources_.clear();
  typical_.reset();
}

std::vector<PeerId> Sources::set(const std::vector<PeerId>& peers, PartialObject& object) {
  for (auto it = sources_.begin(); it != sources_.end();) {
    const bool stays = std::find(peers.begin(), peers.end(), it->first) != peers.end();
    if (!stays) {
      expect_useless(it->first, it->second.asked.size() + it->second.owed.size());
      release_asks(it->second, object);
    }
    it = stays ? std::next(it) : sources_.erase(it);
  }
  std::vector<PeerId> added;
  for (const PeerId peer : peers) {
    if (sources_.try_emplace(peer).second) added.push_back(peer);
  }
  return added;
}

void Sources::on_close(PeerId peer, PartialObject& object) {
  if (Source* const source = find(peer)) release_asks(*source, object);
  sources_.erase(peer);
  useless_.erase(peer);
}

std::vector<PeerId> Sources::start_over() {
  std::vector<PeerId> peers;
  for (auto& [peer, source] : sources_) {
    TW_CHECK(source.asked.empty() && source.owed.empty());
    source = {};
    peers.push_back(peer);
  }
  return peers;
}

Sources::Source* Sources::find(PeerId peer) {
  const auto found = sources_.find(peer);
  return found == sources_.end() ? nullptr : &found->second;
}

void Sources::keep_offer(Source& source, wire::ObjectOffer offer) {
  TW_CHECK(source.answered && !source.offer);
  source.content = digest_of_offer(offer);
  source.offer_bytes = bytes_of(offer);
  source.offer = std::move(offer);
}

void Sources::drop_offer(PeerId peer, PartialObject& object) {
  Source* const found = find(peer);
  TW_CHECK(found != nullptr);
  Source& source = *found;
  expect_useless(peer, source.asked.size() + source.owed.size());
  release_asks(source, object);
  source.owed.clear();
  source.offer.reset();
}

bool Sources::all_answered() const {
  return !sources_.empty() &&
         std::ranges::all_of(sources_, [](const auto& entry) { return entry.second.answered; });
}

bool Sources::anybody_offers() const {
  return std::ranges::any_of(sources_, [](const auto& entry) { return entry.second.offer.has_value(); });
}

bool Sources::anybody_serves(const PartialObject& object) const {
  return std::ranges::any_of(sources_, [&](const auto& entry) { return entry.second.serves(object); });
}

const Sources::Source& Sources::best() const {
  struct Candidate {
    const Source* first = nullptr;
    wire::Rank rank;
    std::size_t votes = 0;
  };

  std::map<Digest, Candidate> candidates;  // by content
  for (const auto& [peer, source] : sources_) {
    if (!source.offer) continue;
    Candidate& candidate = candidates[source.content];
    if (candidate.first == nullptr) candidate.first = &source;
    candidate.rank = rank_of(source.offer->record);
    ++candidate.votes;
  }
  TW_CHECK(!candidates.empty());
  const auto best = std::ranges::max_element(candidates, [](const auto& a, const auto& b) {
    const bool same = a.second.rank == b.second.rank;
    return same ? a.second.votes < b.second.votes : wire::goes_before(b.second.rank, a.second.rank);
  });
  return *best->second.first;
}

void Sources::forget_asks() {
  for (auto& [peer, source] : sources_) {
    expect_useless(peer, source.asked.size() + source.owed.size());
    source.asked.clear();
    source.owed.clear();
    source.has_sent = false;
    source.times_given_up = 0;
    source.avoided_until.reset();
  }
}

wire::Outbox Sources::ask_for_chunks(Instant now, PartialObject& object) {
  wire::Outbox asks;
  for (const bool preferred : {true, false}) ask_some(now, object, preferred, asks);
  return asks;
}

void Sources::ask_some(Instant now, PartialObject& object, bool preferred, wire::Outbox& asks) {
  for (bool progress = true; progress;) {
    progress = false;
    for (auto& [peer, source] : sources_) {
      if (preferred_.contains(peer) != preferred) continue;
      const std::size_t under_way = source.asked.size() + source.owed.size();
      if (!source.serves(object) || source.avoided_until || under_way >= window_) continue;
      if (const std::optional<std::uint32_t> next = object.next_free(source.owed)) {
        progress = true;
        if (rarely(rarely_, "fetch.other_source")) continue;
        object.take(*next);
        ask_for_chunk(now, source, *next);
        asks.push_back({peer, wire::ChunkAsk{object.offer().object, *next}});
      } else if (source.asked.empty()) {
        for (const std::uint32_t index : relieve_slowest(now, peer))
          asks.push_back({peer, wire::ChunkAsk{object.offer().object, index}});
      }
    }
  }
}

void Sources::ask_for_chunk(Instant now, Source& source, std::uint32_t index) {
  if (source.asked.empty()) {
    source.quiet_since = now;
    source.pieces_then = pieces_;
  }
  TW_CHECK(source.asked.emplace(index, now).second);
}

/// Near the end an idle source is asked for the latter half of the longest queue of another source. If the
/// slow source still sends a chunk of it first, that one counts. Chunks asked of a preferred source stay with
/// it unless it falls silent. One chunk is enough for a source that has sent none: if this peer's own line is
/// the slow one, all copies cross it.
std::vector<std::uint32_t> Sources::relieve_slowest(Instant now, PeerId idle_peer) {
  Source& idle = sources_.at(idle_peer);
  const auto queue = [&](const auto& entry) {
    const bool stays = preferred_.contains(entry.first) && !preferred_.contains(idle_peer);
    return stays ? std::size_t{0} : entry.second.asked.size();
  };
  const auto slowest =
      std::ranges::max_element(sources_, [&](const auto& a, const auto& b) { return queue(a) < queue(b); });
  if (queue(*slowest) == 0) return {};
  auto& asked = slowest->second.asked;
  std::vector<std::uint32_t> moved;
  if (asked.size() <= window_ / 4 + 1) return moved;
  for (auto rest = idle.has_sent ? asked.size() / 2 : 1; rest > 0; --rest) {
    const std::uint32_t last = std::prev(asked.end())->first;
    if (idle.owed.contains(last)) break;
    asked.erase(last);
    expect_useless(slowest->first, 1);
    ask_for_chunk(now, idle, last);
    moved.push_back(last);
  }
  return moved;
}

void Sources::release_asks(Source& source, PartialObject& object) {
  for (const auto& [index, at] : source.asked) object.give_back(index);
  source.asked.clear();
}

// Its chunks may still come: asking for them again would put a second copy on a slow link. It is asked again
// after it was avoided for a while and nothing came from any source. While asked-for chunks come, even of an
// object that is not wanted now, its link is busy.
void Sources::give_up(Instant now, Source& source, PartialObject& object) {
  for (const auto& [index, at] : source.asked) source.owed.insert(index);
  release_asks(source, object);
  source.given_up_last = now;
  source.avoided_until = now + patience_with(source);
  source.times_given_up = std::min(source.times_given_up + 1, kMostDoublings);
}

void Sources::expect_useless(PeerId from, std::size_t chunks) {
  std::size_t& expected = useless_[from];
  expected = std::min(expected + chunks, kUselessWindows * window_);
}

bool Sources::on_useless_chunk(Instant now, PeerId from) {
  const auto expected = useless_.find(from);
  if (expected == useless_.end() || expected->second == 0) return false;
  --expected->second;
  last_chunk_ = now;
  return true;
}

void Sources::on_chunk(Instant now, PeerId from, std::uint32_t index, bool is_new) {
  Source* const found = find(from);
  TW_CHECK(found != nullptr);
  Source& source = *found;
  const bool asked_for = source.asked.contains(index) || source.owed.contains(index);
  if (!asked_for && !on_useless_chunk(now, from) && !is_new) return;
  last_chunk_ = now;
  source.quiet_since = now;
  source.pieces_then = pieces_;
  source.avoided_until.reset();
  source.owed.erase(index);
  source.has_sent = true;
  source.times_given_up = 0;
  if (const auto asked = source.asked.find(index); asked != source.asked.end()) {
    const Duration took = now - asked->second;
    typical_ = typical_ ? *typical_ + (took - *typical_) / 8 : took;
  }
  if (!is_new) return;
  ++pieces_;
  for (auto& [peer, other] : sources_) {
    if (other.asked.erase(index) > 0 && peer != from) expect_useless(peer, 1);
  }
}

Duration Sources::chunk_patience() const {
  return typical_ ? std::max<Duration>(kLeastChunkPatience, 10 * *typical_) : kFirstChunkPatience;
}

Duration Sources::patience_with(const Source& source) const {
  return chunk_patience() * (1 << source.times_given_up);
}

// A source is not silent while chunks come that others were asked for, even of an unwanted object: all of
// them may wait for this peer's bandwidth.
Instant Sources::given_up_at(const Source& source) const {
  const bool others_send = pieces_ - source.pieces_then >= kWindowsOfOthers * window_;
  const Instant quiet_since = others_send ? source.quiet_since : std::max(source.quiet_since, last_chunk_);
  return quiet_since + patience_with(source);
}

void Sources::give_up_on_quiet(Instant now, PartialObject& object) {
  for (auto& [peer, source] : sources_) {
    if (source.avoided_until && now >= *source.avoided_until) {
      source.avoided_until.reset();
      if (last_chunk_ <= source.given_up_last) {
        expect_useless(peer, source.owed.size());
        source.owed.clear();
      }
    }
    if (source.avoided_until || (source.asked.empty() && source.owed.empty())) continue;
    if (now < given_up_at(source) && !rarely(rarely_, "fetch.timeout")) continue;
    give_up(now, source, object);
  }
}

Instant Sources::next_step() const {
  Instant next = kNever;
  for (const auto& [peer, source] : sources_) {
    if (source.avoided_until) {
      next = std::min(next, *source.avoided_until);
    } else if (!source.asked.empty() || !source.owed.empty()) {
      next = std::min(next, given_up_at(source));
    }
  }
  return next;
}

std::vector<PeerId> Sources::unanswered() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, source] : sources_) {
    if (!source.answered) peers.push_back(peer);
  }
  return peers;
}

std::vector<PeerId> Sources::sending() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, source] : sources_) {
    if (!source.asked.empty()) peers.push_back(peer);
  }
  return peers;
}

std::uint64_t Sources::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [peer, source] : sources_) bytes += source.offer ? source.offer_bytes : 0;
  return bytes;
}

}  // namespace tw::sync
