// SPDX-License-Identifier: Apache-2.0
#include "train/learn/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "average/reduction/mean_digest.h"
#include "average/reduction/weighted_sum.h"
#include "base/check.h"
#include "base/parallel.h"
#include "base/result.h"
#include "codec/codec.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

constexpr std::size_t kPiece = 2048;
static_assert(kPiece % codec::kCodecPiece == 0);

void set_to_zero(std::span<float> values, std::size_t threads) {
  const std::size_t parts = threads_for(values.size(), threads), most = (values.size() + parts - 1) / parts;
  in_parallel(parts, parts, [&](std::size_t i) {
    const std::size_t first = std::min(i * most, values.size());
    std::ranges::fill(values.subspan(first, std::min(most, values.size() - first)), 0.0F);
  });
}

/// Zeros; in the memory of before where nobody else has it any more.
// owners: the slot, and messages under way
void clear(std::shared_ptr<std::vector<float>>& sum, std::size_t length, std::size_t threads) {
  if (sum.use_count() == 1) {
    // Letting go of a copy follows upon whatever other owners read before they let go.
    std::shared_ptr<std::vector<float>>(sum).reset();  // owners: this line
    sum->resize(length);
    return set_to_zero(*sum, threads);
  }
  sum = std::make_shared<std::vector<float>>(length, 0.0F);  // owners: as above
}

constexpr std::size_t kFloat = sizeof(float);

}  // namespace

LateMean::LateMean(std::size_t encoded)
    : values_(encoded == 0 ? 0 : 1 + (std::max(encoded, sizeof(Word)) + kFloat - 1) / kFloat) {}

LateMean::Stage LateMean::stage() const {
  if (values_.empty()) return Stage::none;
  return values_.front() == 1 ? Stage::waits : values_.front() == 2 ? Stage::applied : Stage::none;
}

void LateMean::go_to(Stage stage) {
  if (!values_.empty()) values_.front() = static_cast<float>(stage);
}

void LateMean::keep(const wire::Record& record, std::span<const Blob> mean) {
  TW_CHECK(!values_.empty() && !waits());
  const auto bytes = std::as_writable_bytes(std::span(values_).subspan(1));
  std::size_t used = 0;
  for (const Blob& segment : mean) {
    TW_CHECK(segment.size() <= bytes.size() - used);
    if (!segment.bytes().empty()) std::memcpy(bytes.data() + used, segment.bytes().data(), segment.size());
    used += segment.size();
  }
  go_to(Stage::waits);
  record_ = record;
}

void LateMean::applied(const Digest& before) {
  const Word word = {before, digest_of(record_)};
  std::memcpy(values_.data() + 1, word.data(), sizeof(word));
  go_to(Stage::applied);
}

Digest LateMean::before() const {
  TW_CHECK(is_applied());
  return word()[0];
}

LateMean::Word LateMean::word() const {
  Word word;
  std::memcpy(static_cast<void*>(word.data()), values_.data() + 1, sizeof(word));
  return word;
}

void LateMean::drop() { go_to(Stage::none); }

void LateMean::loaded(const wire::Record& record) {
  record_ = record;
  if (is_applied() && word()[1] != digest_of(record)) drop();
}

std::vector<Blob> LateMean::segments(codec::Codec codec, const average::Geometry& geometry) const {
  const auto all = std::as_bytes(std::span(values_).subspan(1));
  std::vector<Blob> segments;
  std::size_t first = 0;
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    const std::size_t size = encoded_bytes(codec, geometry.size(s));
    segments.push_back(Blob::view(all.subspan(first, size), nullptr));
    first += size;
  }
  return segments;
}

