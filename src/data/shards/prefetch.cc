// SPDX-License-Identifier: Apache-2.0
#include "data/shards/prefetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

namespace tw::data {
namespace {

/// Number of samples to read ahead: the first value per sample of a take, and the maximum.
constexpr std::uint64_t kFirstAhead = 8, kMostAhead = 1U << 20;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

enum class Stage : std::uint8_t { wanted, reading, read, decoding, ready };

/// A byte range of a shard, and the samples in it.
struct ReadJob {
  world::Extent extent;
  std::vector<Pick> samples;
};

std::uint64_t bytes_of(const FieldValue& field) {
  if (const auto* array = std::get_if<Array>(&field))
    return std::visit([](const auto& values) { return values.size() * sizeof(values[0]); }, array->values);
  const auto* bytes = std::get_if<std::string>(&field);
  return bytes == nullptr ? 0 : bytes->size();
}

}  // namespace

struct Prefetch::State {
  struct Entry {
    Stage stage = Stage::wanted;
    bool needed = false;                         ///< a thread waits for it
    bool read_twice = false;                     ///< the first decoding failed: read past any cache
    bool held_back = false;                      ///< only the window kept it from being read earlier
    std::vector<FieldPlace> fields{};            ///< from `wanted` on
    std::shared_ptr<const std::string> bytes{};  // owners: the samples of one read
    std::uint64_t bytes_at = 0;                  ///< place of the bytes in the shard
    std::uint64_t held = 0;                      ///< its part of held_bytes
    Example example{};

    bool is_ahead() const { return stage != Stage::wanted && !needed; }
  };

  State(const ShardIndex& all, world::Store& from, Settings given, Choose chosen, Decode decoded)
      : index(all),
        store(from),
        settings(std::move(given)),
        choose(std::move(chosen)),
        decode(std::move(decoded)) {}

  const ShardIndex& index;
  world::Store& store;
  const Settings settings;
  const Choose choose;
  const Decode decode;

  // All members below are guarded by the mutex.
  mutable std::mutex mutex;
  std::condition_variable changed;  ///< work for a thread
  std::condition_variable ready;    ///< one more example is ready
  std::map<Pick, Entry> entries;
  std::set<Pick> expected;
  std::set<Pick> taken;     ///< samples of `expected`: a lease lasts until its samples are computed
  std::deque<Pick> wanted;  ///< not requested yet; some may be gone
  std::deque<Pick> came;    ///< to be decoded; some may be gone
  std::uint64_t reads_under_way = 0, reads = 0, bytes_read = 0, held = 0;
  std::uint64_t ahead = 0;            ///< entries that are read ahead
  std::uint64_t window = kUnlimited;  ///< limit of `ahead`
  bool closing = false;

  Entry* find(const Pick& pick, Stage stage) {
    const auto found = entries.find(pick);
    return found == entries.end() || found->second.stage != stage ? nullptr : &found->second;
  }

  void change(Entry& entry, Stage stage, bool needed) {
    ahead -= entry.is_ahead() ? 1 : 0;
    entry.stage = stage;
    entry.needed = needed;
    ahead += entry.is_ahead() ? 1 : 0;
  }

  void hold(Entry& entry, std::uint64_t bytes) {
    held += bytes - entry.held;
    entry.held = bytes;
  }

  void drop(std::map<Pick, Entry>::iterator at) {
    change(at->second, Stage::wanted, at->second.needed);
    hold(at->second, 0);
    entries.erase(at);
  }

