// SPDX-License-Identifier: Apache-2.0
#include "data/shards/verify_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "data/shards/decode.h"
#include "data/shards/index_shards.h"

namespace tw::data {
namespace {

constexpr std::size_t kReadsAhead = 4;

/// The bytes of a shard from its begin to its end, some reads ahead.
class ShardStream {
 public:
  ShardStream(world::Store& store, const Shard& shard) : store_(store), shard_(shard) {}

  /// The next kPartBytes, or those that are left; empty: the end.
  Result<std::string> next() {
    while (asked_ < shard_.bytes && coming_.size() < kReadsAhead) ask();
    if (coming_.empty()) return std::string();
    Result<std::string> part = coming_.front().get();
    coming_.pop_front();
    return part;
  }

 private:
  void ask() {
    using Answer = std::promise<Result<std::string>>;
    const auto answer = std::make_shared<Answer>();  // owners: this call, the store
    coming_.push_back(answer->get_future());
    const std::uint64_t length = std::min(kPartBytes, shard_.bytes - asked_);
    store_.read({shard_.object, asked_, length, shard_.version},
                [answer](Result<std::string> bytes) { answer->set_value(std::move(bytes)); });
    asked_ += length;
  }

  world::Store& store_;
  const Shard& shard_;
  std::uint64_t asked_ = 0;
  std::deque<std::future<Result<std::string>>> coming_;
};

/// A field of a sample of one shard.
struct CheckedField {
  FieldPlace place;
  std::uint64_t sample = 0;
};

/// Fields that are decoded, by their places.
std::vector<CheckedField> checked_fields(const ShardIndex& index, std::uint64_t first, std::uint64_t end) {
  const auto is_checked = [&](const FieldPlace& place) {
    return is_decoded(index.field_names()[place.name]);
  };
  std::vector<CheckedField> fields;
  for (std::uint64_t sample = first; sample < end; ++sample)
    for (const FieldPlace& place : index.sample(sample).fields)
      if (is_checked(place)) fields.push_back({place, sample});
  std::ranges::sort(fields, {}, [](const CheckedField& field) { return field.place.offset; });
  return fields;
}

/// Decodes fields as the bytes of their shard come.
class FieldCheck {
 public:
  FieldCheck(const ShardIndex& index, std::vector<CheckedField> fields)
      : index_(index), fields_(std::move(fields)) {}

  void add(const std::string& part) {
    bytes_ += part;
    for (; next_ < fields_.size(); ++next_) {
      const FieldPlace& place = fields_[next_].place;
      if (place.offset + place.length > begin_ + bytes_.size()) break;
      decode(fields_[next_], std::string_view(bytes_).substr(place.offset - begin_, place.length));
    }
    const std::uint64_t end = begin_ + bytes_.size();
    const std::uint64_t kept = next_ == fields_.size() ? end : std::min(end, fields_[next_].place.offset);
    bytes_.erase(0, kept - begin_);
    begin_ = kept;
  }

  std::vector<std::string> take_faults() { return std::move(faults_); }

 private:
  void decode(const CheckedField& field, std::string_view bytes) {
    const std::string& name = index_.field_names()[field.place.name];
    const auto decoded = decode_field(name, bytes, {});
    if (decoded || (may_hold_anything(name) && !decoded.error().lasting)) return;
    const ShardIndex::Sample sample = index_.sample(field.sample);
    faults_.push_back(fmt::format("{}: {}.{}: {}", world::shown_object(index_.shards()[sample.shard].object),
                                  sample.key, name, decoded.error().message));
  }

  const ShardIndex& index_;
  std::vector<CheckedField> fields_;
  std::size_t next_ = 0;
  std::string bytes_;        // of the shard, from begin_ on
  std::uint64_t begin_ = 0;  // at most where the next field begins
  std::vector<std::string> faults_;
};

/// Faults of one shard, whose samples are first to end.
std::vector<std::string> faults_in(const ShardIndex& index, world::Store& store, std::size_t number,
                                   std::pair<std::uint64_t, std::uint64_t> samples) {
  const Shard& shard = index.shards()[number];
  ShardStream stream(store, shard);
  FieldCheck check(index, checked_fields(index, samples.first, samples.second));
  ContentsDigest digest;
  while (true) {
    const Result<std::string> part = stream.next();
    if (!part) return {part.error().message};
    if (part.value().empty()) break;
    if (!shard.contents.empty()) digest.add(part.value());
    check.add(part.value());
  }
  std::vector<std::string> faults = check.take_faults();
  if (!shard.contents.empty() && digest.value() != shard.contents)
    faults.insert(faults.begin(), fmt::format("{}: its bytes are others than those of the index",
                                              world::shown_object(shard.object)));
  return faults;
}

/// Where the samples of each shard begin, and where the last ones end.
std::vector<std::uint64_t> begins_of(const ShardIndex& index) {
  std::vector<std::uint64_t> begins{0};
  for (std::uint64_t sample = 0; sample < index.size(); ++sample)
    while (begins.size() <= index.sample(sample).shard) begins.push_back(sample);
  begins.resize(index.shards().size() + 1, index.size());
  return begins;
}

}  // namespace

std::vector<std::string> faults_of(const ShardIndex& index, world::Store& store, const Verifying& how) {
  const std::vector<std::uint64_t> begins = begins_of(index);
  const std::size_t count = index.shards().size();
  std::vector<std::optional<std::vector<std::string>>> found(count);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next = 0;
  std::vector<std::jthread> threads;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (next < count) {
      const std::size_t shard = next++;
      lock.unlock();
      auto faults = faults_in(index, store, shard, {begins[shard], begins[shard + 1]});
      lock.lock();
      found[shard] = std::move(faults);
      changed.notify_all();
    }
  };
  for (std::size_t i = 0; i < std::min<std::size_t>(static_cast<std::size_t>(how.shards_at_once), count); ++i)
    threads.emplace_back(work);
  std::vector<std::string> all;
  for (std::size_t shard = 0; shard < count; ++shard) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return found[shard].has_value(); });
    std::ranges::move(*found[shard], std::back_inserter(all));
    lock.unlock();
    if (how.progress) how.progress(shard + 1);
  }
  return all;
}

}  // namespace tw::data
