// SPDX-License-Identifier: Apache-2.0
#include "train/learn/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "average/reduction/mean_digest.h"
#include "average/reduction/reference.h"
#include "average/reduction/weighted_sum.h"
#include "base/parallel.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace tw::train {
namespace {

using codec::Codec;

constexpr std::uint64_t kLength = 5;
constexpr average::Geometry kGeometry{.length = kLength, .segment_length = 3};

/// Its gradient of sample i is i + 0.1 in the first place, a tenth of that in the next one, and so on.
class Tenths final : public Model {
 public:
  std::vector<std::uint64_t> tensor_sizes() const override { return {kLength}; }

  void initial_parameters(std::span<float> out) override { std::fill(out.begin(), out.end(), 1.0F); }

  WorkDone work(std::span<const float>, const swarm::WorkItem& item, std::span<float> sum) override {
    for (const Range& range : item.samples.ranges()) {
      for (std::uint64_t i = range.first; i < range.end(); ++i) {
        float value = static_cast<float>(i) + 0.1F;
        for (float& place : sum) place += std::exchange(value, value / 10);
      }
    }
    return {};
  }
};

RunOptions options(Codec codec) {
  RunOptions run;
  run.batch.size = 8;
  run.microbatch = 4;
  run.codec = codec;
  run.mode.digest_every = 1;
  return run;
}

struct Peer {
  explicit Peer(const RunOptions& run) : state(model, run, kGeometry) { state.initialise(); }

  /// Returns the gradient sum.
  std::vector<float> work(Round round, std::uint32_t slot, std::uint64_t microbatch) {
    state.work(
        {.round = round, .slot = slot, .samples = RangeSet(Range{(round - 1) * 8 + microbatch * 4, 4})});
    return *state.slot(round, slot).sum;
  }

  std::vector<float> carried(std::uint32_t slot = ErrorFeedback::kCarrier) const {
    const auto values = state.feedback().carried(1, slot);
    return {values.begin(), values.end()};
  }

  void commit(const std::vector<wire::Contribution>& own, Round round = 1) {
    state.owe_losses(round, own);
    state.feedback().settle();
  }