  void add(const Pick& pick, bool needed);
  /// Before the first take, everything expected is read.
  void adapt_window(std::uint64_t samples, bool late);
  void need(std::span<const Pick> samples);
  const Pick* first_missing(std::span<const Pick> samples) const;
  bool was_held_back(std::span<const Pick> samples);
  void read_again(const Pick& pick);
  void await(std::unique_lock<std::mutex>& lock, std::span<const Pick> samples);
  bool has_room() const;
  bool can_read();
  bool can_decode();
  ReadJob next_read();
  bool joins(const ReadJob& job, const Entry& entry, std::size_t shard) const;
  void arrived(const ReadJob& job, Result<std::string> bytes);
  void decode_one(std::unique_lock<std::mutex>& lock);
  void finish(const Pick& pick, Example example);
  std::string name_of(const Pick& pick) const;
};

std::string Prefetch::State::name_of(const Pick& pick) const {
  const ShardIndex::Sample sample = index.sample(pick.index);
  return fmt::format("{}: {}", world::shown_object(index.shards()[sample.shard].object), sample.key);
}

void Prefetch::State::add(const Pick& pick, bool needed) {
  const auto [at, is_new] = entries.try_emplace(pick);
  const bool known = at->second.needed;
  change(at->second, at->second.stage, known || needed);
  if (!is_new) {
    if (known) return;
    if (needed && at->second.stage == Stage::wanted) wanted.push_front(pick);
    if (needed && at->second.stage == Stage::read) came.push_front(pick);
    if (needed && at->second.stage == Stage::ready && !at->second.example.unread.empty()) read_again(pick);
    return;
  }
  at->second.fields = choose(index.sample(pick.index));
  if (at->second.fields.empty())
    return finish(pick, {.broken = name_of(pick) + ": it has none of the fields that are read"});
  if (needed) {
    wanted.push_front(pick);
  } else {
    wanted.push_back(pick);
  }
}

/// The next samples are always on their way. A late sample that the window held back doubles the window; each
/// take shrinks it by a 32nd. So a lease that moves to another peer costs few bytes.
void Prefetch::State::adapt_window(std::uint64_t samples, bool late) {
  if (window == kUnlimited) window = kFirstAhead * samples;
  window = late ? 2 * window : window - std::min(window, window / 32 + 1);
  window = std::clamp(window, samples, std::max(samples, kMostAhead));
}

/// A thread waits for these.
void Prefetch::State::need(std::span<const Pick> samples) {
  // From the last to the first, so that the first one ends up at the front.
  for (auto pick = samples.rbegin(); pick != samples.rend(); ++pick) add(*pick, true);
  changed.notify_all();
}

/// The first of these that is not there yet; null if all are. All must have been needed.
const Pick* Prefetch::State::first_missing(std::span<const Pick> samples) const {
  const auto found =
      std::ranges::find_if(samples, [&](const Pick& pick) { return entries.at(pick).stage != Stage::ready; });
  return found == samples.end() ? nullptr : &*found;
}

/// True, once, if the first missing one of these could have been read earlier.
bool Prefetch::State::was_held_back(std::span<const Pick> samples) {
  const Pick* const first = first_missing(samples);
  return first != nullptr && std::exchange(entries.at(*first).held_back, false);
}

/// Reads a sample once more that could not be read ahead of time, since the store may be back, or that could
/// not be decoded.
void Prefetch::State::read_again(const Pick& pick) {
  Entry& entry = entries.at(pick);
  change(entry, Stage::wanted, entry.needed);
  entry.example = {};
  entry.bytes.reset();
  wanted.push_front(pick);
}

/// From the last to the first, so that the first one ends up at the front.
void Prefetch::State::await(std::unique_lock<std::mutex>& lock, std::span<const Pick> samples) {
  need(samples);
  if (was_held_back(samples)) adapt_window(samples.size(), true);
  ready.wait(lock, [&] { return first_missing(samples) == nullptr; });
}

/// Half of the memory is for the results of decoding.
bool Prefetch::State::has_room() const {
  return held < std::max<std::uint64_t>(1, settings.memory_bytes / 2);
}

/// Makes the first of `came` one that may be decoded now.
bool Prefetch::State::can_decode() {
  while (!came.empty() && find(came.front(), Stage::read) == nullptr) came.pop_front();
  return !came.empty() && (held < settings.memory_bytes || entries.at(came.front()).needed);
}

/// Makes the first of `wanted` one that may be read now.
bool Prefetch::State::can_read() {
  while (!wanted.empty() && find(wanted.front(), Stage::wanted) == nullptr) wanted.pop_front();
  if (wanted.empty() || reads_under_way >= settings.reads_at_once) return false;
  Entry& first = entries.at(wanted.front());
  if (first.needed || !has_room()) return first.needed;
  first.held_back = first.held_back || ahead >= window;
  return ahead < window;
}

bool Prefetch::State::joins(const ReadJob& job, const Entry& entry, std::size_t shard) const {
  TW_CHECK(!entry.fields.empty());
  const auto [first, last] = std::ranges::minmax(entry.fields, {}, &FieldPlace::offset);
  const std::uint64_t end = job.extent.offset + job.extent.length;
  return index.shards()[shard].object == job.extent.object && first.offset >= end &&
         first.offset - end <= kMostGap && last.offset + last.length - job.extent.offset <= kMostReadBytes;
}

ReadJob Prefetch::State::next_read() {
  ReadJob job;
  while (!wanted.empty()) {
    const Pick pick = wanted.front();
    Entry* const entry = find(pick, Stage::wanted);
    if (entry != nullptr) {
      const std::size_t shard = index.sample(pick.index).shard;
      if (!job.samples.empty() && !joins(job, *entry, shard)) break;
      TW_CHECK(!entry->fields.empty());
      const auto [first, last] = std::ranges::minmax(entry->fields, {}, &FieldPlace::offset);
      const std::uint64_t end = last.offset + last.length;
      if (job.samples.empty())
        job.extent = {index.shards()[shard].object, first.offset, 0, index.shards()[shard].version};
      job.extent.length = end - job.extent.offset;
      job.extent.anew = job.extent.anew || entry->read_twice;
      hold(*entry, end - first.offset);
      change(*entry, Stage::reading, entry->needed);
      job.samples.push_back(pick);
    }
    wanted.pop_front();
  }
  ++reads_under_way;
  ++reads;
  bytes_read += job.extent.length;
  return job;
}

void Prefetch::State::arrived(const ReadJob& job, Result<std::string> bytes) {
  const std::lock_guard lock(mutex);
  --reads_under_way;
  std::shared_ptr<const std::string> content;  // owners: the samples of this read
  if (bytes) content = std::make_shared<const std::string>(std::move(bytes).value());  // owners: the same
  for (const Pick& pick : job.samples) {
    Entry* const entry = find(pick, Stage::reading);
    if (entry == nullptr) continue;
    if (!content) {
      finish(pick, {.unread = bytes.error().message});
      continue;
    }
    change(*entry, Stage::read, entry->needed);
    entry->bytes = content;
    entry->bytes_at = job.extent.offset;
    if (entry->needed) {
      came.push_front(pick);
    } else {
      came.push_back(pick);
    }
  }
  changed.notify_all();
}

void Prefetch::State::finish(const Pick& pick, Example example) {
  const auto found = entries.find(pick);
  if (found == entries.end()) return;
  Entry& entry = found->second;
  entry.example = std::move(example);
  entry.bytes.reset();
  change(entry, Stage::ready, entry.needed);
  std::uint64_t bytes = 0;
  for (const FieldValue& field : entry.example.fields) bytes += bytes_of(field);
  hold(entry, bytes);
  ready.notify_all();
}

void Prefetch::State::decode_one(std::unique_lock<std::mutex>& lock) {
  const Pick pick = came.front();
  came.pop_front();
  Entry* const entry = find(pick, Stage::read);
  change(*entry, Stage::decoding, entry->needed);
  const auto content = entry->bytes;
  const std::uint64_t begin = entry->bytes_at;
  const std::vector<FieldPlace> places = entry->fields;
  lock.unlock();
  std::vector<std::string_view> fields;
  for (const FieldPlace& place : places)
    fields.push_back(std::string_view(*content).substr(place.offset - begin, place.length));
  Example example;
  try {
    example = decode(pick, fields);
  } catch (const std::exception& error) {  // such as out of memory
    example = {.broken = error.what()};
  }
  if (!example.broken.empty()) example.broken = fmt::format("{}: {}", name_of(pick), example.broken);
  lock.lock();
  Entry* const decoded = find(pick, Stage::decoding);
  if (decoded == nullptr) return;
  if (example.broken.empty() || std::exchange(decoded->read_twice, true))
    return finish(pick, std::move(example));
  read_again(pick);
  changed.notify_all();
}

Prefetch::Prefetch(const ShardIndex& index, world::Store& store, Settings settings, Choose choose,
                   Decode decode)
    : state_(std::make_shared<State>(index, store, std::move(settings), std::move(choose),  // owners: above
                                     std::move(decode))) {
  for (int i = 0; i < std::max(1, state_->settings.threads); ++i) threads_.emplace_back([this] { work(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closing = true;
  }
  state_->changed.notify_all();
}

void Prefetch::work() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return state.closing || state.can_read() || state.can_decode(); });
    if (state.closing) return;
    if (!state.can_read()) {
      state.decode_one(lock);
      continue;
    }
    const ReadJob job = state.next_read();
    lock.unlock();
    if (job.extent.length == 0) {
      state.arrived(job, std::string());
    } else {
      state.store.read(job.extent, [shared = state_, job](Result<std::string> bytes) {
        shared->arrived(job, std::move(bytes));
      });
    }
    lock.lock();
  }
}

