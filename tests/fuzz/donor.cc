// SPDX-License-Identifier: Apache-2.0
#include "sync/donor.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/target.h"
#include "sync/test_state.h"

namespace tw::fuzz {
namespace {

class DonorStory {
 public:
  explicit DonorStory(Input& input) : input_(input), history_(sync::sample::history(1, 20)) {
    material_.records = history_;
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 2000; ++steps) {
      act();
      TW_CHECK(donor_.take_messages().size() <= 100);
      TW_CHECK(donor_.take_wakeups().size() <= 100);
    }
  }

 private:
  void act() {
    const PeerId peer = input_.one_of(material_.peers);
    switch (input_.below(10)) {
      case 0:
        return donor_.on_done(peer);
      case 1:
        return donor_.on_close(peer);
      case 2:
        return commit();
      case 3:
        return give();
      case 4:
      case 5:
        return pull(peer);
      case 6: {
        const wire::ObjectId object{static_cast<wire::ObjectKind>(input_.below(2)), input_.below(head_ + 3)};
        return donor_.on_ask(peer, {object}, input_.one_in(8) ? nullptr : &history_[head_]);
      }
      default: {
        const wire::ObjectId object{static_cast<wire::ObjectKind>(input_.below(2)), input_.below(head_ + 3)};
        return donor_.on_chunk_ask(peer, {object, static_cast<std::uint32_t>(input_.number())});
      }
    }
  }

  void commit() {
    if (head_ + 1 == history_.size()) return;
    ++head_;
    donor_.keep_mean(history_[head_], sync::sample::segments(1, head_));
  }

  void give() {
    if (donor_.wants_image())  // owners: the donor
      donor_.give(std::make_shared<const sync::StateImage>(
          sync::sample::image(history_[head_ - input_.below(head_ + 1)])));
  }

  /// Nothing but chunks of what is.
  void pull(PeerId peer) {
    const std::optional<wire::Message> message = donor_.next_bulk(peer);
    if (!message) return;
    const wire::Chunk& chunk = std::get<wire::Chunk>(*message);
    const bool state = chunk.object.kind == wire::ObjectKind::state;
    const std::vector<Blob> chunks = state ? sync::sample::image(history_.at(chunk.object.round)).chunks
                                           : sync::sample::segments(1, chunk.object.round);
    TW_CHECK(std::ranges::equal(chunks.at(chunk.index).bytes(), chunk.payload.bytes()));
  }

  Input& input_;
  std::vector<wire::Record> history_;
  Material material_;
  sync::Donor donor_;
  std::size_t head_ = 0;
};

}  // namespace

void donor(Input& input) { DonorStory(input).run(); }

}  // namespace tw::fuzz
