// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/input.h"
#include "wire/messages.h"

namespace tw::fuzz {

/// Values from which messages are made, so that they often fit what the receiver expects: what it sent or
/// was sent before, and a few others.
struct Material {
  PeerId self{1};
  std::vector<PeerId> peers{PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}};
  std::vector<Digest> digests{{}, {1, 1}, {2, 2}};  ///< the second one: of the parameters
  Digest mean{2, 2};                                ///< of the round under way
  std::vector<wire::Record> records{wire::Record{}};
  std::vector<wire::Plan> plans{wire::Plan{}};
  std::optional<wire::Record> head;
  std::uint64_t segments = 4;
  std::uint64_t microbatches = 6;
  std::uint64_t microbatch = 2;                 ///< samples
  std::vector<std::size_t> payloads{0, 8, 16};  ///< bytes

  /// Keeps records, plans and digests of a message; few, the newest.
  void learn(const wire::Message& message);
  void learn(const Digest& digest);
  void learn(const wire::Record& record);

  Round round() const { return head ? head->round + 1 : 0; }
};

wire::Member member_of(PeerId peer);

/// A message of any type; values mostly from the material, sometimes anything.
wire::Message make_message(Input& input, const Material& material);

/// A plan for the round after the head that a leader might make, or nearly so.
wire::Plan make_plan(Input& input, const Material& material);
wire::Record make_record(Input& input, const Material& material);
Blob make_payload(Input& input, const Material& material);

}  // namespace tw::fuzz
