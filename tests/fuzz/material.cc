// SPDX-License-Identifier: Apache-2.0
#include "fuzz/material.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "swarm/shares/shares.h"
#include "swarm/shares/sites.h"
#include "wire/frame.h"

namespace tw::fuzz {
namespace {

constexpr std::size_t kKept = 6;

template <class T>
void keep(std::vector<T>& values, T value) {
  if (!values.empty() && values.back() == value) return;
  values.push_back(std::move(value));
  if (values.size() > kKept) values.erase(values.begin());
}

/// Fills the fields of a message.
class Maker {
 public:
  Maker(Input& input, const Material& material) : input_(input), material_(material) {}

  void operator()(auto&... fields) { (fill(fields), ...); }

  template <std::size_t N>
  void operator()(const char (&)[N], auto& field) {
    fill(field);
  }

 private:
  void fill(std::uint64_t& value) { value = input_.one_in(3) ? material_.round() : input_.number(); }

  void fill(std::uint32_t& value) {
    value = static_cast<std::uint32_t>(input_.one_in(4) ? input_.number() : input_.below(4));
  }

  void fill(bool& value) { value = input_.one_in(2); }

  void fill(double& value) {
    static constexpr std::array kSpeeds = {0.0, 1.0, 50.0, -1.0, 1e300, 1e-300};
    value = input_.one_in(16) ? std::nan("") : kSpeeds[input_.below(kSpeeds.size())];
  }

  void fill(wire::Marks& marks) { marks = {input_.below(2) == 1, input_.below(2) == 1}; }

  void fill(wire::Outlook& value) { value = static_cast<wire::Outlook>(input_.below(3)); }

  void fill(wire::Presence& value) { value = static_cast<wire::Presence>(input_.below(3)); }

  void fill(wire::PeerState& value) { value = static_cast<wire::PeerState>(input_.below(5)); }

  void fill(wire::StallCause& value) { value = static_cast<wire::StallCause>(input_.below(9)); }

  void fill(wire::Doing& value) { value = static_cast<wire::Doing>(input_.below(8)); }

  void fill(wire::ObjectKind& value) { value = static_cast<wire::ObjectKind>(input_.below(2)); }

  void fill(Digest& digest) { digest = input_.one_of(material_.digests); }

  void fill(PeerId& peer) {
    peer = input_.one_in(16) ? PeerId{input_.number()} : input_.one_of(material_.peers);
  }

  void fill(StepId& step) {
    fill(step.round);
    step.after = input_.one_of(material_.digests).high;
  }

  void fill(wire::Member& m) {
    fill(m.peer);
    m = member_of(m.peer);
  }

  void fill(std::string& text) { text = "p" + std::to_string(input_.below(6)); }

  void fill(RangeSet& set) {
    for (std::uint64_t n = input_.below(4); n > 0; --n) {
      const std::uint64_t first = input_.one_in(8) ? input_.number() : input_.below(material_.microbatches);
      const std::uint64_t count = input_.one_in(8) ? input_.number() : 1 + input_.below(3);
      if (first <= UINT64_MAX - count) set.add(Range{first, count});
    }
  }

  void fill(wire::Record& record) { record = make_record(input_, material_); }

  void fill(wire::Plan& plan) { plan = make_plan(input_, material_); }

  template <class T>
  void fill(std::vector<T>& items) {
    items.resize(input_.one_in(16) ? input_.byte() : input_.below(4));
    for (T& item : items) fill(item);
  }

  template <class T>
  void fill(std::optional<T>& item) {
    if (input_.one_in(2)) fill(item.emplace());
  }

  template <class T>

  requires requires(T& t, Maker& m) { T::fields(t, m); }

  void fill(T& message) { T::fields(message, *this); }

  Input& input_;
  const Material& material_;
};

/// Each with three chances in four, so that all of them often fit.
class Fitting {
 public:
  Fitting(Input& input, const Material& material) : input_(input), material_(material) {}

