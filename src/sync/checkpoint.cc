// SPDX-License-Identifier: Apache-2.0
#include "sync/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "wire/frame.h"

namespace tw::sync {

static_assert(std::endian::native == std::endian::little,
              "checkpoints are written by little-endian machines");

namespace {

// File format: magic, version, run, record (as a Commit message, with its length), digest of the parameters,
// the texts of RunWords and the writer, each with its length, origin, begun, number of chunks,
// size and digest of each, digest of all this; then the chunks. Little-endian.
constexpr std::string_view kMagic = "tradewind state\n";
constexpr std::uint32_t kVersion = 7;
constexpr std::string_view kSuffix = ".tw";
constexpr std::string_view kPartSuffix = ".tw.part-";
constexpr std::string_view kOldEnd = ".old";
constexpr std::string_view kOldSuffix = ".tw.old";

class HeaderWriter {
 public:
  template <std::integral T>
  void put(T value) {
    put(std::as_bytes(std::span(&value, 1)));
  }

  void put(const Digest& digest) {
    put(digest.high);
    put(digest.low);
  }

  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    put(std::as_bytes(std::span(text)));
  }

  void put(std::span<const std::byte> raw) { bytes_.insert(bytes_.end(), raw.begin(), raw.end()); }

  std::vector<std::byte> seal() {
    put(digest_of(std::span<const std::byte>(bytes_)));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Reading beyond the end gives zeros and is remembered as a failure.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::integral T>
  T number() {
    T value{};
    const auto raw = take(sizeof value);
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

  Digest digest() {
    const auto high = number<std::uint64_t>();
    return {high, number<std::uint64_t>()};
  }

  std::string text() {
    const auto raw = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

  std::span<const std::byte> take(std::uint64_t n) {
    if (torn_ || n > bytes_.size() - used_) {
      torn_ = true;
      return {};
    }
    used_ += n;
    return bytes_.subspan(used_ - n, n);
  }

  std::span<const std::byte> so_far() const { return bytes_.first(used_); }

  std::uint64_t rest() const { return bytes_.size() - used_; }

  bool torn() const { return torn_; }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t used_ = 0;
  bool torn_ = false;
};

std::vector<std::byte> header_of(const StateImage& image, const CheckpointStore::Options& store,
                                 const Digest& origin, Round begun) {
  HeaderWriter writer;
  writer.put(std::as_bytes(std::span(kMagic)));
  writer.put(kVersion);
  writer.put(image.record.run);
  const Frame record = encode(wire::Message(wire::Commit{image.record}));
  writer.put(static_cast<std::uint32_t>(record.head.size()));
  writer.put(record.head.bytes());
  writer.put(image.parameters);
  const RunWords& words = store.words;
  for (const std::string* text : {&words.layout, &words.facts, &words.end, &store.unique}) writer.put(*text);
  writer.put(origin);
  writer.put(begun);
  writer.put(static_cast<std::uint64_t>(image.chunks.size()));
  for (std::size_t i = 0; i < image.chunks.size(); ++i) {
    writer.put(static_cast<std::uint64_t>(image.chunks[i].size()));
    writer.put(image.digests[i]);
  }
  return writer.seal();
}

struct Header {
  StateImage image;  ///< without its chunks
  RunWords words;
  std::string writer;
  Digest origin;
  Round begun = 0;
  std::vector<std::uint64_t> sizes;
};

constexpr const char* kTorn = "it is cut off";
constexpr const char* kCorrupt = "its header is corrupt";

bool begins_as_checkpoint(std::span<const std::byte> bytes) {
  const auto magic = std::as_bytes(std::span(kMagic));
  return bytes.size() >= magic.size() && std::ranges::equal(bytes.first(magic.size()), magic);
}

bool has_other_version(std::span<const std::byte> bytes) {
  HeaderReader reader(bytes);
  (void)reader.take(kMagic.size());
  const auto version = reader.number<std::uint32_t>();
  return !reader.torn() && version != kVersion;
}

Result<Header> read_header(HeaderReader& reader) {
  const auto magic = reader.take(kMagic.size());
  if (reader.torn()) return Error{kTorn};
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) return Error{"it is not a checkpoint"};
  const auto version = reader.number<std::uint32_t>();
  if (!reader.torn() && version != kVersion)
    return Error{fmt::format("it has format {}, this program reads format {}", version, kVersion)};
  Header header;
  const Digest run = reader.digest();
  const auto record = reader.take(reader.number<std::uint32_t>());
  header.image.parameters = reader.digest();
  RunWords& words = header.words;
  for (std::string* text : {&words.layout, &words.facts, &words.end, &header.writer}) *text = reader.text();
  header.origin = reader.digest();
  header.begun = reader.number<Round>();
  const auto count = reader.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && !reader.torn(); ++i) {
    header.sizes.push_back(reader.number<std::uint64_t>());
    header.image.digests.push_back(reader.digest());
  }
  const Digest expected = digest_of(reader.so_far());
  const Digest found = reader.digest();
  if (reader.torn()) return Error{kTorn};
  if (expected != found) return Error{kCorrupt};
  auto message = wire::decode(Frame{Blob(std::vector(record.begin(), record.end())), {}});
  if (!message || !std::holds_alternative<wire::Commit>(message.value())) return Error{kCorrupt};
  header.image.record = std::move(std::get<wire::Commit>(message.value()).record);
  if (header.image.record.run != run) return Error{kCorrupt};
  return header;
}

Result<StateImage> read_chunks(Header header, HeaderReader& reader) {
  StateImage image = std::move(header.image);
  for (std::size_t i = 0; i < header.sizes.size(); ++i) {
    const auto bytes = reader.take(header.sizes[i]);
    if (reader.torn()) return Error{kTorn};
    if (digest_of(bytes) != image.digests[i]) {
      return Error{fmt::format("chunk {} of {} is corrupt", i + 1, header.sizes.size())};
    }
    image.chunks.emplace_back(std::vector(bytes.begin(), bytes.end()));
  }
  if (reader.rest() > 0) return Error{fmt::format("{} bytes too many follow its last chunk", reader.rest())};
  return image;
}

Result<LoadedCheckpoint> read_bytes(std::span<const std::byte> bytes) {
  HeaderReader reader(bytes);
  TW_TRY(auto header, read_header(reader));
  LoadedCheckpoint loaded;
  loaded.words = std::move(header.words);
  loaded.writer = std::move(header.writer);
  loaded.origin = header.origin;
  loaded.begun = header.begun;
  TW_TRY(auto image, read_chunks(std::move(header), reader));
  loaded.image = std::move(image);
  return loaded;
}

/// "round-000120-1a2b3c4d" names the record: two histories have no name in common.
std::string stem_of(const wire::Record& record) {
  return fmt::format("round-{:06}-{:.8}", record.round, to_string(wire::digest_of(record)));
}

std::string name_of(const wire::Record& record) { return stem_of(record) + std::string(kSuffix); }

/// Round in "round-000120-1a2b3c4d" + suffix (+ anything, for parts); nothing for other names.
std::optional<Round> round_in(std::string_view name, std::string_view suffix, bool open_end) {
  constexpr std::string_view kPrefix = "round-";
  constexpr std::size_t kDigits = 8;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  Round round = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), round);
  if (error != std::errc{}) return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (!name.starts_with('-') || name.size() <= kDigits) return std::nullopt;
  if (name.substr(1, kDigits).find_first_not_of("0123456789abcdef") != name.npos) return std::nullopt;
  name.remove_prefix(1 + kDigits);
  const bool right = open_end ? name.starts_with(suffix) : name == suffix;
  return right ? std::optional(round) : std::nullopt;
}

