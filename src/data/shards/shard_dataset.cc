// SPDX-License-Identifier: Apache-2.0
#include "data/shards/shard_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "data/shards/decode.h"
#include "data/shards/prefetch.h"

namespace tw::data {
namespace {

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(';'), list.size());
    if (end > 0) names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

/// The numbers of these names in an index.
Result<std::vector<std::uint32_t>> fields_in(const ShardIndex& index, std::string_view list) {
  const std::vector<std::string> wanted = names_in(list);
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find(index.field_names(), name);
    if (found != index.field_names().end())
      numbers.push_back(static_cast<std::uint32_t>(found - index.field_names().begin()));
    if (!is_decoded(name))
      return Error{fmt::format("no decoder for the field {}, expected {}", name, decoded_fields())};
  }
  if (numbers.empty())
    return Error{
        fmt::format("no sample has the field {}; there are {}", list, fmt::join(index.field_names(), ", "))};
  return numbers;
}

const FieldPlace* place_of(const ShardIndex::Sample& sample, const std::vector<std::uint32_t>& names) {
  for (const std::uint32_t name : names) {
    const auto found = std::ranges::find(sample.fields, name, &FieldPlace::name);
    if (found != sample.fields.end()) return &*found;
  }
  return nullptr;
}

/// Adds the values of one sample; false if its shape or type differs.
bool append_sample(const Array& one, Array& all) {
  if (all.shape.empty()) {
    all.values = one.values;
    all.shape = one.shape;
    all.shape.insert(all.shape.begin(), 1);
    return true;
  }
  if (!std::ranges::equal(one.shape, std::span(all.shape).subspan(1))) return false;
  const bool fits = std::visit(
      [&](const auto& values) {
        auto* target = std::get_if<std::decay_t<decltype(values)>>(&all.values);
        if (target != nullptr) target->insert(target->end(), values.begin(), values.end());
        return target != nullptr;
      },
      one.values);
  all.shape[0] += fits ? 1 : 0;
  return fits;
}

std::string shape_text(const Array& array) {
  return fmt::format("{} [{}]", array.values.index() == 0 ? "float32" : "int64",
                     fmt::join(array.shape, ", "));
}

class ShardDataset final : public Dataset {
 public:
  struct Fields {
    std::vector<std::uint32_t> inputs, targets;
  };

  ShardDataset(ShardIndex index, const ShardOptions& options, Fields fields, world::Store& store)
      : index_(std::move(index)),
        options_(options),
        fields_(std::move(fields)),
        prefetch_(
            index_, store,
            {.threads = options.threads,
             .memory_bytes = options.memory_bytes,
             .most_broken = options.most_broken,
             .now = options.now},
            [this](const ShardIndex::Sample& sample) { return choose(sample); },
            [this](const Pick& pick, const auto& bytes) { return decode(pick, bytes); }) {}

  std::uint64_t size() const override { return index_.size(); }

  Batch gather(std::span<const std::uint64_t> indices) const override {
    std::vector<Pick> picks;
    for (const std::uint64_t index : indices) picks.push_back({index, index});
    return pick(picks);
  }

  Batch pick(std::span<const Pick> samples) const override {
    const auto taken = prefetch_.take(samples);
    if (!taken) throw std::runtime_error(taken.error().message);
    Batch batch;
    for (const Pick& sample : samples) {
      const Example& example = taken.value().at(sample);
      if (!example.broken.empty()) continue;
      const Array &inputs = std::get<Array>(example.fields[0]), &targets = std::get<Array>(example.fields[1]);
      if (append_sample(inputs, batch.inputs) && append_sample(targets, batch.targets)) continue;
      throw std::runtime_error(
          fmt::format("{}: {} of {} has inputs {} and targets {}, but those before it are of another shape; "
                      "data.image makes pictures equal",
                      options_.index, index_.sample(sample.index).key,
                      world::shown_object(index_.shards()[index_.sample(sample.index).shard].object),
                      shape_text(inputs), shape_text(targets)));
    }
    return batch;
  }

  std::optional<MissingSample> load(std::span<const Pick> samples, bool skips) const override {
    return prefetch_.load(samples, skips);
  }

  void expect(std::span<const Pick> samples) const override { prefetch_.expect(samples); }

  bool fetches() const override { return true; }

  std::optional<LoadWait> waiting() const override { return prefetch_.waiting(); }

  LoadNews take_news() const override { return prefetch_.take_news(); }

 private:
  Result<std::vector<FieldPlace>> choose(const ShardIndex::Sample& sample) const {
    const FieldPlace* inputs = place_of(sample, fields_.inputs);
    const FieldPlace* targets = place_of(sample, fields_.targets);
    if (inputs == nullptr || targets == nullptr)
      return Error{fmt::format("{}: {} has no field {}",
                               world::shown_object(index_.shards()[sample.shard].object), sample.key,
                               inputs == nullptr ? options_.inputs : options_.targets)};
    return std::vector<FieldPlace>{*inputs, *targets};
  }

  Example decode(const Pick& pick, const std::vector<std::string_view>& bytes) const {
    const ShardIndex::Sample sample = index_.sample(pick.index);
    const auto name = [&](const std::vector<std::uint32_t>& names) -> const std::string& {
      return index_.field_names()[place_of(sample, names)->name];
    };
    auto inputs =
        decode_field(name(fields_.inputs), bytes[0], FieldUse::input, options_.picture, pick.number);
    if (!inputs) return {.broken = inputs.error().message};
    auto targets =
        decode_field(name(fields_.targets), bytes[1], FieldUse::target, options_.picture, pick.number);
    if (!targets) return {.broken = targets.error().message};
    return {.fields = {std::move(inputs).value(), std::move(targets).value()}};
  }

  ShardIndex index_;
  ShardOptions options_;
  Fields fields_;
  mutable Prefetch prefetch_;  // last: its threads use the others
};

}  // namespace

Status check_fields(const ShardIndex& index, std::string_view list) {
  const auto numbers = fields_in(index, list);
  return numbers ? Status(Unit{}) : Status(numbers.error());
}

Result<std::unique_ptr<Dataset>> open_shard_dataset(const ShardOptions& options, world::Store& store) {
  auto index = read_shard_index(options.index);
  if (!index) return index.error();
  auto inputs = fields_in(index.value(), options.inputs);
  if (!inputs) return Error{fmt::format("{}: {}", options.index, inputs.error().message)};
  auto targets = fields_in(index.value(), options.targets);
  if (!targets) return Error{fmt::format("{}: {}", options.index, targets.error().message)};
  if (index.value().size() == 0) return Error{fmt::format("{}: no samples", options.index)};
  return std::unique_ptr<Dataset>(std::make_unique<ShardDataset>(
      std::move(index).value(), options,
      ShardDataset::Fields{std::move(inputs).value(), std::move(targets).value()}, store));
}

}  // namespace tw::data