void Prefetch::expect(std::span<const Pick> samples) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.expected = {samples.begin(), samples.end()};
  for (auto at = state.entries.begin(); at != state.entries.end();) {
    const auto next = std::next(at);
    if (!at->second.needed && !state.expected.contains(at->first)) state.drop(at);
    at = next;
  }
  std::erase_if(state.taken, [&](const Pick& pick) { return !state.expected.contains(pick); });
  state.wanted.clear();
  for (const auto& [pick, entry] : state.entries)
    if (entry.needed && entry.stage == Stage::wanted) state.wanted.push_back(pick);
  for (const Pick& pick : samples) {
    if (state.find(pick, Stage::wanted) != nullptr) {
      state.wanted.push_back(pick);
    } else if (!state.taken.contains(pick)) {
      state.add(pick, false);
    }
  }
  state.changed.notify_all();
}

bool Prefetch::wait(std::span<const Pick> samples, Duration limit) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.need(samples);
  if (state.was_held_back(samples)) state.adapt_window(samples.size(), true);
  return state.ready.wait_for(lock, limit, [&] { return state.first_missing(samples) == nullptr; });
}

Result<std::map<Pick, Example>> Prefetch::take(std::span<const Pick> samples) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.await(lock, samples);
  state.adapt_window(samples.size(), false);
  std::map<Pick, Example> taken;
  std::string failure;
  for (const Pick& pick : samples) {
    const auto found = state.entries.find(pick);
    if (found == state.entries.end()) continue;  // the list contains it twice
    Example example = std::move(found->second.example);
    state.drop(found);
    if (!failure.empty()) continue;  // nobody needs the others any more
    failure = example.unread.empty() ? example.broken : example.unread;
    taken.emplace(pick, std::move(example));
    if (state.expected.contains(pick)) state.taken.insert(pick);
  }
  state.changed.notify_all();
  if (!failure.empty()) return Error{failure};
  return taken;
}

std::uint64_t Prefetch::reads() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reads;
}

std::uint64_t Prefetch::bytes_read() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes_read;
}

std::uint64_t Prefetch::held_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held;
}

}  // namespace tw::data