std::optional<Round> round_of_checkpoint(std::string_view name) { return round_in(name, kSuffix, false); }

std::optional<Round> round_of_part(std::string_view name) { return round_in(name, kPartSuffix, true); }

/// The history of `one` was resumed from a record that counts as much as `other`. Peers that joined it then
/// do not know its origin.
bool was_resumed_from(const wire::Record& one, const wire::Record& other) {
  const bool counted = !other.minority && other.awaited.empty();
  return counted && one.restarts > other.restarts && one.samples_total() >= other.samples_total() &&
         one.majority_samples + other.samples == other.majority_samples;
}

}  // namespace

std::vector<std::string> checkpoints_among(const std::vector<std::string>& names) {
  std::vector<std::pair<Round, std::string>> found;
  for (const std::string& name : names) {
    if (const auto round = round_of_checkpoint(name)) found.emplace_back(*round, name);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> checkpoints;
  checkpoints.reserve(found.size());
  for (auto& [round, name] : found) checkpoints.push_back(std::move(name));
  return checkpoints;
}

bool is_newer(const LoadedCheckpoint& one, const LoadedCheckpoint& other) {
  const wire::Rank rank = rank_of(one.image.record), of_other = rank_of(other.image.record);
  if (one.origin == of_other.record) return true;
  if (other.origin == rank.record) return false;
  if (was_resumed_from(one.image.record, other.image.record)) return true;
  if (was_resumed_from(other.image.record, one.image.record)) return false;
  return goes_before(rank, of_other);
}

Result<CheckpointHead> read_head(std::span<const std::byte> beginning) {
  HeaderReader reader(beginning);
  TW_TRY(auto header, read_header(reader));
  return CheckpointHead{std::move(header.image.record), std::move(header.words)};
}

Result<LoadedCheckpoint> read_checkpoint(world::Files& files, const std::string& path) {
  TW_TRY(const auto bytes, files.read(path));
  auto loaded = read_bytes(bytes);
  if (!loaded) return Error{fmt::format("{}: {}", path, loaded.error().message)};
  loaded.value().path = path;
  return loaded;
}

namespace {

Result<std::optional<LoadedCheckpoint>> newest_among(world::Files& files, const std::string& folder,
                                                     const std::vector<std::string>& names) {
  std::optional<LoadedCheckpoint> first;
  std::vector<std::string> skipped;
  for (const std::string& name : names) {
    auto loaded = read_checkpoint(files, folder + "/" + name);
    if (!loaded) {
      skipped.push_back(loaded.error().message);
    } else if (first && first->image.record.run != loaded.value().image.record.run) {
      return Error{fmt::format("{}: it holds checkpoints of several runs; name one of the files", folder)};
    } else if (!first || is_newer(loaded.value(), *first)) {
      first = std::move(loaded).value();
    }
  }
  if (!first && !skipped.empty()) return Error{skipped.front()};
  if (first) first->skipped = std::move(skipped);
  return first;
}

/// Whether all checkpoints of `before` are still there. A run that lives removes old ones for newer ones.
bool is_within(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  return std::ranges::all_of(checkpoints_among(before), [&](const std::string& name) {
    return std::ranges::find(now, name) != now.end();
  });
}

}  // namespace

Result<std::optional<LoadedCheckpoint>> read_newest_checkpoint(world::Files& files,
                                                               const std::string& folder) {
  constexpr int kMostTries = 5;
  for (int tries = 1;; ++tries) {
    TW_TRY(const auto names, files.list(folder));
    auto newest = newest_among(files, folder, checkpoints_among(names));
    const auto now = files.list(folder);
    if (!now || tries == kMostTries || is_within(names, now.value())) return newest;
  }
}

CheckpointStore::CheckpointStore(world::Files& files, Options options)
    : files_(files), options_(std::move(options)) {
  TW_CHECK(options_.keep > 0 && !options_.folder.empty() && !options_.unique.empty());
}

std::string CheckpointStore::path_of(const std::string& name) const { return options_.folder + "/" + name; }

Status CheckpointStore::make_folder() { return files_.make_folder(options_.folder); }

Result<std::vector<std::string>> CheckpointStore::list() {
  TW_TRY(make_folder());
  return files_.list(options_.folder);
}

Status CheckpointStore::save(const StateImage& image, const Digest& origin, Round begun) {
  TW_TRY(add(image, origin, begun));
  return prune(image.record, origin);
}

Status CheckpointStore::add(const StateImage& image, const Digest& origin, Round begun) {
  TW_CHECK(!image.chunks.empty() && image.digests.size() == image.chunks.size());
  TW_TRY(const auto names, list());
  const std::string name = name_of(image.record);
  const bool there = std::find(names.begin(), names.end(), name) != names.end();
  if (there && examine(name, image.record.run).verdict == Verdict::sound) return Unit{};
  return write(name, image, origin, begun);
}

Status CheckpointStore::write(const std::string& name, const StateImage& image, const Digest& origin,
                              Round begun) {
  const std::string path = path_of(name);
  const bool at_once = world::appears_whole(path);
  const std::string part =
      at_once ? path : path_of(fmt::format("{}{}{}", stem_of(image.record), kPartSuffix, options_.unique));
  const std::vector<std::byte> header = header_of(image, options_, origin, begun);
  std::vector<std::span<const std::byte>> parts{header};
  for (const Blob& chunk : image.chunks) parts.push_back(chunk.bytes());
  Status done = files_.write(part, parts);
  if (done && !at_once) done = files_.rename(part, path);
  if (done) {
    known_[name] = Known(image.record, options_.unique);
  } else if (!at_once) {
    // Makes room for the next attempt. The failed write is reported; a failure to remove the part adds
    // nothing.
    (void)files_.remove(part);
  }
  return done;
}

Status CheckpointStore::prune(const wire::Record& saved, const Digest& origin) {
  TW_TRY(const auto names, list());
  std::vector<std::string> gone, aside;
  std::vector<std::pair<std::string, Known>> others;
  for (const std::string& name : checkpoints_among(names)) {
    if (name == name_of(saved)) continue;
    const bool broken = !known_.contains(name) && examine(name, saved.run).verdict == Verdict::broken;
    if (broken && *round_of_checkpoint(name) < saved.round) gone.push_back(name);
    const auto known = known_.find(name);
    if (known == known_.end() || !known->second) continue;
    if (is_of_former_run(*known->second, saved)) {
      aside.push_back(name);
    } else {
      others.emplace_back(name, *known->second);
    }
  }
  if (Status moved = rename_to_old(aside, saved.run); !moved) return moved;
  std::ranges::sort(others,
                    [](const auto& a, const auto& b) { return goes_before(a.second.rank, b.second.rank); });
  std::size_t kept = 0;
  Round oldest_kept = saved.round;
  for (const auto& [name, other] : others) {
    const bool after_it = goes_before(rank_of(saved), other.rank);
    const bool stays = kept + (after_it ? 1 : 0) < options_.keep && !drops(other, saved, origin);
    kept += stays ? 1 : 0;
    if (stays) oldest_kept = std::min(oldest_kept, other.round);
    if (!stays) gone.push_back(name);
  }
  for (const std::string& name : gone)
    if (Status removed = remove(name); !removed) return removed;
  return remove_parts(names, oldest_kept);
}

CheckpointStore::Known::Known(const wire::Record& record, std::string by)
    : round(record.round), rank(rank_of(record)), writer(std::move(by)) {
  if (record.last) processes = record.members;
}

// A majority that decides an earlier round, none of whose processes came to the end of the run: that was a
// run before it. Otherwise this peer is slower than the one that wrote the last checkpoint.
bool CheckpointStore::is_of_former_run(const Known& other, const wire::Record& saved) {
  const auto takes_part = [&](const wire::Member& one) {
    return std::ranges::any_of(saved.members, [&](const wire::Member& member) { return member.is(one); });
  };
  return !other.processes.empty() && other.round > saved.round && saved.awaited.empty() && !saved.minority &&
         std::ranges::none_of(other.processes, takes_part);
}

// This peer holds the history of `saved`. A checkpoint of its own that has as many rounds, or that goes
// before, is of a history that it gave up.
bool CheckpointStore::drops(const Known& other, const wire::Record& saved, const Digest& origin) const {
  if (other.rank.record == origin) return true;
  return other.writer == options_.unique &&
         (other.round >= saved.round || goes_before(other.rank, rank_of(saved)));
}

Status CheckpointStore::remove_parts(const std::vector<std::string>& names, Round oldest_kept) {
  for (const std::string& name : names) {
    const auto round = round_of_part(name);
    // A killed peer comes back under another name: its leftovers are recognised by their age.
    const bool stale =
        round && (name.ends_with(std::string(kPartSuffix) + options_.unique) || *round < oldest_kept);
    if (!stale) continue;
    if (Status removed = remove(name); !removed) return removed;
  }
  return Unit{};
}

CheckpointStore::Finding CheckpointStore::examine(const std::string& name, const Digest& run) {
  const auto bytes = files_.read(path_of(name));
  if (!bytes) return {Verdict::unreadable, bytes.error().message, {}};
  HeaderReader reader(bytes.value());
  const auto header = read_header(reader);
  if (!header) {
    const Verdict verdict = bytes.value().size() < kMagic.size()   ? Verdict::broken
                            : !begins_as_checkpoint(bytes.value()) ? Verdict::no_checkpoint
                            : has_other_version(bytes.value())     ? Verdict::other_format
                                                                   : Verdict::broken;
    if (verdict != Verdict::broken) known_.try_emplace(name);
    return {verdict, header.error().message, {}};
  }
  const Digest found = header.value().image.record.run;
  if (found != run) {
    known_[name].reset();
    return {
        Verdict::other_run, "it is of another run: " + difference(header.value().words, options_.words), {}};
  }
  auto loaded = read_bytes(bytes.value());
  if (!loaded) return {Verdict::broken, loaded.error().message, {}};
  const wire::Record& record = loaded.value().image.record;
  if (name_of(record) != name)
    return {Verdict::broken, fmt::format("it holds the state of {}", stem_of(record)), {}};
  known_[name] = Known(record, loaded.value().writer);
  loaded.value().path = path_of(name);
  return {Verdict::sound, {}, std::move(loaded).value()};
}

Status CheckpointStore::remove(const std::string& name) {
  Status removed = files_.remove(path_of(name));
  known_.erase(name);
  return removed || is_there(name) ? removed : Status(Unit{});
}

/// Another peer may have removed or renamed it first.
bool CheckpointStore::is_there(const std::string& name) {
  const auto names = list();
  return !names || std::ranges::find(names.value(), name) != names.value().end();
}

Status CheckpointStore::set_aside(const Digest& run) {
  const auto names = files_.list(options_.folder);
  if (!names) return names.error().lasting ? Status(Unit{}) : names.error();
  std::vector<std::string> aside;
  for (const std::string& name : checkpoints_among(names.value()))
    if (examine(name, run).verdict == Verdict::sound) aside.push_back(name);
  return rename_to_old(aside, run);
}

/// One generation of them stays.
Status CheckpointStore::rename_to_old(const std::vector<std::string>& aside, const Digest& run) {
  if (aside.empty()) return Unit{};
  TW_TRY(const auto names, list());
  for (const std::string& name : names) {
    if (!round_in(name, kOldSuffix, false)) continue;
    const auto old = read_checkpoint(files_, path_of(name));
    if (!old || old.value().image.record.run != run) continue;
    if (Status removed = remove(name); !removed) return removed;
  }
  for (const std::string& name : aside) {
    known_.erase(name);
    Status moved = files_.rename(path_of(name), path_of(name + std::string(kOldEnd)));
    if (!moved && is_there(name)) return moved;
  }
  return Unit{};
}

Result<FoundCheckpoints> CheckpointStore::find(const Digest& run) {
  const auto names = files_.list(options_.folder);
  if (!names && names.error().lasting) return FoundCheckpoints{};
  if (!names) return names.error();
  FoundCheckpoints found;
  std::optional<LoadedCheckpoint>& first = found.newest;
  std::set<Verdict> verdicts;
  for (const std::string& name : checkpoints_among(names.value())) {
    Finding finding = examine(name, run);
    verdicts.insert(finding.verdict);
    if (finding.verdict != Verdict::sound) {
      found.unusable.push_back({.name = name,
                                .round = *round_of_checkpoint(name),
                                .why = std::move(finding.why),
                                .damaged = finding.verdict == Verdict::broken});
    } else if (!first || is_newer(finding.loaded, *first)) {
      first = std::move(finding.loaded);
    }
  }
  if (first || found.unusable.empty()) return found;
  found.none = fmt::format("no checkpoint in {} can be used ({})", options_.folder,
                           fmt::join(lines_by_reason(found.unusable), "; "));
  if (verdicts.contains(Verdict::other_run)) {
    found.remedy =
        "To resume it, make that as it was there; to start anew, choose another checkpoint folder.";
  } else if (verdicts.contains(Verdict::other_format)) {
    found.remedy =
        "Resume it with the version that wrote them, or choose another checkpoint folder to start anew.";
  } else {
    found.remedy = "Restore one of them from a copy, or choose another checkpoint folder to start anew.";
  }
  return found;
}

Result<std::optional<LoadedCheckpoint>> CheckpointStore::load_newest(const Digest& run) {
  TW_TRY(auto found, find(run));
  if (!found.none.empty()) return Error{fmt::format("{}. {}", found.none, found.remedy)};
  // Those with fewer rounds would have been left alone, whatever they hold.
  if (found.newest) found.newest->skipped = passed_over(found.unusable, found.newest->image.record.round);
  return std::move(found.newest);
}

}  // namespace tw::sync
