// SPDX-License-Identifier: Apache-2.0
#include "data/shards/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "base/text/text.h"
#include "base/text/text_file.h"
#include "world/store.h"

namespace tw::data {
namespace {

constexpr std::size_t kDigestBytes = 16;
/// What WebDataset writes into a sample beside its fields.
constexpr std::array<std::string_view, 2> kOfWebDataset = {"__key__", "__url__"};
constexpr std::uint64_t kMostIndexBytes = 8ULL << 30;
constexpr std::uint64_t kMostFieldNames = 1000, kMostNameBytes = 8192;

void put_number(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) out += static_cast<char>((number & 0x7fU) | 0x80U);
  out += static_cast<char>(number);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

std::string digest_bytes(std::string_view bytes) {
  const Digest digest = digest_of(std::as_bytes(std::span(bytes)));
  std::string out;
  for (const std::uint64_t half : {digest.high, digest.low})
    for (unsigned shift = 0; shift < 64; shift += 8) out += static_cast<char>(half >> shift & 0xffU);
  return out;
}

/// Takes values off the front. A missing one marks it as bad, and every value after that is empty.
class Decoding {
 public:
  explicit Decoding(std::string_view rest) : rest_(rest) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return bad();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) return bad();
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    return bad();
  }

  /// A count of things of at least one byte each, so it is at most the bytes that are left.
  std::uint64_t count() {
    const std::uint64_t value = number();
    return value <= rest_.size() ? value : bad();
  }

  std::string_view text() {
    const std::uint64_t length = count();
    if (length > kMostNameBytes) bad();
    const std::string_view text = rest_.substr(0, good_ ? length : 0);
    rest_.remove_prefix(text.size());
    return text;
  }

  std::uint64_t bad() {
    good_ = false;
    rest_ = {};
    return 0;
  }

  bool good() const { return good_; }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

/// Keys of the samples of one shard. Each comes once, or its sample would be read in parts, or twice.
class KeysOfShard {
 public:
  /// A sample begins here. Both views outlive this.
  void begin(std::string_view key, std::string_view member) {
    if (known_.insert(key).second) return;
    if (again_++ == 0) first_ = {key, member};
  }

  /// What is wrong; empty: nothing.
  std::string torn() const {
    if (again_ == 0) return {};
    return fmt::format(
        "{}: the sample {} began before, with other samples between ({} in this shard); members of a sample "
        "must be adjacent, and a key may come once (tw data pack and tar --sort=name write them so)",
        first_.second, first_.first, counted(again_, "such place"));
  }

 private:
  std::unordered_set<std::string_view> known_;
  std::uint64_t again_ = 0;
  std::pair<std::string_view, std::string_view> first_;  // key and member
};

bool has_url_scheme(const std::string& name) { return name.find("://") != std::string::npos; }

/// Without a signature, which differs between peers.
std::string file_name(const std::string& object) {
  const std::string shown = world::shown_object(object);
  return shown.substr(shown.rfind('/') + 1);
}

}  // namespace

ShardIndex::Sample ShardIndex::sample(std::uint64_t number) const {
  TW_CHECK(number < samples_.size());
  const Row& row = samples_[number];
  const Row before = number == 0 ? Row{} : samples_[number - 1];
  return {std::string_view(keys_).substr(before.key_end, row.key_end - before.key_end), row.shard,
          std::span(fields_).subspan(before.field_end, row.field_end - before.field_end)};
}

std::uint64_t ShardIndex::count_of(std::string_view field) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      fields_, [&](const FieldPlace& place) { return field_names_[place.name] == field; }));
}

std::uint64_t ShardIndex::bytes() const {
  std::uint64_t all = 0;
  for (const Shard& shard : shards_) all += shard.bytes;
  return all;
}

std::uint32_t ShardIndex::number_of(std::string_view field) {
  const auto number = std::ranges::find(field_names_, field) - field_names_.begin();
  if (number == std::ssize(field_names_)) field_names_.emplace_back(field);
  return static_cast<std::uint32_t>(number);
}

Status ShardIndex::add(Shard shard, const std::vector<TarMember>& members) {
  const std::uint64_t before = samples_.size();
  std::string_view open;
  std::size_t first_field = fields_.size();
  KeysOfShard keys;
  for (const TarMember& member : members) {
    const MemberName name = split_member(member.name);
    if (name.key.empty()) continue;
    if (std::ranges::find(kOfWebDataset, name.field) != kOfWebDataset.end())
      return Error{
          fmt::format("{}: {}: the field {} would replace what a program knows the sample by; rename it",
                      world::shown_object(shard.object), member.name, name.field)};
    if (name.key != open) {
      keys.begin(name.key, member.name);
      samples_.push_back(
          {keys_.size() + name.key.size(), fields_.size(), static_cast<std::uint32_t>(shards_.size())});
      keys_ += name.key;
      open = name.key;
      first_field = fields_.size();
    }
    const FieldPlace place{member.offset, member.length, number_of(name.field)};
    const auto twin = std::find_if(fields_.begin() + static_cast<std::ptrdiff_t>(first_field), fields_.end(),
                                   [&](const FieldPlace& other) { return other.name == place.name; });
    if (twin != fields_.end())
      return Error{
          fmt::format("{}: {} is there twice in one sample", world::shown_object(shard.object), member.name)};
    if (field_names_.size() > kMostFieldNames)
      return Error{fmt::format("{}: more than {} different fields (what follows the first dot of a name)",
                               world::shown_object(shard.object), kMostFieldNames)};
    fields_.push_back(place);
    samples_.back().field_end = fields_.size();
  }
  if (const std::string torn = keys.torn(); !torn.empty())
    return Error{fmt::format("{}: {}", world::shown_object(shard.object), torn)};
  if (samples_.size() == before)
    return Error{fmt::format("{}: no samples (expected members such as 000001.jpg, 000001.cls)",
                             world::shown_object(shard.object))};
  shards_.push_back(std::move(shard));
  return Unit{};
}