  void operator()(wire::Message& message) {
    std::visit([&](auto& m) { fit(m); }, message);
  }

 private:
  template <class T>
  void set(T& field, T value) {
    if (!input_.one_in(4)) field = std::move(value);
  }

  void fit(wire::Progress& m) {
    set(m.round, material_.round());
    set(m.ballot, Ballot{0});
    if (material_.head) set(m.parameters, material_.digests[1]);
  }

  void fit(wire::Lease& m) {
    set(m.round, material_.round());
    set(m.ballot, material_.plans.back().ballot);
  }

  void fit(wire::Recall& m) { set(m.round, material_.round()); }

  void fit(wire::Vote& m) {
    const wire::Plan& plan = material_.plans.back();
    set(m.step, plan.step());
    set(m.ballot, plan.ballot);
    set(m.version, plan.version);
    set(m.mean, material_.mean);
  }

  void fit(wire::Promise& m) {
    fit(m.progress);
    if (m.plan) m.plan = material_.plans.back();
    if (m.accepted) set(m.accepted->plan, material_.plans.back());
  }

  void fit(wire::Commit& m) {
    if (input_.one_in(2)) return;
    m.record = material_.plans.back().draft;
    set(m.record.mean, material_.mean);
  }

  void fit(wire::StallReport& m) { set(m.step.round, material_.round()); }

  void fit(wire::Failures& m) { set(m.round, material_.round()); }

  void fit(wire::Stop& m) { set(m.round, material_.round()); }

  void fit(wire::AskCheckpoint& m) {
    if (material_.head) set(m.resume, digest_of(*material_.head));
  }

  void fit(wire::HeldCheckpoint& m) {
    if (m.record && material_.head) set(m.record->run, material_.head->run);
  }

  void fit(wire::Scatter& m) {
    set(m.step.round, material_.round());
    set(m.segment, std::uint64_t{input_.below(material_.segments)});
    m.payload = make_payload(input_, material_);
  }

  void fit(wire::Gather& m) {
    set(m.step.round, material_.round());
    set(m.set, contribution_set(material_.plans.back().draft));
    set(m.segment, std::uint64_t{input_.below(material_.segments)});
    m.payload = make_payload(input_, material_);
  }

  void fit(wire::Chunk& m) { m.payload = make_payload(input_, material_); }

  void fit(wire::Heartbeat& m) {
    if (!material_.head || input_.one_in(3)) return;
    m.head = material_.head->round;
    m.head_record = digest_of(*material_.head);
  }

  void fit(auto&) {}

  Input& input_;
  const Material& material_;
};

template <std::size_t... I>
wire::Message blank(std::size_t type, std::index_sequence<I...>) {
  wire::Message message;
  ((type == I ? void(message.emplace<I>()) : void()), ...);
  return message;
}

}  // namespace

void Material::learn(const Digest& digest) {
  digests.push_back(digest);
  if (digests.size() > kKept) digests.erase(digests.begin() + 2);
}

void Material::learn(const wire::Record& record) {
  keep(records, record);
  learn(digest_of(record));
}

void Material::learn(const wire::Message& message) {
  if (const auto* plan = std::get_if<wire::Plan>(&message)) keep(plans, *plan);
  if (const auto* commit = std::get_if<wire::Commit>(&message)) learn(commit->record);
  if (const auto* vote = std::get_if<wire::Vote>(&message)) mean = vote->mean;
}

wire::Member member_of(PeerId peer) { return {peer, "p" + std::to_string(peer.value)}; }

Blob make_payload(Input& input, const Material& material) {
  std::vector<std::byte> bytes(input.one_in(16) ? input.byte() : input.one_of(material.payloads));
  const std::uint8_t style = input.byte();
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const float value = style < 200 ? static_cast<float>(style % 7) : static_cast<float>(input.byte());
    std::memcpy(&bytes[i], &value, sizeof value);
  }
  if (style >= 240) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(input.byte());
  }
  return Blob(std::move(bytes));
}