std::uint64_t parameter_count(const Model& model) {
  const std::vector<std::uint64_t> sizes = model.tensor_sizes();
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

average::Fragments fragments_of(const RunOptions& run, const Model& model, std::uint64_t segment_length) {
  return {model.tensor_sizes(), run.mode.fragments_used(), segment_length};
}

TrainState::TrainState(Model& model, const RunOptions& run, average::Fragments fragments,
                       std::unique_ptr<Optimizer> optimizer, StateHooks hooks)
    : model_(model),
      run_(run),
      fragments_(std::move(fragments)),
      parameters_(parameter_count(model)),
      optimizer_(optimizer ? std::move(optimizer)
                           : make_optimizer({one_group(run.optimizer, model.tensor_sizes())}, run.clip_norm)),
      hooks_(std::move(hooks)),
      digest_(run, parameters_, {hooks_.threads, hooks_.about_to_digest}),
      feedback_(run, fragments_, hooks_.threads),
      late_(run.overlaps() ? encoded_bytes(codec_of_mean(run.codec), fragments_.largest()) : 0) {
  TW_CHECK(fragments_.length() == parameters_.size());
}

std::unique_lock<std::shared_mutex> TrainState::change() {
  std::unique_lock alone(still_);
  ++version_;
  return alone;
}

Digest TrainState::initialise() {
  collect();
  const auto alone = change();
  model_.initial_parameters(parameters_);
  late_.drop();
  if (hooks_.changed) hooks_.changed(0, true);
  return digest_.begin();
}

// The model has one sum, so what it has goes to its slot before work for another one, or before that slot
// begins anew (then it goes into the sum that is given up).
WorkDone TrainState::work(const swarm::WorkItem& item) {
  GradientSlot& slot = this->slot(item.round, item.slot);
  if (uncollected_ != &slot || item.afresh || slot.round != item.round) collect();
  if (item.afresh) slot.round = 0;
  WorkDone done = model_.work(parameters_, item, open(item.round, slot));
  if (model_.collects() && done.microbatches > 0) {
    uncollected_ = &slot;
    uncollected_round_ = item.round;
  }
  return done;
}

bool TrainState::has_uncollected(Round round) const {
  return uncollected_round_ == round || feedback_.lacks(round);
}

void TrainState::collect() {
  if (uncollected_ == nullptr) return;
  model_.collect(uncollected_round_, *uncollected_->sum);
  uncollected_ = nullptr;
  uncollected_round_ = 0;
}

void TrainState::collect(Round round) {
  collect();
  feedback_.settle(feedback_.last_turn(round));
}

std::span<float> TrainState::open(Round round, GradientSlot& slot) {
  if (!slot.sum || slot.round != round) {
    clear(slot.sum, fragment(round).geometry.length, hooks_.threads);
    slot.round = round;
  }
  return *slot.sum;
}

Digest TrainState::apply(const wire::Record& record, std::span<const Blob> mean) {
  const Round round = record.round;
  const auto& [place, geometry] = fragment(round);
  TW_CHECK(mean.size() == geometry.segments());
  collect();  // it is of the parameters until now
  const codec::Codec codec = codec_of_mean(run_.codec);
  const auto decoded = [&, place = place, geometry = geometry](std::size_t segment, const TakePiece& take) {
    std::array<float, kPiece> piece;  // stays in the first-level cache
    for (std::uint64_t first = 0; first < geometry.size(segment); first += kPiece) {
      const auto values =
          std::span(piece).first(std::min<std::size_t>(kPiece, geometry.size(segment) - first));
      const auto encoded =
          mean[segment].bytes().subspan(encoded_bytes(codec, first), encoded_bytes(codec, values.size()));
      TW_CHECK(decode(codec, encoded, values));
      take(place + geometry.first(segment) + first, values);
    }
  };
  const std::vector<GroupStep> settings = hooks_.settings
                                              ? hooks_.settings(round, record.settings)
                                              : std::vector<GroupStep>{{.learning_rate = run_.learning_rate}};
  const auto alone = change();
  optimizer_->apply(parameters_, {mean.size(), decoded, record.samples}, round, settings);
  if (hooks_.changed) hooks_.changed(round, false);
  return digest_.updated(record, place, geometry.length);
}

Digest TrainState::take(const wire::Record& record, std::span<const Blob> mean) {
  if (!run_.overlaps()) return apply(record, mean);
  const Digest parameters = move_on();
  moved_on_ = false;
  if (record.last) {
    late_.drop();
    return apply(record, mean);
  }
  const auto alone = change();
  late_.keep(record, mean);
  return parameters;
}

std::vector<Blob> TrainState::late_mean() const {
  return late_.segments(codec_of_mean(run_.codec), fragment(late_.record().round).geometry);
}

Digest TrainState::move_on() {
  const Digest before = digest_.now();
  if (!late_.waits()) return before;
  const Digest parameters = apply(late_.record(), late_mean());
  const auto alone = change();
  late_.applied(before);
  moved_on_ = true;
  return parameters;
}

// The mean is the one that was recorded.
Status TrainState::check_mean(const wire::Record& record, std::span<const Blob> mean) const {
  const average::Geometry& geometry = fragment(record.round).geometry;
  const codec::Codec codec = codec_of_mean(run_.codec);
  std::vector<Digest> digests;
  for (std::uint64_t s = 0; s < mean.size(); ++s) {
    const bool fits = mean[s].size() == encoded_bytes(codec, geometry.size(s));
    const auto digest =
        fits ? average::digest_of_decoded(codec, mean[s].bytes(), geometry.size(s)) : std::nullopt;
    if (!digest) return Error{fmt::format("segment {} of the mean of round {} is damaged", s, record.round)};
    digests.push_back(*digest);
  }
  if (average::digest_of_segments(digests) != record.mean)
    return Error{fmt::format("the mean of round {} is not the one that was recorded", record.round)};
  return Unit{};
}

Result<Digest> TrainState::apply_missed(const wire::Record& record, std::span<const Blob> mean) {
  TW_CHECK(mean.size() == fragment(record.round).geometry.segments());
  feedback_.drop();
  if (const Status right = check_mean(record, mean); !right) return right.error();
  return take(record, mean);
}

void TrainState::owe_losses(Round round, std::span<const wire::Contribution> own,
                            const std::map<std::uint32_t, average::GradientSum>& kept) {
  if (!feedback_.is_on()) return;
  std::vector<ErrorFeedback::Counted> counted;
  for (const wire::Contribution& c : own) {
    const auto found = kept.find(c.slot);
    if (found != kept.end()) {
      counted.push_back({c, found->second});
      continue;
    }
    const auto& sum = slot(round, c.slot).sum;
    TW_CHECK(sum != nullptr);
    counted.push_back({c, {*sum, sum}});
  }
  feedback_.owe(round, std::move(counted));
}

std::vector<std::span<float>> TrainState::parts() {
  std::vector<std::span<float>> all = {parameters_};
  for (std::span<float> buffer : optimizer_->state()) all.push_back(buffer);
  return all;
}

std::vector<std::span<float>> TrainState::frozen_parts() {
  std::vector<std::span<float>> all = parts();
  if (late_.size() > 0) all.push_back(late_.values());
  return all;
}

// Copies beside read these vectors.
void TrainState::write_out() {
  if (!hooks_.about_to_copy) return;
  const std::unique_lock alone(still_);
  hooks_.about_to_copy();
  written_ = version_.load();
  digest_.write_out();
}

sync::StateImage TrainState::freeze(const wire::Record& record, std::uint64_t chunk_bytes) {
  if (hooks_.about_to_copy) {
    const std::unique_lock alone(still_);
    hooks_.about_to_copy();
  }
  write_again();
  return copy(record, chunk_bytes);
}

sync::StateImage TrainState::copy(const wire::Record& record, std::uint64_t chunk_bytes) {
  const auto buffers = frozen_parts();
  const std::vector<std::span<const float>> all(buffers.begin(), buffers.end());
  return sync::freeze(record, all, chunk_bytes);
}

std::optional<sync::StateImage> TrainState::freeze(const wire::Record& record, std::uint64_t chunk_bytes,
                                                   std::uint64_t version) {
  const std::shared_lock with_readers(still_);
  if (version != version_ || !copies_beside()) return std::nullopt;
  sync::StateImage image = copy(record, chunk_bytes);
  if (!hooks_.about_to_copy || digest_.is_written(image.parameters)) return image;
  write_again();  // a busy program has other values there, such as averaged ones to evaluate
  return std::nullopt;
}

Digest TrainState::settle(const wire::Record& anew) {
  std::unique_lock<std::shared_mutex> alone;
  if (moved_on_) alone = change();
  moved_on_ = false;
  late_.loaded(anew);
  return digest_.settle(anew, late_.waits());
}

Result<Digest> TrainState::restore(const sync::StateImage& image) {
  collect();
  const auto alone = change();
  digest_.lost();
  TW_TRY(thaw(image, frozen_parts()));
  late_.loaded(image.record);
  moved_on_ = late_.is_applied();
  if (late_.waits()) TW_TRY(check_mean(image.record, late_mean()));
  feedback_.drop();
  forget_sums();  // over other parameters they are worth nothing now
  if (hooks_.changed) hooks_.changed(image.record.round, true);
  const Digest& now = digest_.restored(image.record, late_.waits(), image.parameters);
  return moved_on_ ? late_.before() : now;
}

void TrainState::forget_sums() {
  for (auto& of_a_round : slots_)
    for (GradientSlot& slot : of_a_round) slot.round = 0;
}

void TrainState::begin_anew(Round round) {
  collect();
  if (hooks_.about_to_copy) {  // the program reads its vectors in changed()
    const std::unique_lock alone(still_);
    hooks_.about_to_copy();
  }
  hooks_.changed(round, true);
}

std::uint64_t TrainState::bytes() const {
  std::uint64_t floats = parameters_.size() + late_.size();
  for (std::span<const float> buffer : optimizer_->state()) floats += buffer.size();
  return floats * sizeof(float);
}

}  // namespace tw::train
