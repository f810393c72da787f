// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/reduction.h"

#include <cmath>
#include <set>
#include <vector>

#include "average/reduction/mean_digest.h"
#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

class ReductionStory {
 public:
  explicit ReductionStory(Input& input) : input_(input), options_(draw(input)), reduction_(options_) {
    const average::Geometry& geometry = options_.geometry;
    material_.head = wire::Record{};
    material_.segments = geometry.segments();
    for (const codec::Codec codec : {options_.codec, codec_of_mean(options_.codec)}) {
      for (const std::uint64_t values : {geometry.segment_length, geometry.size(geometry.segments() - 1)})
        material_.payloads.push_back(encoded_bytes(codec, values));
    }
    gradient_.assign(geometry.length, static_cast<float>(input.below(9)));
    if (input.one_in(8)) gradient_[input.below(gradient_.size())] = std::nanf("");
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 2000; ++steps) {
      act();
      look();
    }
  }

 private:
  static average::Reduction::Options draw(Input& input) {
    average::Reduction::Options options{.self = PeerId{1}, .step = {1}};
    options.geometry.length = 1 + input.below(20);
    options.geometry.segment_length = 1 + input.below(6);
    options.codec = codec::kCodecs[input.below(codec::kCodecs.size())];
    options.norm_cap = input.one_in(3) ? 8 : 0;
    options.threads = input.one_in(4) ? 2 : 1;
    return options;
  }

  void act() {
    const PeerId peer = input_.one_of(material_.peers);
    switch (input_.below(8)) {
      case 0: {
        const wire::Plan plan = make_plan(input_, material_);
        material_.learn(wire::Message(plan));
        const auto before = reduction_.plan();
        if (!reduction_.adopt(swarm::shared_plan(plan))) TW_CHECK(reduction_.plan() == before);
        break;
      }
      case 1: {
        const auto slot = static_cast<std::uint32_t>(input_.below(3));
        if (given_.insert(slot).second) reduction_.contribute(slot, {gradient_}, 2 * (1 + input_.below(6)));
        break;
      }
      case 2:
        reduction_.on_new_link(peer);
        break;
      case 3:
        for (std::uint64_t n = input_.below(8); n > 0; --n) pull(peer);
        break;
      default:
        take(peer);
    }
  }

  void pull(PeerId peer) {
    const std::optional<wire::Message> message = reduction_.next_bulk(peer);
    if (!message) return;
    TW_CHECK(peer != options_.self);
    const auto* scatter = std::get_if<wire::Scatter>(&*message);
    const Blob& payload = scatter != nullptr ? scatter->payload : std::get<wire::Gather>(*message).payload;
    const codec::Codec codec = scatter != nullptr ? options_.codec : codec_of_mean(options_.codec);
    std::vector<float> values(values_in(codec, payload.size()));
    TW_CHECK(!values.empty() && decode(codec, payload.bytes(), values));
  }

  void take(PeerId peer) {
    const wire::Message message = make_message(input_, material_);
    if (const auto* scatter = std::get_if<wire::Scatter>(&message))
      (void)reduction_.on_scatter(peer, *scatter);
    if (const auto* gather = std::get_if<wire::Gather>(&message)) (void)reduction_.on_gather(peer, *gather);
  }

  void look() {
    TW_CHECK(reduction_.take_unfit().size() <= 300);
    TW_CHECK(reduction_.take_wakeups().size() <= 300);
    for (const auto& [peer, what] : reduction_.owing()) TW_CHECK(peer != options_.self);
    (void)reduction_.scattered();
    if (!reduction_.complete()) return;
    std::vector<float> mean(options_.geometry.length);
    std::uint64_t segment = 0;
    for (const Blob& encoded : reduction_.mean().segments()) {
      const auto part =
          std::span(mean).subspan(options_.geometry.first(segment), options_.geometry.size(segment));
      TW_CHECK(decode(codec_of_mean(options_.codec), encoded.bytes(), part));
      ++segment;
    }
    TW_CHECK(digest_of_mean(mean, options_.geometry) == reduction_.mean().digest());
  }

  Input& input_;
  average::Reduction::Options options_;
  average::Reduction reduction_;
  Material material_;
  std::vector<float> gradient_;
  std::set<std::uint32_t> given_;
};

}  // namespace

void reduction(Input& input) { ReductionStory(input).run(); }

}  // namespace tw::fuzz
