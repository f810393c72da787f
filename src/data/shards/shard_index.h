// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "data/shards/tar_members.h"

namespace tw::data {

/// A .twi file begins with it.
inline constexpr std::string_view kIndexMagic = "TWINDEX1";

/// One version of a tar of samples.
struct Shard {
  std::string object;  ///< URL, or path; a relative one is relative to the file of the index
  std::uint64_t bytes = 0;
  std::string version{};   ///< world::ObjectFacts::version
  std::string contents{};  ///< digest of all its bytes; empty: not taken

  bool operator==(const Shard&) const = default;
};

/// Position of one field of a sample in its shard. 24 bytes in memory, about 6 in a file.
struct FieldPlace {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t name = 0;  ///< ShardIndex::field_names

  bool operator==(const FieldPlace&) const = default;
};

/// The samples of a set of shards, and the places of their fields. Samples are numbered through all shards,
/// in their order. Whatever file it was read from, places lie inside their shards, and names exist.
class ShardIndex {
 public:
  struct Sample {
    std::string_view key;
    std::size_t shard = 0;
    std::span<const FieldPlace> fields{};
  };

  std::uint64_t size() const { return samples_.size(); }

  /// number < size().
  Sample sample(std::uint64_t number) const;

  const std::vector<Shard>& shards() const { return shards_; }

  const std::vector<std::string>& field_names() const { return field_names_; }

  /// Samples that have this field.
  std::uint64_t count_of(std::string_view field) const;

  /// Bytes of all shards.
  std::uint64_t bytes() const;

  /// Adds a shard with its members: adjacent members with one key are a sample. Errors: two members with the
  /// same field in one sample, a key that comes again after another one, or a shard without any sample.
  Status add(Shard shard, const std::vector<TarMember>& members);

  /// Replaces the names of shards, for example by relative ones.
  template <class Rename>
  void rename(Rename rename) {
    for (Shard& shard : shards_) shard.object = rename(shard.object);
  }

  /// Identifies the data in a run: names of the files without their folders, sizes, keys and places of the
  /// samples; and the contents' digests, or the versions where there are none.
  Digest identity() const;

  /// Encodes a .twi file. Numbers are in base 128, least digit first; the last 16 bytes are its digest.
  std::string encode() const;

  /// The error says what is wrong with the bytes.
  static Result<ShardIndex> decode(std::string_view bytes);

  bool operator==(const ShardIndex&) const = default;

 private:
  struct Row {
    std::uint64_t key_end = 0;    ///< in keys_; the key begins where the previous one ends
    std::uint64_t field_end = 0;  ///< the same for fields_
    std::uint32_t shard = 0;

    bool operator==(const Row&) const = default;
  };

  std::uint32_t number_of(std::string_view field);
  void encode_samples(std::string& out) const;

  std::vector<Shard> shards_;
  std::vector<std::string> field_names_;
  std::string keys_;
  std::vector<FieldPlace> fields_;
  std::vector<Row> samples_;
};

/// Reads a .twi file; shards with relative names are beside it. Errors name the path; one is a shard without
/// a version.
Result<ShardIndex> read_shard_index(const std::string& path);

}  // namespace tw::data
