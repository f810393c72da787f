// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/target.h"
#include "wire/frame.h"

namespace tw::fuzz {
namespace {

bool same(const Blob& a, const Blob& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

/// Not-a-number differs from itself, so encodings are compared.
void comes_back(const Frame& frame) {
  const Result<wire::Message> message = wire::decode(frame);
  if (!message) return;
  const Frame again = encode(message.value());
  TW_CHECK(same(frame.head, again.head) && same(frame.payload, again.payload));
  TW_CHECK(std::strlen(name_of(message.value())) > 0);
}

}  // namespace

void wire(Input& input) {
  if (input.one_in(2)) {
    const wire::Message message = make_message(input, Material{});
    const Frame frame = encode(message);
    const Result<wire::Message> back = wire::decode(frame);
    TW_CHECK(back.ok() && back.value().index() == message.index());
    return comes_back(frame);
  }
  const std::size_t payload = input.one_in(4) ? input.byte() : 0;
  const Blob bulk(input.bytes(payload));
  comes_back({Blob(input.bytes(input.rest().size())), bulk});
}

}  // namespace tw::fuzz