Digest ShardIndex::identity() const {
  std::string text;
  for (const Shard& shard : shards_) {
    put_text(text, file_name(shard.object));
    put_number(text, shard.bytes);
    put_text(text, shard.contents.empty() ? shard.version : shard.contents);
  }
  encode_samples(text);
  return digest_of(text);
}

void ShardIndex::encode_samples(std::string& out) const {
  put_number(out, field_names_.size());
  for (const std::string& name : field_names_) put_text(out, name);
  put_number(out, samples_.size());
  std::uint32_t shard = 0;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < samples_.size(); ++i) {
    const Sample one = sample(i);
    if (one.shard != shard) at = 0;
    put_number(out, one.shard - shard);
    put_text(out, one.key);
    put_number(out, one.fields.size());
    for (const FieldPlace& place : one.fields) {
      put_number(out, place.name);
      // Members are in order, so their distances are small; a negative one wraps around.
      put_number(out, place.offset - at);
      put_number(out, place.length);
      at = place.offset + place.length;
    }
    shard = static_cast<std::uint32_t>(one.shard);
  }
}

std::string ShardIndex::encode() const {
  std::string out(kIndexMagic);
  put_number(out, shards_.size());
  for (const Shard& shard : shards_) {
    put_text(out, shard.object);
    put_number(out, shard.bytes);
    put_text(out, shard.version);
    put_text(out, shard.contents);
  }
  encode_samples(out);
  return out + digest_bytes(out);
}

Result<ShardIndex> ShardIndex::decode(std::string_view bytes) {
  if (!bytes.starts_with(kIndexMagic)) return Error{"not an index of shards (tw data index writes one)"};
  if (bytes.size() < kIndexMagic.size() + kDigestBytes) return Error{"it is cut off"};
  const std::string_view content = bytes.substr(0, bytes.size() - kDigestBytes);
  if (digest_bytes(content) != bytes.substr(content.size())) return Error{"it is cut off or damaged"};
  Decoding in(content.substr(kIndexMagic.size()));
  const Error wrong{"its parts do not fit together"};
  ShardIndex index;
  for (std::uint64_t left = in.count(); left > 0 && in.good(); --left) {
    Shard shard{std::string(in.text()), in.number(), {}, {}};
    shard.version = in.text();
    shard.contents = in.text();
    index.shards_.push_back(std::move(shard));
  }
  for (std::uint64_t left = in.count(); left > 0 && in.good(); --left)
    index.field_names_.emplace_back(in.text());
  if (index.field_names_.size() > kMostFieldNames) return wrong;
  std::uint64_t shard = 0, at = 0;
  for (std::uint64_t left = in.count(); left > 0 && in.good(); --left) {
    const std::uint64_t step = in.number();
    if (step > 0) at = 0;
    if (step >= index.shards_.size() || (shard += step) >= index.shards_.size()) return wrong;
    index.keys_ += in.text();
    for (std::uint64_t fields = in.count(); fields > 0 && in.good(); --fields) {
      const std::uint64_t name = in.number();
      const std::uint64_t offset = at + in.number();
      const std::uint64_t length = in.number(), end = index.shards_[shard].bytes;
      if (name >= index.field_names_.size() || offset > end || length > end - offset) return wrong;
      index.fields_.push_back({offset, length, static_cast<std::uint32_t>(name)});
      at = offset + length;
    }
    index.samples_.push_back({index.keys_.size(), index.fields_.size(), static_cast<std::uint32_t>(shard)});
  }
  if (!in.good() || !in.at_end()) return wrong;
  return index;
}

Result<ShardIndex> read_shard_index(const std::string& path) {
  if (has_url_scheme(path))
    return Error{world::shown_object(path) +
                 ": an index is read from this machine alone; copy it here first"};
  TW_TRY(const auto bytes, read_text_file(path, kMostIndexBytes));
  auto index = ShardIndex::decode(bytes);
  if (!index) return Error{fmt::format("{}: {}", path, index.error().message)};
  for (const Shard& shard : index.value().shards()) {
    if (!shard.version.empty()) continue;
    return Error{fmt::format(
        "{}: {} has no version, so a read may mix two (the server sent neither ETag nor Last-Modified); make "
        "the index anew, from a server that sends one",
        path, world::shown_object(shard.object))};
  }
  // Shards are opened later, when the program may have changed its working folder.
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  index.value().rename([&](const std::string& object) {
    return has_url_scheme(object) ? object : (folder / object).lexically_normal().string();
  });
  return index;
}

}  // namespace tw::data
