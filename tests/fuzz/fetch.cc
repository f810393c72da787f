// SPDX-License-Identifier: Apache-2.0
#include "sync/fetch.h"

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/target.h"
#include "sync/test_state.h"
#include "wire/frame.h"

namespace tw::fuzz {
namespace {

using namespace std::chrono_literals;

class FetchStory {
 public:
  explicit FetchStory(Input& input)
      : input_(input),
        options_{sync::sample::kRun,
                 {sync::sample::kStateBytes, sync::sample::kChunkBytes},
                 {{sync::sample::kMeanBytes, sync::sample::kSegmentBytes}}},
        fetch_(options_),
        history_(sync::sample::history(1, 3)) {
    options_.window = 4;
    fetch_ = sync::Fetch(options_);
    material_.payloads = {sync::sample::kChunkBytes, sync::sample::kSegmentBytes, 16, 4};
    material_.records = history_;
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 2000; ++steps) {
      now_ += steps_[input_.below(steps_.size())];
      act();
      look();
    }
  }

 private:
  void act() {
    switch (input_.below(12)) {
      case 0:
        return fetch_.want_state(now_, some_peers());
      case 1:
        return fetch_.want_mean(now_, history_[input_.below(3)], some_peers());
      case 2:
        return fetch_.set_sources(now_, some_peers());
      case 3:
        return fetch_.step(now_);
      case 4:
        if (input_.one_in(8)) fetch_.finish();
        return;
      case 5:
      case 6:
      case 7:
      case 8:
        return answer_what_was_asked();
      default:
        return input_.one_in(3) ? hear() : answer();
    }
  }

  std::vector<PeerId> some_peers() {
    std::vector<PeerId> peers;
    for (const PeerId peer : material_.peers) {
      if (!input_.one_in(4)) peers.push_back(peer);
    }
    return peers;
  }

  /// Anything.
  void hear() {
    const PeerId from = input_.one_of(material_.peers);
    const wire::Message message = make_message(input_, material_);
    if (const auto* offer = std::get_if<wire::ObjectOffer>(&message)) fetch_.on_offer(now_, from, *offer);
    if (const auto* gone = std::get_if<wire::ObjectGone>(&message)) fetch_.on_gone(now_, from, *gone);
    if (const auto* chunk = std::get_if<wire::Chunk>(&message)) fetch_.on_chunk(now_, from, *chunk);
  }

  void answer_what_was_asked() {
    if (asked_.empty()) return;
    const wire::Envelope envelope = asked_.front();
    asked_.pop_front();
    if (const auto* ask = std::get_if<wire::ObjectAsk>(&envelope.message)) {
      const bool state = ask->object.kind == wire::ObjectKind::state;
      answer(envelope.to, {ask->object.kind, state ? 3 : ask->object.round}, {});
    } else if (const auto* chunk = std::get_if<wire::ChunkAsk>(&envelope.message)) {
      answer(envelope.to, chunk->object, chunk->index);
    }
  }

  void answer() {
    const wire::ObjectId object{static_cast<wire::ObjectKind>(input_.below(2)), 1 + input_.below(3)};
    const auto index = static_cast<std::uint32_t>(input_.below(8));
    answer(input_.one_of(material_.peers), object, input_.one_in(4) ? std::nullopt : std::optional(index));
  }

  /// What an honest donor would say, or nearly so: a chunk, or an offer.
  void answer(PeerId from, wire::ObjectId object, std::optional<std::uint32_t> index) {
    if (object.round < 1 || object.round > 3) return;
    const bool state = object.kind == wire::ObjectKind::state;
    const wire::Record& record = history_[object.round];
    const std::vector<Blob> chunks =
        state ? sync::sample::image(record).chunks : sync::sample::segments(1, object.round);
    if (!index) {
      wire::ObjectOffer offer{object, record, state ? sync::sample::image(record).parameters : record.mean,
                              state ? sync::sample::kStateBytes : sync::sample::kMeanBytes};
      for (const Blob& chunk : chunks) offer.chunks.push_back(digest_of(chunk.bytes()));
      if (input_.one_in(8)) offer.chunks.pop_back();
      if (input_.one_in(8)) offer.content = input_.one_of(material_.digests);
      return fetch_.on_offer(now_, from, std::move(offer));
    }
    wire::Chunk chunk{object, *index, chunks[*index % chunks.size()]};
    if (input_.one_in(8)) chunk.payload = make_payload(input_, material_);
    fetch_.on_chunk(now_, from, std::move(chunk));
  }

  void look() {
    const wire::Outbox messages = fetch_.take_messages();
    TW_CHECK(messages.size() <= 500);
    asked_.insert(asked_.end(), messages.begin(), messages.end());
    while (asked_.size() > 64) asked_.pop_front();
    TW_CHECK(fetch_.take_refusals().size() <= 100);
    TW_CHECK(fetch_.progress().done <= fetch_.progress().total);
    (void)fetch_.waiting_for();
    (void)fetch_.next_step();
    (void)fetch_.gone();
    if (const auto image = fetch_.take_state()) judge(image->chunks, image->digests, options_.state);
    if (const auto mean = fetch_.take_mean()) judge(mean->segments, {}, options_.means.front());
  }

  static void judge(const std::vector<Blob>& chunks, const std::vector<Digest>& digests,
                    const sync::ChunkLayout& layout) {
    TW_CHECK(chunks.size() == layout.count());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      TW_CHECK(chunks[i].size() == layout.size(i));
      TW_CHECK(digests.empty() || digest_of(chunks[i].bytes()) == digests.at(i));
    }
  }

  static constexpr std::array<Duration, 5> steps_ = {0ms, 1ms, 100ms, 700ms, 5s};

  Input& input_;
  sync::Fetch::Options options_;
  sync::Fetch fetch_;
  std::vector<wire::Record> history_;
  Material material_;
  std::deque<wire::Envelope> asked_;
  Instant now_ = Instant{} + 1h;
};

}  // namespace

void fetch(Input& input) { FetchStory(input).run(); }

}  // namespace tw::fuzz