wire::Record make_record(Input& input, const Material& material) {
  wire::Record record = input.one_of(material.records);
  if (input.one_in(2)) record = material.plans[input.below(material.plans.size())].draft;
  if (input.one_in(2)) return record;
  Maker make(input, material);
  switch (input.below(8)) {
    case 0:
      make(record.run);
      break;
    case 1:
      make(record.round);
      break;
    case 2:
      make(record.parent);
      break;
    case 3:
      make(record.members);
      std::ranges::sort(record.members, {}, &wire::Member::peer);  // each id once, or no decoder takes it
      record.members.erase(
          std::unique(record.members.begin(), record.members.end(),  // clang 14 cannot compile that of ranges
                      [](const wire::Member& a, const wire::Member& b) { return a.peer == b.peer; }),
          record.members.end());
      break;
    case 4:
      make(record.contributors);
      break;
    case 5:
      make(record.first_sample, record.samples);
      record.first_sample = std::min(record.first_sample, UINT64_MAX / 2);  // or no decoder takes it
      record.samples = std::min(record.samples, UINT64_MAX / 2);
      make(record.majority_samples, record.awaited);
      record.majority_samples = std::min(record.majority_samples, record.samples);
      break;
    case 6:
      make(record.parameters, record.mean);
      break;
    default:
      make(record.minority, record.last);
  }
  return record;
}

wire::Plan make_plan(Input& input, const Material& material) {
  if (!material.head || input.one_in(4)) {
    wire::Plan plan = input.one_of(material.plans);
    Maker make(input, material);
    switch (input.below(5)) {
      case 0:
        make(plan.ballot, plan.version);
        break;
      case 1:
        make(plan.shares);
        break;
      case 2:
        make(plan.participants);
        break;
      case 3:
        make(plan.sites);
        break;
      default:
        make(plan.draft.contributors);
    }
    return plan;
  }
  const wire::Record& head = *material.head;
  wire::Plan plan;
  plan.ballot = static_cast<Ballot>(input.below(6));
  plan.version = static_cast<std::uint32_t>(input.below(4));
  plan.draft = head;
  plan.draft.round = head.round + 1;
  plan.draft.parent = digest_of(head);
  plan.draft.first_sample = head.samples_total();
  plan.draft.samples = material.microbatches * material.microbatch;
  plan.draft.parameters = material.digests[1];
  plan.draft.contributors.clear();
  const std::uint64_t parts = 1 + input.below(material.peers.size());
  for (std::uint64_t i = 0; i < parts; ++i) {
    const std::uint64_t first = material.microbatches * i / parts;
    const std::uint64_t count = material.microbatches * (i + 1) / parts - first;
    if (count == 0) continue;
    plan.draft.contributors.push_back({material.peers[i], static_cast<std::uint32_t>(input.below(2)),
                                       count * material.microbatch, RangeSet(Range{first, count})});
    plan.participants.push_back(material.peers[i]);
  }
  plan.shares = swarm::equal_shares(material.segments, plan.participants);
  if (input.one_in(2)) {
    std::vector<swarm::Participant> participants;
    for (const PeerId peer : plan.participants) {
      participants.push_back(
          {.peer = peer, .site = input.one_in(4) ? "" : std::string(1 + input.below(2), 's')});
    }
    swarm::divide_into_sites(plan, material.segments, participants);
  }
  return plan;
}

wire::Message make_message(Input& input, const Material& material) {
  constexpr std::size_t kTypes = std::variant_size_v<wire::Message>;
  wire::Message message = blank(input.below(kTypes), std::make_index_sequence<kTypes>{});
  Maker make(input, material);
  std::visit([&]<class T>(T& m) { T::fields(m, make); }, message);
  Fitting fit(input, material);
  fit(message);
  return message;
}

}  // namespace tw::fuzz
