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
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "wire/frame.h"

namespace tw::sync {

static_assert(std::endian::native == std::endian::little,
              "checkpoints are written by little-endian machines");

namespace {

// File format: magic, version, run, record (as a Commit message, with its length), digest of the parameters,
// the texts of RunWords, each with its length, number of chunks, size and digest of each, digest of all this;
// then the chunks. Little-endian.
constexpr std::string_view kMagic = "tradewind state\n";
constexpr std::uint32_t kVersion = 5;
constexpr std::string_view kSuffix = ".tw";
constexpr std::string_view kPartSuffix = ".tw.part-";

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

std::vector<std::byte> header_of(const StateImage& image, const RunWords& words) {
  HeaderWriter writer;
  writer.put(std::as_bytes(std::span(kMagic)));
  writer.put(kVersion);
  writer.put(image.record.run);
  const Frame record = encode(wire::Message(wire::Commit{image.record}));
  writer.put(static_cast<std::uint32_t>(record.head.size()));
  writer.put(record.head.bytes());
  writer.put(image.parameters);
  for (const std::string* text : {&words.layout, &words.facts, &words.end}) writer.put(*text);
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
  std::vector<std::uint64_t> sizes;
};

constexpr const char* kTorn = "it is cut off";
constexpr const char* kCorrupt = "its header is corrupt";

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
  for (std::string* text : {&header.words.layout, &header.words.facts, &header.words.end})
    *text = reader.text();
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
  auto header = read_header(reader);
  if (!header) return header.error();
  RunWords words = std::move(header.value().words);
  auto image = read_chunks(std::move(header).value(), reader);
  if (!image) return image.error();
  return LoadedCheckpoint{std::move(image).value(), std::move(words), {}};
}

std::string name_of(Round round) { return fmt::format("round-{:06}{}", round, kSuffix); }

/// Round in "round-000120" + suffix (+ anything, for parts); nothing for other names.
std::optional<Round> round_in(std::string_view name, std::string_view suffix, bool open_end) {
  constexpr std::string_view kPrefix = "round-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  Round round = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), round);
  if (error != std::errc{}) return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  const bool right = open_end ? name.starts_with(suffix) : name == suffix;
  return right ? std::optional(round) : std::nullopt;
}

std::optional<Round> round_of_checkpoint(std::string_view name) { return round_in(name, kSuffix, false); }

std::optional<Round> round_of_part(std::string_view name) { return round_in(name, kPartSuffix, true); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end != 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Newest first.
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

}  // namespace

Result<LoadedCheckpoint> read_checkpoint(world::Files& files, const std::string& path) {
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  auto loaded = read_bytes(bytes.value());
  if (!loaded) return Error{fmt::format("{}: {}", path, loaded.error().message)};
  return loaded;
}

Result<std::optional<std::string>> newest_checkpoint(world::Files& files, const std::string& folder) {
  const auto names = files.list(folder);
  if (!names) return names.error();
  const std::vector<std::string> checkpoints = checkpoints_among(names.value());
  if (checkpoints.empty()) return std::optional<std::string>();
  return std::optional(folder + "/" + checkpoints.front());
}

CheckpointStore::CheckpointStore(world::Files& files, Options options)
    : files_(files), options_(std::move(options)) {
  TW_CHECK(options_.keep > 0 && !options_.folder.empty() && !options_.unique.empty());
}

std::string CheckpointStore::path_of(const std::string& name) const { return options_.folder + "/" + name; }

Status CheckpointStore::make_folder() { return files_.make_folder(options_.folder); }

Result<std::vector<std::string>> CheckpointStore::list() {
  if (Status made = make_folder(); !made) return made.error();
  return files_.list(options_.folder);
}

Status CheckpointStore::save(const StateImage& image) {
  TW_CHECK(!image.chunks.empty() && image.digests.size() == image.chunks.size());
  const auto names = list();
  if (!names) return names.error();
  const std::string name = name_of(image.record.round);
  bool done = false;
  if (std::find(names.value().begin(), names.value().end(), name) != names.value().end()) {
    const Finding there = examine(name, image.record.run);
    if (there.verdict == Verdict::other_run) {
      return Error{
          fmt::format("{} is in the way: {}. Choose another checkpoint folder.", path_of(name), there.why)};
    }
    done = there.verdict == Verdict::sound && there.loaded.image.record == image.record;
  }
  if (!done) {
    if (Status written = write(name, image); !written) return written;
  }
  return prune(image);
}

Status CheckpointStore::write(const std::string& name, const StateImage& image) {
  const std::string part =
      path_of(fmt::format("round-{:06}{}{}", image.record.round, kPartSuffix, options_.unique));
  const std::vector<std::byte> header = header_of(image, options_.words);
  std::vector<std::span<const std::byte>> parts{header};
  for (const Blob& chunk : image.chunks) parts.push_back(chunk.bytes());
  Status done = files_.write(part, parts);
  if (done) done = files_.rename(part, path_of(name));
  if (done) {
    ours_.insert(name);
  } else {
    // Makes room for the next attempt. The failed write is reported; a failure to remove the part adds
    // nothing.
    (void)files_.remove(part);
  }
  return done;
}

Status CheckpointStore::prune(const StateImage& saved) {
  const auto names = list();
  if (!names) return names.error();
  std::vector<std::string> candidates = checkpoints_among(names.value());
  // Later ones belong to a peer that is ahead and shares the folder, or to another run.
  std::erase_if(candidates,
                [&](const auto& name) { return *round_of_checkpoint(name) > saved.record.round; });
  if (candidates.size() > options_.keep) {
    std::erase_if(candidates, [&](const auto& name) {
      return !ours_.contains(name) && examine(name, saved.record.run).verdict == Verdict::other_run;
    });
  }
  for (std::size_t i = options_.keep; i < candidates.size(); ++i) {
    if (Status removed = remove(candidates[i]); !removed) return removed;
  }
  candidates.resize(std::min(candidates.size(), options_.keep));
  const Round oldest_kept = candidates.empty() ? 0 : *round_of_checkpoint(candidates.back());
  for (const std::string& name : names.value()) {
    const auto round = round_of_part(name);
    // A killed peer comes back under another name: its leftovers are recognised by their age.
    const bool stale =
        round && (name.ends_with(std::string(kPartSuffix) + options_.unique) || *round < oldest_kept);
    if (!stale) continue;
    if (Status removed = remove(name); !removed) return removed;
  }
  return Unit{};
}

/// The first fact that differs: the others may follow from it.
std::string CheckpointStore::difference(const RunWords& theirs) const {
  const auto lines = [](const RunWords& words) { return lines_of(words.facts + '\n' + words.layout); };
  const std::vector<std::string> there = lines(theirs), here = lines(options_.words);
  const auto [one, other] = std::ranges::mismatch(there, here);
  const auto quoted = [](auto at, auto end) { return at == end ? "nothing" : '"' + *at + '"'; };
  if (one == there.end() && other == here.end()) return "the number of its parameters differs";
  return fmt::format("there {}, here {}", quoted(one, there.end()), quoted(other, here.end()));
}

CheckpointStore::Finding CheckpointStore::examine(const std::string& name, const Digest& run) {
  const auto bytes = files_.read(path_of(name));
  if (!bytes) return {Verdict::unusable, bytes.error().message, {}};
  HeaderReader reader(bytes.value());
  const auto header = read_header(reader);
  if (!header) return {Verdict::unusable, header.error().message, {}};
  const Digest found = header.value().image.record.run;
  if (found != run)
    return {Verdict::other_run, "it is of another run: " + difference(header.value().words), {}};
  auto loaded = read_bytes(bytes.value());
  if (!loaded) return {Verdict::unusable, loaded.error().message, {}};
  const Round round = loaded.value().image.record.round;
  if (name_of(round) != name) return {Verdict::unusable, fmt::format("it holds round {}", round), {}};
  ours_.insert(name);
  return {Verdict::sound, {}, std::move(loaded).value()};
}

Status CheckpointStore::remove(const std::string& name) {
  Status removed = files_.remove(path_of(name));
  ours_.erase(name);
  if (removed) return removed;
  // Another peer may have removed it first.
  const auto names = list();
  const bool there =
      !names || std::find(names.value().begin(), names.value().end(), name) != names.value().end();
  return there ? removed : Status(Unit{});
}

Result<std::optional<LoadedCheckpoint>> CheckpointStore::load_newest(const Digest& run) {
  const auto names = files_.list(options_.folder);
  if (!names && names.error().lasting) return std::optional<LoadedCheckpoint>();
  if (!names) return names.error();
  const std::vector<std::string> checkpoints = checkpoints_among(names.value());
  if (checkpoints.empty()) return std::optional<LoadedCheckpoint>();
  std::vector<std::string> skipped;
  bool other_run = false;
  for (const std::string& name : checkpoints) {
    Finding finding = examine(name, run);
    if (finding.verdict == Verdict::sound) {
      finding.loaded.skipped = std::move(skipped);
      return std::optional(std::move(finding.loaded));
    }
    other_run = other_run || finding.verdict == Verdict::other_run;
    skipped.push_back(fmt::format("{}: {}", name, finding.why));
  }
  const std::string advice =
      other_run ? "To resume it, make that as it was there; to start anew, choose another checkpoint folder."
                : "Restore one of them from a copy, or choose another checkpoint folder to start anew.";
  return Error{fmt::format("no checkpoint in {} can be used ({}). {}", options_.folder,
                           fmt::join(skipped, "; "), advice)};
}

}  // namespace tw::sync
