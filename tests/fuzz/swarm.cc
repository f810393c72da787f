// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm.h"

#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/target.h"
#include "swarm/ballots/quorum.h"
#include "swarm/shares/division.h"
#include "wire/frame.h"

namespace tw::fuzz {
namespace {

using namespace std::chrono_literals;

/// Far above what one call can cause among so few peers; what grows from call to call comes beyond it.
constexpr std::size_t kMostOutputs = 1000;

/// A Swarm whose owner keeps to the contract, and whose peers say anything.
class SwarmStory {
 public:
  explicit SwarmStory(Input& input) : input_(input), swarm_(draw(input, material_), now_) {
    material_.learn(Digest{3, 3});
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 2000; ++steps) {
      now_ += steps_[input_.below(steps_.size())];
      input_.one_in(3) ? owner() : network();
      look();
    }
  }

 private:
  static swarm::Swarm::Options draw(Input& input, const Material& material) {
    swarm::Swarm::Options options{.self = member_of(material.self), .run = Digest{2, 2}};
    options.founder = input.one_in(2);
    options.wait_for = static_cast<std::uint32_t>(1 + input.below(3));
    if (!options.founder) options.bootstrap = {"p2"};
    options.lease = {material.microbatches * material.microbatch - input.below(2), material.microbatch};
    options.averaged = {{material.segments, {1 << 20, 1 << 20}}};
    options.rounds = 3 + input.below(3);
    options.patience = 5s;
    return options;
  }

  void network() {
    const PeerId peer = material_.peers[1 + input_.below(material_.peers.size() - 1)];
    switch (input_.below(16)) {
      case 0:
        if (open_.insert(peer).second) swarm_.on_open(now_, member_of(peer));
        break;
      case 1:
        if (open_.erase(peer) > 0) swarm_.on_close(now_, peer, "closed");
        break;
      case 2:
        swarm_.membership().roster().refused(now_, member_of(peer).address);
        break;
      case 3:
        swarm_.step(now_);
        break;
      default:
        if (!open_.contains(peer)) break;
        const wire::Message message = make_message(input_, material_);
        material_.learn(message);
        swarm_.membership().on_sign_of_life(now_, peer);
        swarm_.on_message(now_, peer, message);
    }
  }

  void owner() {
    switch (input_.below(10)) {
      case 0:
        if (!swarm_.head()) swarm_.fresh(now_, material_.digests[1]);
        break;
      case 1:
        begin();
        break;
      case 2:
        if (to_apply_) swarm_.applied(now_, *std::exchange(to_apply_, std::nullopt), material_.digests[1]);
        break;
      case 3:
        if (planned_)
          swarm_.completed(now_, input_.one_in(8) ? input_.one_of(material_.digests) : material_.mean);
        break;
      case 4:
        swarm_.report_stall(now_, input_.one_of(material_.peers),
                            static_cast<wire::StallCause>(input_.below(7)), {});
        break;
      case 5:
        if (!item_) item_ = swarm_.begin_work(now_, 1 + input_.below(3));
        break;
      case 6:
        end_work();
        break;
      case 7:
        swarm_.set_presence(now_, static_cast<wire::Presence>(input_.below(3)));
        break;
      case 8:
        if (input_.one_in(8)) swarm_.leave(now_);
        break;
      default:
        if (input_.one_in(8)) swarm_.announcing().end_run(now_);
        swarm_.step(now_);
    }
  }

  void end_work() {
    if (!item_) return;
    const swarm::WorkItem item = *std::exchange(item_, std::nullopt);
    if (input_.one_in(4)) return swarm_.give_back(now_, item);
    const std::uint64_t done = input_.below(static_cast<std::uint32_t>(item.microbatches.count()) + 1);
    swarm_.finish_work(now_, item, {done, static_cast<double>(input_.byte())});
  }

  /// The state of others is here.
  void begin() {
    if (!may_begin_ && swarm_.head()) return;
    wire::Record record = swarm::genesis(Digest{2, 2}, material_.digests[1],
                                         {member_of(PeerId{1}), member_of(PeerId{2}), member_of(PeerId{3})});
    if (may_begin_ && input_.one_in(2)) record = input_.one_of(material_.records);
    record.run = Digest{2, 2};
    if (record.members.empty()) record.members = {member_of(PeerId{2})};
    if (swarm_.head() && record.round < swarm_.head()->round) return;
    may_begin_ = false;
    planned_ = false;
    to_apply_.reset();
    swarm_.begin(now_, record, material_.digests[1]);
  }

  void look() {
    for (const swarm::Action& action : take_actions()) {
      if (const auto* hangup = std::get_if<swarm::Hangup>(&action)) open_.erase(hangup->peer);
      if (std::holds_alternative<swarm::CatchUp>(action)) may_begin_ = true;
      if (const auto* call = std::get_if<swarm::Reduce>(&action)) {
        planned_ = true;
        material_.learn(wire::Message(*call->plan));
      }
      if (const auto* committed = std::get_if<swarm::Committed>(&action)) follow(committed->record);
    }
    const wire::Outbox messages = swarm_.outputs().take_messages();
    TW_CHECK(messages.size() <= kMostOutputs);
    for (const wire::Envelope& e : messages) material_.learn(e.message);
    TW_CHECK(swarm_.outputs().take_events().size() <= kMostOutputs);
    material_.head = swarm_.head();
    if (swarm_.head()) material_.learn(*swarm_.head());
    (void)swarm_.view().leader();
    (void)swarm_.waiting();
    (void)swarm_.next_step();
    if (swarm_.head() && swarm_.head()->last) (void)swarm_.view().not_at_the_end();
    for (const PeerId peer : material_.peers)
      TW_CHECK(swarm_.view().membership.round_trip(peer) >= Duration{});
  }

  std::vector<swarm::Action> take_actions() {
    std::vector<swarm::Action> actions = swarm_.outputs().take_actions();
    TW_CHECK(actions.size() <= kMostOutputs);
    return actions;
  }

  /// Decisions follow each other.
  void follow(const wire::Record& record) {
    TW_CHECK(planned_ && swarm_.head() && *swarm_.head() == record);
    if (material_.head) {
      TW_CHECK(record.round == material_.head->round + 1);
      TW_CHECK(record.parent == digest_of(*material_.head));
    }
    planned_ = false;
    to_apply_ = record.round;
  }

  static constexpr std::array<Duration, 6> steps_ = {0ms, 0ms, 10ms, 300ms, 2500ms, 6s};

  Input& input_;
  Material material_;
  Instant now_ = Instant{} + 1h;
  swarm::Swarm swarm_;
  std::set<PeerId> open_;
  bool may_begin_ = false;
  bool planned_ = false;
  std::optional<Round> to_apply_;
  std::optional<swarm::WorkItem> item_;
};

}  // namespace

void swarm(Input& input) { SwarmStory(input).run(); }

}  // namespace tw::fuzz