  Tenths model;
  TrainState state;
};

wire::Contribution of_slot(std::uint32_t slot) { return {PeerId{1}, slot, 4, {}}; }

std::vector<float> sum_of(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

const std::vector<float> kNothing(kLength);

TEST(GradientSlot, leaves_to_messages_that_are_under_way_what_they_refer_to) {
  Peer peer(options(Codec::fp32));
  const std::vector<float> first = peer.work(1, 0, 0);
  auto under_way = peer.state.slot(1, 0).sum;  // owners: the slot, and this test as a message
  peer.work(2, 0, 1);
  EXPECT_NE(peer.state.slot(2, 0).sum, under_way);
  EXPECT_EQ(*under_way, first);
  const void* before = peer.state.slot(2, 0).sum->data();
  peer.work(3, 0, 0);
  EXPECT_EQ(peer.state.slot(3, 0).sum->data(), before) << "nobody else has it";
}

TEST(Freezing, beside_work_gives_the_state_of_that_version_or_nothing) {
  Peer peer(options(Codec::fp32));
  const std::uint64_t version = peer.state.version();
  peer.work(1, 0, 0);
  const auto beside = peer.state.freeze(wire::Record{}, 64, version);
  ASSERT_TRUE(beside) << "gradients leave the state as it is";
  EXPECT_EQ(beside->digests, peer.state.freeze(wire::Record{}, 64).digests);
  peer.state.initialise();
  EXPECT_FALSE(peer.state.freeze(wire::Record{}, 64, version));
  const std::uint64_t updated = peer.state.version();
  EXPECT_TRUE(peer.state.freeze(wire::Record{}, 64, updated));
  ASSERT_TRUE(peer.state.restore(*beside).ok());
  EXPECT_FALSE(peer.state.freeze(wire::Record{}, 64, updated));
}

TEST(Freezing, beside_a_busy_program_gives_what_it_has_written_out_since_the_last_update) {
  Tenths model;
  RunOptions run;
  int written = 0;
  TrainState state(model, run, kGeometry, nullptr, {.about_to_copy = [&] { ++written; }});
  state.initialise();
  EXPECT_FALSE(state.copies_beside());
  EXPECT_FALSE(state.freeze({}, 64, state.version()).has_value());
  state.write_out();
  EXPECT_TRUE(state.copies_beside());
  EXPECT_TRUE(state.freeze({}, 64, state.version()).has_value());
  EXPECT_EQ(1, written) << "no copy beside calls the program";
  state.initialise();
  EXPECT_FALSE(state.copies_beside()) << "another state";
  state.write_out();
  state.write_again();
  EXPECT_FALSE(state.copies_beside()) << "the program is back";
}

TEST(ForgottenSums, leave_the_program_the_parameters_that_it_has) {
  Tenths model;
  float mine = 0;  // a program's own parameter, newer than its vector
  std::vector<float> loaded;
  TrainState* made = nullptr;
  TrainState state(model, options(Codec::fp32), kGeometry, nullptr,
                   {.changed = [&](Round, bool) { loaded.push_back(made ? made->parameters()[0] : 0); },
                    .about_to_copy = [&] { made->parts().front()[0] = mine; }});
  state.initialise();
  made = &state;
  mine = 7;
  state.begin_anew(3);
  EXPECT_EQ(loaded, (std::vector<float>{0, 7}));
}

TEST(Freezing, beside_a_busy_program_gives_no_other_values_than_those_of_the_run) {
  Tenths model;
  TrainState state(model, options(Codec::fp32), kGeometry, nullptr, {.about_to_copy = [] {}});
  state.initialise();
  state.write_out();
  float& value = state.parts().front()[0];
  value += 1;  // as with averaged ones, to evaluate
  EXPECT_FALSE(state.freeze({}, 64, state.version()).has_value());
  EXPECT_FALSE(state.copies_beside()) << "until the program is back";
  value -= 1;
  state.write_out();
  EXPECT_TRUE(state.freeze({}, 64, state.version()).has_value());
}

TEST(ErrorFeedback, carries_what_rounding_took_into_the_next_round) {
  Peer peer(options(Codec::int4));
  EXPECT_EQ(peer.carried(), kNothing);
  const std::vector<float> one = peer.work(1, 0, 0);
  peer.commit({of_slot(0)});
  const std::vector<float> lost = reference_loss(Codec::int4, {4, one}, kGeometry);
  EXPECT_NE(lost, kNothing);
  EXPECT_EQ(peer.carried(), lost);

  const std::vector<float> two = sum_of(peer.work(2, 0, 1), lost);
  peer.commit({of_slot(0)});
  EXPECT_EQ(peer.carried(), reference_loss(Codec::int4, {4, two}, kGeometry));
}

TEST(ErrorFeedback, survives_a_round_that_goes_without_the_contribution_that_carried_it) {
  Peer peer(options(Codec::int8));
  const std::vector<float> one = peer.work(1, 0, 0);
  peer.commit({of_slot(0)});
  const std::vector<float> lost = peer.carried();
  EXPECT_NE(lost, kNothing);
  peer.work(2, 0, 0);
  peer.commit({});
  EXPECT_EQ(peer.carried(), lost) << "nothing of it was applied";

  peer.work(3, 0, 0);
  const std::vector<float> other = peer.work(3, 1, 1);
  peer.commit({of_slot(1)});
  EXPECT_EQ(peer.carried(), sum_of(lost, reference_loss(Codec::int8, {4, other}, kGeometry)));
}

TEST(ErrorFeedback, takes_the_loss_of_every_slot_whatever_their_order) {
  Peer peer(options(Codec::int4)), reversed(options(Codec::int4));
  for (Peer* p : {&peer, &reversed}) {
    p->work(1, 0, 0);
    p->commit({of_slot(0)});
    p->work(2, 0, 0);
    p->work(2, 1, 1);
  }
  peer.commit({of_slot(0), of_slot(1)});
  reversed.commit({of_slot(1), of_slot(0)});
  EXPECT_EQ(peer.carried(), reversed.carried());
  EXPECT_EQ(peer.carried(1), std::vector<float>()) << "one slot carries it";
}

TEST(ErrorFeedback, knows_what_chance_took) {
  RunOptions run = options(Codec::int8);
  run.rounding = Rounding::stochastic;
  Peer peer(run);
  const std::vector<float> sum = peer.work(3, 0, 0);
  peer.commit({of_slot(0)}, 3);
  const std::uint32_t seed = average::dither_seed(3, PeerId{1}, 0);
  EXPECT_EQ(peer.carried(), reference_loss(Codec::int8, {4, sum, 0, seed}, kGeometry));
  EXPECT_NE(peer.carried(), reference_loss(Codec::int8, {4, sum}, kGeometry));
}

TEST(ErrorFeedback, ends_when_the_state_of_others_is_taken) {
  Peer peer(options(Codec::int4));
  peer.work(1, 0, 0);
  peer.commit({of_slot(0)});
  EXPECT_NE(peer.carried(), kNothing);
  ASSERT_TRUE(peer.state.restore(peer.state.freeze(wire::Record{}, 64)).ok());
  EXPECT_EQ(peer.carried(), kNothing);

  peer.work(1, 0, 0);
  peer.commit({of_slot(0)});
  std::vector<Blob> mean;
  for (std::uint64_t s = 0; s < kGeometry.segments(); ++s)
    mean.emplace_back(std::vector<std::byte>(encoded_bytes(Codec::int8, kGeometry.size(s))));
  wire::Record record;
  record.round = 1;
  record.mean = digest_of_mean(kNothing, kGeometry);
  ASSERT_TRUE(peer.state.apply_missed(record, mean).ok());
  EXPECT_EQ(peer.carried(), kNothing) << "a round that it missed";
}

TEST(ErrorFeedback, is_there_where_the_run_has_it) {
  RunOptions run = options(Codec::fp16);
  EXPECT_EQ(Peer(run).carried(), std::vector<float>());
  run.error_feedback = true;
  EXPECT_EQ(Peer(run).carried(), kNothing);
  run = options(Codec::int4);
  run.error_feedback = false;
  EXPECT_EQ(Peer(run).carried(), std::vector<float>());
  EXPECT_TRUE(options(Codec::int8).feeds_back());
}

/// A mean in fp32 as it crosses the wire.
std::vector<Blob> segments_of(const std::vector<float>& mean) {
  std::vector<Blob> segments;
  for (std::uint64_t s = 0; s < kGeometry.segments(); ++s) {
    std::vector<std::byte> bytes(encoded_bytes(Codec::fp32, kGeometry.size(s)));
    encode(Codec::fp32, std::span(mean).subspan(kGeometry.first(s), kGeometry.size(s)), 1.0F, bytes);
    segments.emplace_back(std::move(bytes));
  }
  return segments;
}

std::vector<float> parameters_of(const sync::StateImage& image) {
  std::vector<float> values(kLength);
  std::memcpy(values.data(), image.chunks.front().bytes().data(), kLength * sizeof(float));
  return values;
}

wire::Record of_round(Round round) {
  wire::Record record;
  record.round = round;
  return record;
}

TEST(Update, follows_the_groups_of_its_optimizer) {
  RunOptions run = options(Codec::fp32);
  run.optimizer = {.kind = OptimizerKind::sgd, .weight_decay = 0};
  run.learning_rate = 0.5;
  Tenths model;
  TrainState state(
      model, run, kGeometry,
      make_optimizer(
          {one_group(run.optimizer, {kLength - 2}), one_group({.kind = OptimizerKind::average}, {2})}, 2.5));
  EXPECT_EQ(state.bytes(), (kLength + kLength - 2) * sizeof(float)) << "averages have no velocity";
  state.initialise();
  state.apply(of_round(1), segments_of({3, 4, 0, 8, -8}));
  const std::vector<float> after = parameters_of(state.freeze(wire::Record{}, 1024));
  // Nesterov's first step is 1.9 gradients, here of a half.
  EXPECT_NEAR(after[0], 1 - 0.5 * 1.9 * 1.5, 1e-6);
  EXPECT_NEAR(after[1], 1 - 0.5 * 1.9 * 2, 1e-6);
  EXPECT_EQ(std::vector(after.begin() + 2, after.end()), (std::vector<float>{1, 9, -7}));
}

TEST(Update, knows_of_how_many_samples_its_mean_is) {
  Tenths model;
  TrainState state(
      model, options(Codec::fp32), kGeometry,
      make_optimizer({one_group({.kind = OptimizerKind::updates}, {2}),
                      one_group({.kind = OptimizerKind::sgd}, {1}),
                      one_group({.kind = OptimizerKind::moving_average, .momentum = 0.5}, {2})}));
  state.initialise();
  wire::Record record = of_round(1);
  record.samples = 32;
  const float two_passes = 2.0F / 32;
  state.apply(record, segments_of({0, two_passes, 0, 4, -4}));
  const std::vector<float> after = parameters_of(state.freeze(wire::Record{}, 1024));
  EXPECT_EQ(after, (std::vector<float>{1, 3, 1, 1 + 1.5F * 4, 1 - 1.5F * 4}));
}

class Long final : public Model {
 public:
  static constexpr std::uint64_t kFloats = 10'000;

  std::vector<std::uint64_t> tensor_sizes() const override { return {kFloats}; }

  void initial_parameters(std::span<float> out) override { std::fill(out.begin(), out.end(), 0.0F); }

  WorkDone work(std::span<const float>, const swarm::WorkItem&, std::span<float>) override { return {}; }
};

TEST(Update, has_each_value_of_a_segment_that_is_longer_than_a_block_at_its_place) {
  constexpr average::Geometry kLong{.length = Long::kFloats, .segment_length = 6'000};
  for (const Codec codec : {Codec::fp32, Codec::bf16, Codec::int8}) {
    std::vector<float> mean(kLong.length), expected(kLong.length);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(i % 2777) - 1000;
    std::vector<Blob> segments;
    for (std::uint64_t s = 0; s < kLong.segments(); ++s) {
      std::vector<std::byte> bytes(encoded_bytes(codec, kLong.size(s)));
      encode(codec, std::span(mean).subspan(kLong.first(s), kLong.size(s)), 1.0F, bytes);
      ASSERT_TRUE(decode(codec, bytes, std::span(expected).subspan(kLong.first(s), kLong.size(s))));
      segments.emplace_back(std::move(bytes));
    }
    Long model;
    TrainState state(model, options(codec), kLong,
                     make_optimizer({one_group({.kind = OptimizerKind::average}, model.tensor_sizes())}));
    state.initialise();
    EXPECT_EQ(state.apply(of_round(1), segments), digest_of_parameters(expected)) << name_of(codec);
  }
}

/// Adds 1 to each value of the sum.
class AddsOnes final : public Model {
 public:
  static constexpr std::uint64_t kFloats = 3 * kWorthAThread + 1;

  std::vector<std::uint64_t> tensor_sizes() const override { return {kFloats}; }

  void initial_parameters(std::span<float> out) override { std::ranges::fill(out, 0.0F); }

  WorkDone work(std::span<const float>, const swarm::WorkItem&, std::span<float> sum) override {
    for (float& value : sum) ++value;
    return {};
  }
};

TEST(Slots, begin_each_round_at_zero_on_any_number_of_threads) {
  for (const std::size_t threads : {1, 3, 4}) {
    AddsOnes model;
    TrainState state(model, options(Codec::fp32), average::Geometry{AddsOnes::kFloats, 65'536}, nullptr,
                     {.threads = threads});
    state.initialise();
    for (const Round round : {1, 3}) {
      state.work({.round = round, .slot = 0, .samples = RangeSet(Range{8 * round, 4})});
      const std::vector<float>& sum = *state.slot(round, 0).sum;
      EXPECT_EQ(std::ranges::count(sum, 1.0F), static_cast<std::ptrdiff_t>(AddsOnes::kFloats)) << threads;
    }
  }
}

TEST(Update, takes_the_learning_rate_of_its_round_also_where_it_was_missed) {
  RunOptions run = options(Codec::fp32);
  run.optimizer = {.kind = OptimizerKind::sgd, .weight_decay = 0};
  const StateHooks hooks{.settings = [](Round round, const std::string&) {
    return std::vector<GroupStep>{{.learning_rate = 0.2 * static_cast<double>(round)}};
  }};
  const std::vector<float> mean = {1, 2, 3, 4, 5};
  for (const bool missed : {false, true}) {
    Tenths model;
    TrainState state(model, run, kGeometry, nullptr, hooks);
    state.initialise();
    wire::Record record;
    record.round = 2;
    record.mean = digest_of_mean(mean, kGeometry);
    if (missed) {
      ASSERT_TRUE(state.apply_missed(record, segments_of(mean)).ok());
    } else {
      state.apply(record, segments_of(mean));
    }
    // Nesterov's first step is 1.9 gradients.
    EXPECT_NEAR(parameters_of(state.freeze(wire::Record{}, 1024))[2], 1 - 0.4 * 1.9 * 3, 1e-6);
  }
}

/// Means of rounds 1, 2, ...; sync, or delayed.
struct Late {
  static RunOptions run(OptimizerKind kind, Codec codec, Mode mode) {
    RunOptions run = options(codec);
    run.mode.kind = mode;
    run.optimizer.kind = kind;
    run.optimizer.momentum = kind == OptimizerKind::sgd ? 0.9 : 0;
    return run;
  }

  static wire::Record record(Round round, bool last = false, Codec codec = Codec::fp32) {
    wire::Record record;
    record.round = round;
    record.samples = 8;
    record.last = last;
    record.mean = digest_of_mean(round, codec);
    return record;
  }

  static Digest digest_of_mean(Round round, Codec codec) {
    std::vector<Digest> digests;
    const std::vector<Blob> segments = mean(round, codec);
    for (std::uint64_t s = 0; s < segments.size(); ++s)
      digests.push_back(*average::digest_of_decoded(codec, segments[s].bytes(), kGeometry.size(s)));
    return average::digest_of_segments(digests);
  }

  static std::vector<Blob> mean(Round round, Codec codec) {
    std::vector<float> values(kLength);
    for (std::size_t i = 0; i < kLength; ++i) values[i] = std::sin(static_cast<float>(round * kLength + i));
    std::vector<Blob> segments;
    for (std::uint64_t s = 0; s < kGeometry.segments(); ++s) {
      std::vector<std::byte> bytes(encoded_bytes(codec, kGeometry.size(s)));
      encode(codec, std::span(values).subspan(kGeometry.first(s), kGeometry.size(s)), 1.0F, bytes);
      segments.emplace_back(std::move(bytes));
    }
    return segments;
  }
};

TEST(LateUpdates, are_those_of_one_process_that_applies_each_mean_one_round_late) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    for (const Codec codec : {Codec::fp32, Codec::int8}) {
      Peer late(Late::run(kind, codec, Mode::delayed)), one(Late::run(kind, codec, Mode::sync));
      for (Round round = 1; round <= 6; ++round) {
        const bool last = round == 6;
        // Some rounds are called before the next decision is here, some are not.
        if (round % 2 == 0) late.state.move_on();
        const Digest parameters = late.state.take(Late::record(round, last, codec), Late::mean(round, codec));
        if (round > 1) one.state.take(Late::record(round - 1, false, codec), Late::mean(round - 1, codec));
        if (last) one.state.take(Late::record(round, false, codec), Late::mean(round, codec));
        EXPECT_EQ(parameters, digest_of_parameters(one.state.parameters())) << round;
        if (!last) continue;
        Peer other(Late::run(kind, codec, Mode::delayed));
        EXPECT_EQ(other.state.restore(late.state.freeze(Late::record(round, last, codec), 64)).value(),
                  parameters);
      }
    }
  }
}

TEST(LateUpdates, travel_with_the_state_whether_they_wait_or_were_made) {
  for (const bool moved_on : {false, true}) {
    const RunOptions run = Late::run(OptimizerKind::adamw, Codec::int8, Mode::delayed);
    Peer donor(run), joiner(run);
    for (Round round = 1; round <= 3; ++round)
      donor.state.take(Late::record(round, false, Codec::int8), Late::mean(round, Codec::int8));
    const Digest of_round_3 = digest_of_parameters(donor.state.parameters());
    if (moved_on) donor.state.move_on();
    const auto restored = joiner.state.restore(donor.state.freeze(Late::record(3, false, Codec::int8), 64));
    ASSERT_TRUE(restored);
    EXPECT_EQ(restored.value(), of_round_3) << "what the others have after round 3";
    EXPECT_EQ(joiner.state.has_moved_on(), moved_on);
    const auto go_on = [](Peer& peer) {
      return peer.state.take(Late::record(4, false, Codec::int8), Late::mean(4, Codec::int8));
    };
    EXPECT_EQ(go_on(joiner), go_on(donor));
    EXPECT_FALSE(joiner.state.has_moved_on());
    EXPECT_EQ(joiner.state.move_on(), donor.state.move_on());
  }
}

TEST(LateUpdates, are_refused_when_they_are_not_the_mean_of_their_record) {
  const RunOptions run = Late::run(OptimizerKind::sgd, Codec::fp32, Mode::delayed);
  Peer donor(run), joiner(run);
  wire::Record record = Late::record(1);
  donor.state.take(record, Late::mean(1, Codec::fp32));
  record.mean.low ^= 1;
  EXPECT_THAT(joiner.state.restore(donor.state.freeze(record, 64)).error().message,
              testing::HasSubstr("is not the one that was recorded"));
}

TEST(LateUpdates, that_were_made_are_settled_when_a_new_history_begins) {
  const RunOptions run = Late::run(OptimizerKind::sgd, Codec::fp32, Mode::delayed);
  Peer peer(run), joiner(run);
  peer.state.take(Late::record(1), Late::mean(1, Codec::fp32));
  const Digest parameters = peer.state.move_on();
  wire::Record anew = Late::record(1);
  anew.restarts = 1;
  EXPECT_EQ(peer.state.settle(anew), parameters);
  EXPECT_FALSE(peer.state.has_moved_on());
  EXPECT_EQ(joiner.state.restore(peer.state.freeze(anew, 64)).value(), parameters);
  EXPECT_FALSE(joiner.state.has_moved_on());
}

/// Rounds whose parameters are compared each third time.
RunOptions compared_each_third(Mode mode) {
  RunOptions run = Late::run(OptimizerKind::sgd, Codec::fp32, mode);
  run.mode.digest_every = 3;
  return run;
}

wire::Record record_after(const wire::Record& before) {
  wire::Record record = Late::record(before.round + 1);
  record.parent = digest_of(before);
  return record;
}

TEST(ComparedParameters, have_one_digest_on_all_peers_whenever_they_joined) {
  for (const Mode mode : {Mode::sync, Mode::delayed}) {
    Peer donor(compared_each_third(mode));
    wire::Record record = record_after({});
    Digest here = donor.state.take(record, Late::mean(1, Codec::fp32));
    for (int i = 2; i <= 9; ++i) {
      if (mode == Mode::delayed && i % 2 == 0) donor.state.move_on();
      Peer joiner(compared_each_third(mode));
      EXPECT_EQ(joiner.state.restore(donor.state.freeze(record, 64)).value(), here) << i;
      record = record_after(record);
      here = donor.state.take(record, Late::mean(record.round, Codec::fp32));
      EXPECT_EQ(joiner.state.take(record, Late::mean(record.round, Codec::fp32)), here) << i;
      const Round updated = mode == Mode::delayed ? record.round - 1 : record.round;
      EXPECT_EQ(here == digest_of_parameters(donor.state.parameters()), updated % 3 == 0) << i;
    }
  }
}

TEST(ComparedParameters, show_who_has_others_when_they_are_compared) {
  Peer one(compared_each_third(Mode::sync)), other(compared_each_third(Mode::sync));
  other.state.apply(Late::record(1), Late::mean(7, Codec::fp32));
  wire::Record record;
  for (Round round = 1; round <= 6; ++round) {
    record = record_after(record);
    record.last = round == 5;
    const Digest mine = one.state.take(record, Late::mean(round, Codec::fp32));
    const bool alike = mine == other.state.take(record, Late::mean(round, Codec::fp32));
    EXPECT_EQ(alike, round % 3 != 0 && round != 5) << "round " << round << "; the last one is compared, too";
  }
}

/// After so many rounds the peer begins anew, and another one takes its state.
void expect_one_digest_of_a_new_history(Mode mode, Round rounds, bool moves_on) {
  Peer peer(compared_each_third(mode)), joiner(compared_each_third(mode));
  wire::Record record;
  while (record.round < rounds) {
    record = record_after(record);
    peer.state.take(record, Late::mean(record.round, Codec::fp32));
  }
  if (moves_on) peer.state.move_on();
  record.parent = digest_of(record);
  ++record.restarts;
  const Digest anew = peer.state.settle(record);
  EXPECT_EQ(joiner.state.restore(peer.state.freeze(record, 64)).value(), anew) << rounds;
  for (int i = 0; i < 4; ++i) {
    record = record_after(record);
    EXPECT_EQ(joiner.state.take(record, Late::mean(record.round, Codec::fp32)),
              peer.state.take(record, Late::mean(record.round, Codec::fp32)))
        << rounds << " and " << i;
  }
}

TEST(ComparedParameters, have_one_digest_in_a_history_that_begins_anew) {
  for (Round rounds = 1; rounds <= 4; ++rounds) {
    expect_one_digest_of_a_new_history(Mode::sync, rounds, false);
    expect_one_digest_of_a_new_history(Mode::delayed, rounds, false);
    expect_one_digest_of_a_new_history(Mode::delayed, rounds, true);
  }
}

TEST(ComparedParameters, are_asked_for_when_they_are_compared) {
  Tenths model;
  int asked = 0;
  TrainState state(model, compared_each_third(Mode::sync), kGeometry, nullptr,
                   {.about_to_digest = [&] { ++asked; }});
  state.initialise();
  wire::Record record;
  for (Round round = 1; round <= 7; ++round) {
    record = record_after(record);
    state.take(record, Late::mean(round, Codec::fp32));
    EXPECT_EQ(asked, static_cast<int>(round / 3));
  }
}

TEST(LateUpdates, that_were_made_are_the_state_of_a_run_that_begins_anew) {
  const RunOptions run = Late::run(OptimizerKind::sgd, Codec::fp32, Mode::delayed);
  Peer before(run), after(run);
  before.state.take(Late::record(1), Late::mean(1, Codec::fp32));
  const Digest parameters = before.state.move_on();
  sync::StateImage image = before.state.freeze(Late::record(1), 64);
  image.record.restarts = 1;
  EXPECT_EQ(after.state.restore(image).value(), parameters);
  EXPECT_FALSE(after.state.has_moved_on());
}

/// A vector of five values in two fragments: round 1 averages the last two, round 2 the first three.
struct InTwo {
  explicit InTwo(Mode mode = Mode::streaming) : state(model, run(mode), kFragments) { state.initialise(); }

  static RunOptions run(Mode mode) {
    RunOptions run = Late::run(OptimizerKind::sgd, Codec::int8, mode);
    run.error_feedback = true;
    return run;
  }

  static wire::Record record(Round round, bool last = false) {
    wire::Record record = Late::record(round, last);
    const std::uint64_t length = kFragments.of(round).geometry.length;
    const Digest digest = *average::digest_of_decoded(Codec::int8, mean(round).front().bytes(), length);
    record.mean = average::digest_of_segments({&digest, 1});
    return record;
  }

  static std::vector<Blob> mean(Round round) {
    const std::vector<float> values(kFragments.of(round).geometry.length, 1.0F);
    std::vector<std::byte> bytes(encoded_bytes(Codec::int8, values.size()));
    encode(Codec::int8, values, 1.0F, bytes);
    return {Blob(std::move(bytes))};
  }

  std::vector<bool> changed_by(const std::function<void()>& step) {
    const std::vector<float> before(state.parameters().begin(), state.parameters().end());
    step();
    std::vector<bool> changed;
    for (std::size_t i = 0; i < before.size(); ++i) changed.push_back(before[i] != state.parameters()[i]);
    return changed;
  }

  static inline const average::Fragments kFragments{{3, 2}, 2};
  static inline const std::vector<bool> kFirst = {true, true, true, false, false},
                                        kSecond = {false, false, false, true, true}, kNone = {0, 0, 0, 0, 0};
  Tenths model;
  TrainState state;
};

TEST(Fragments, are_updated_in_their_turn_one_round_late) {
  InTwo peer;
  const auto take = [&](Round round, bool last = false) {
    return peer.changed_by([&] { peer.state.take(InTwo::record(round, last), InTwo::mean(round)); });
  };
  EXPECT_EQ(InTwo::kNone, take(1));
  EXPECT_EQ(InTwo::kSecond, take(2)) << "the mean of round 1";
  EXPECT_EQ(InTwo::kFirst, peer.changed_by([&] { peer.state.move_on(); })) << "that of round 2";
  EXPECT_EQ((std::vector<bool>{0, 0, 0, 1, 1}), take(3, true)) << "the last round applies its own";
}

TEST(Fragments, have_sums_and_residuals_of_their_length) {
  InTwo peer;
  peer.state.work({.round = 1, .slot = 0, .samples = RangeSet(Range{0, 4})});
  EXPECT_EQ(2U, peer.state.slot(1, 0).sum->size());
  peer.state.owe_losses(1, std::vector{of_slot(0)});
  peer.state.feedback().settle();
  const auto lost = [&](Round round) {
    return std::ranges::any_of(peer.state.feedback().carried(round, 0),
                               [](float value) { return value != 0; });
  };
  EXPECT_TRUE(lost(3)) << "the next turn of what round 1 averaged";
  EXPECT_FALSE(lost(2));
  EXPECT_EQ(3U, peer.state.feedback().carried(2, 0).size());
}

TEST(Fragments, wait_in_a_state_for_its_joiner) {
  for (const Round last : {1, 2}) {
    InTwo donor, joiner;
    for (Round round = 1; round <= last; ++round) donor.state.take(InTwo::record(round), InTwo::mean(round));
    ASSERT_TRUE(joiner.state.restore(donor.state.freeze(InTwo::record(last), 64)));
    EXPECT_EQ(joiner.state.move_on(), donor.state.move_on());
  }
}

TEST(GradientSlot, begins_anew_in_a_round_whose_state_was_taken_from_others) {
  Peer peer(options(Codec::fp32));
  const sync::StateImage image = peer.state.freeze(wire::Record{}, 64);
  peer.work(3, 0, 0);
  ASSERT_TRUE(peer.state.restore(image).ok());
  const std::vector<float> again = peer.work(3, 0, 1);
  Peer fresh(options(Codec::fp32));
  EXPECT_EQ(again, fresh.work(3, 0, 1)) << "what it did before is over other parameters";
}

/// A model that keeps one for each sample until it is collected.
class Keeping final : public Model {
 public:
  std::vector<std::uint64_t> tensor_sizes() const override { return {kLength}; }

  void initial_parameters(std::span<float> out) override { std::fill(out.begin(), out.end(), 1.0F); }

  WorkDone work(std::span<const float>, const swarm::WorkItem& item, std::span<float>) override {
    kept += static_cast<float>(item.samples.count());
    return {.microbatches = 1};
  }

  bool collects() const override { return true; }

  void collect(Round round, std::span<float> sum) override {
    rounds.push_back(round);
    for (float& value : sum) value += kept;
    kept = 0;
  }

  float kept = 0;
  std::vector<Round> rounds;
};

class Collects : public testing::Test {
 protected:
  void work(Round round, std::uint32_t slot, std::uint64_t samples, bool afresh = false) {
    swarm::WorkItem item{.round = round, .slot = slot, .samples = RangeSet(Range{0, samples})};
    item.afresh = afresh;
    state.work(item);
  }

  float sum(Round round, std::uint32_t slot) { return state.slot(round, slot).sum->front(); }

  Keeping model;
  TrainState state{model, options(Codec::fp32), kGeometry};
};

TEST_F(Collects, what_the_model_has_kept_for_the_slot_of_its_work) {
  work(1, 0, 3);
  work(1, 0, 4);
  EXPECT_TRUE(state.has_uncollected(1));
  EXPECT_FALSE(state.has_uncollected(2));
  EXPECT_EQ(sum(1, 0), 0);
  state.collect();
  EXPECT_FALSE(state.has_uncollected(1));
  EXPECT_EQ(sum(1, 0), 7);
  state.collect();
  EXPECT_EQ(sum(1, 0), 7) << "once";
}

TEST_F(Collects, before_work_for_another_slot) {
  work(1, 0, 3);
  work(1, 2, 4);
  EXPECT_EQ(sum(1, 0), 3);
  work(1, 0, 5);
  state.collect();
  EXPECT_EQ(sum(1, 0), 8);
  EXPECT_EQ(sum(1, 2), 4);
}

TEST_F(Collects, nothing_of_work_that_its_slot_has_given_up) {
  work(1, 0, 3);
  work(1, 0, 4, true);
  work(2, 0, 5);
  state.collect();
  EXPECT_EQ(sum(2, 0), 5);
  EXPECT_THAT(model.rounds, testing::ElementsAre(1, 1, 2));
  work(2, 0, 6);
  ASSERT_TRUE(state.restore(state.freeze(wire::Record{}, 64)).ok());
  work(2, 0, 1);
  state.collect();
  EXPECT_EQ(sum(2, 0), 1);
}

TEST(CollectsAnew, what_a_program_keeps_when_its_sums_are_forgotten) {
  Keeping model;
  std::vector<Round> told;
  StateHooks hooks;
  hooks.changed = [&](Round round, bool restored) {
    if (restored) told.push_back(round);
  };
  TrainState state{model, options(Codec::fp32), kGeometry, nullptr, hooks};
  EXPECT_TRUE(state.tells_of_sums());
  state.work({.round = 7, .slot = 0, .samples = RangeSet(Range{0, 3})});
  state.forget_sums();
  state.begin_anew(6);
  EXPECT_THAT(told, testing::ElementsAre(6));
  EXPECT_EQ(model.kept, 0);
  state.work({.round = 7, .slot = 0, .samples = RangeSet(Range{0, 2})});
  state.collect();
  EXPECT_EQ(state.slot(7, 0).sum->front(), 2);
}

TEST_F(Collects, before_the_parameters_change) {
  state.initialise();
  work(1, 0, 3);
  state.take(Late::record(1), Late::mean(1, Codec::fp32));
  EXPECT_FALSE(state.has_uncollected(1));
  EXPECT_EQ(model.kept, 0);
}

// For ThreadSanitizer: an update keeps losses while the loop thread looks up the slot of the next lease.
TEST(TrainState, gives_slots_to_one_thread_while_another_keeps_losses) {
  Peer peer(options(Codec::int8));
  peer.work(1, ErrorFeedback::kCarrier, 0);
  std::jthread compute([&] { peer.commit({{.peer = {}, .slot = ErrorFeedback::kCarrier, .samples = 4}}); });
  for (std::uint32_t slot = 1; slot < wire::kLeaseSlots; ++slot)
    EXPECT_EQ(peer.state.slot(1, slot).round, 0U);
}

}  // namespace
}  // namespace tw::train
