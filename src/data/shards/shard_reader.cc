// SPDX-License-Identifier: Apache-2.0
#include "data/shards/shard_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/text.h"
#include "data/shards/decode.h"

namespace tw::data {
namespace {

/// The names between the semicolons.
std::vector<std::string> alternatives_in(std::string_view field) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= field.size();) {
    const std::size_t end = std::min(field.find(';', at), field.size());
    if (end > at) names.emplace_back(field.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

/// Numbers of those alternatives that the index has.
std::vector<std::uint32_t> numbers_of(const std::string& field, const ShardIndex& index) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : alternatives_in(field)) {
    const auto found = std::ranges::find(index.field_names(), name);
    if (found != index.field_names().end())
      numbers.push_back(static_cast<std::uint32_t>(found - index.field_names().begin()));
  }
  return numbers;
}

const FieldPlace* first_of(const ShardIndex::Sample& sample, const std::vector<std::uint32_t>& names) {
  for (const std::uint32_t name : names) {
    const auto found = std::ranges::find(sample.fields, name, &FieldPlace::name);
    if (found != sample.fields.end()) return &*found;
  }
  return nullptr;
}

/// "db, cls".
std::string names_in(const ShardIndex::Sample& sample, const ShardIndex& index) {
  std::string names;
  for (const FieldPlace& place : sample.fields)
    names += (names.empty() ? "" : ", ") + index.field_names()[place.name];
  return names;
}

/// Every sample has one of the field's names. The error says which has none, and what to do.
Status check_field(const std::string& field, const ShardIndex& index) {
  const std::vector<std::uint32_t> names = numbers_of(field, index);
  if (names.empty())
    return Error{fmt::format("no sample has the field {}; there are {}{}", field,
                             fmt::join(index.field_names(), ", "), did_you_mean(field, index.field_names()))};
  std::uint64_t without = 0, first = 0;
  for (std::uint64_t number = 0; number < index.size(); ++number)
    if (first_of(index.sample(number), names) == nullptr && without++ == 0) first = number;
  if (without == 0) return Unit{};
  const ShardIndex::Sample sample = index.sample(first);
  return Error{fmt::format(
      "{} of {} {} no field {}, the first of them {}: {} (it has {}); leave such samples out of the shards, "
      "or name a field that they have, too (\"jpg;png\" is the first of both that a sample has)",
      without, counted(index.size(), "sample"), without == 1 ? "has" : "have", field,
      world::shown_object(index.shards()[sample.shard].object), sample.key, names_in(sample, index))};
}

/// "bytes 512-600".
std::string shown_place(const FieldPlace& place) {
  if (place.length == 0) return fmt::format("empty, at byte {}", place.offset);
  return fmt::format("bytes {}-{}", place.offset, place.offset + place.length - 1);
}

/// Each sample stands for itself, in any epoch.
std::vector<Pick> as_picks(std::span<const std::uint64_t> samples) {
  std::vector<Pick> picks;
  picks.reserve(samples.size());
  for (const std::uint64_t sample : samples) picks.push_back({sample, sample});
  return picks;
}

}  // namespace

Result<std::unique_ptr<ShardReader>> ShardReader::open(const ReaderOptions& options, world::Store& store) {
  TW_TRY(auto index, read_shard_index(options.index));
  if (index.size() == 0) return Error{fmt::format("{}: no samples", options.index)};
  for (const std::string& field : options.fields) {
    if (const Status found = check_field(field, index); !found)
      return Error{fmt::format("{}: {}", options.index, found.error().message)};
  }
  return std::make_unique<ShardReader>(std::move(index), options, store);
}

ShardReader::ShardReader(ShardIndex index, ReaderOptions options, world::Store& store)
    : index_(std::move(index)),
      options_(std::move(options)),
      fields_(options_.fields.empty() ? index_.field_names() : options_.fields),
      prefetch_(
          index_, store, {.threads = options_.threads, .memory_bytes = options_.memory_bytes},
          [this](const ShardIndex::Sample& sample) { return choose(sample); },
          [this](const Pick& pick, const auto& bytes) { return decode(pick, bytes); }) {
  // The index's own names stand for themselves, also with a semicolon in them.
  for (std::uint32_t number = 0; number < fields_.size(); ++number)
    names_.push_back(options_.fields.empty() ? std::vector{number} : numbers_of(fields_[number], index_));
}

void ShardReader::expect(std::span<const std::uint64_t> samples) { prefetch_.expect(as_picks(samples)); }

Result<std::optional<std::vector<ShardReader::Sample>>> ShardReader::read(
    std::span<const std::uint64_t> samples, Duration limit) {
  const std::vector<Pick> picks = as_picks(samples);
  std::optional<std::vector<Sample>> read;
  if (!prefetch_.wait(picks, limit)) return read;
  TW_TRY(auto taken, prefetch_.take(picks));
  read.emplace();
  std::map<std::uint64_t, std::size_t> places;  // of samples in the answer
  for (const Pick& pick : picks) {
    const auto [known, is_new] = places.try_emplace(pick.index, read->size());
    Sample sample{index_.sample(pick.index).key};
    sample.fields = is_new ? std::move(taken.at(pick).fields) : (*read)[known->second].fields;
    read->push_back(std::move(sample));
  }
  return read;
}

/// The places of the fields that the sample has, in the order of fields().
std::vector<FieldPlace> ShardReader::choose(const ShardIndex::Sample& sample) const {
  std::vector<FieldPlace> places;
  for (const std::vector<std::uint32_t>& names : names_)
    if (const FieldPlace* place = first_of(sample, names)) places.push_back(*place);
  return places;
}

Example ShardReader::decode(const Pick& pick, const std::vector<std::string_view>& bytes) const {
  const ShardIndex::Sample sample = index_.sample(pick.index);
  Example example{.fields = std::vector<FieldValue>(names_.size())};
  std::size_t at = 0;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const FieldPlace* const place = first_of(sample, names_[i]);
    if (place == nullptr) continue;
    const std::string_view content = bytes[at++];
    const std::string& name = index_.field_names()[place->name];
    if (!options_.decodes || !is_decoded(name)) {
      example.fields[i] = std::string(content);
      continue;
    }
    auto decoded = decode_field(name, content, options_.picture);
    if (!decoded)
      return {.broken = fmt::format("{}, {}: {}", name, shown_place(*place), decoded.error().message)};
    example.fields[i] = std::move(decoded).value();
  }
  return example;
}

}  // namespace tw::data
