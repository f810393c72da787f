// SPDX-License-Identifier: Apache-2.0
#include "sync/checkpoint.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/memory_files.h"
#include "fuzz/target.h"
#include "sync/test_state.h"
#include "wire/frame.h"

namespace tw::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

void put(Bytes& file, std::span<const std::byte> bytes) {
  file.insert(file.end(), bytes.begin(), bytes.end());
}

void put(Bytes& file, auto value) { put(file, std::as_bytes(std::span(&value, 1))); }

/// A file whose digests are right, whatever else it says (the format: sync/checkpoint.cc).
Bytes sealed_file(Input& input) {
  Bytes file;
  put(file, std::as_bytes(std::span(std::string_view("tradewind state\n"))));
  put(file, static_cast<std::uint32_t>(input.one_in(8) ? input.number() : 7));
  put(file, sync::sample::kRun);
  Material material;
  material.records = sync::sample::history(1, 3);
  wire::Record written = make_record(input, material);
  if (!input.one_in(4)) written.run = sync::sample::kRun;
  const Frame record =
      encode(input.one_in(8) ? make_message(input, material) : wire::Message(wire::Commit{written}));
  put(file, static_cast<std::uint32_t>(input.one_in(8) ? input.number() : record.head.size()));
  put(file, record.head.bytes());
  put(file, Digest{1, 1});
  for (int text = 0; text < 4; ++text) put(file, input.one_in(8) ? input.number() : std::uint64_t{0});
  put(file, input.one_in(4) ? Digest{1, 2} : Digest{});
  put(file, input.one_in(4) ? std::uint64_t{input.number()} : std::uint64_t{0});
  const std::uint64_t chunks = input.below(4);
  put(file, input.one_in(8) ? input.number() : chunks);
  Bytes tail;
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const Bytes chunk = input.bytes(input.below(20));
    put(file, input.one_in(8) ? input.number() : std::uint64_t{chunk.size()});
    put(file, digest_of(std::span<const std::byte>(chunk)));
    put(tail, chunk);
  }
  put(file, digest_of(std::span<const std::byte>(file)));
  put(file, tail);
  return file;
}

/// Name of the checkpoint after this round.
std::string name_of(Round round) {
  MemoryFiles files;
  (void)sync::CheckpointStore(files, {"f", 2, "u"})
      .save(sync::sample::image(sync::sample::history(1, round).back()));
  return files.content.begin()->first.substr(2);
}

Bytes damaged_file(Input& input) {
  MemoryFiles files;
  (void)sync::CheckpointStore(files, {"f", 2, "u"})
      .save(sync::sample::image(sync::sample::history(1, 1).back()));
  Bytes file = files.content.begin()->second;
  for (std::uint64_t n = input.below(3); n > 0; --n) {
    const std::size_t at = (input.below(256) * 256 + input.byte()) % file.size();
    file[at] = static_cast<std::byte>(input.byte());
  }
  if (input.one_in(4)) file.resize((input.below(256) * 256 + input.byte()) % file.size());
  return file;
}

}  // namespace

void checkpoint(Input& input) {
  MemoryFiles files;
  const std::vector<std::string> names = {
      name_of(1),        name_of(2),         "round-000003-00000000.tw.part-x",        "round-.tw",
      "round-000004.tw", "round-000004-.tw", "round-99999999999999999999-00000000.tw", "else"};
  for (std::uint64_t n = 1 + input.below(3); n > 0; --n) {
    const std::uint64_t kind = input.below(3);
    Bytes& file = files.content["f/" + input.one_of(names)];
    file = kind == 0 ? sealed_file(input) : kind == 1 ? damaged_file(input) : input.bytes(input.byte());
  }
  sync::CheckpointStore store(files, {"f", 1 + input.below(2), "u"});
  auto loaded = store.load_newest(sync::sample::kRun);
  if (loaded && loaded.value()) {
    const sync::StateImage& image = loaded.value()->image;
    TW_CHECK(image.record.run == sync::sample::kRun && image.chunks.size() == image.digests.size());
    for (std::size_t i = 0; i < image.chunks.size(); ++i)
      TW_CHECK(digest_of(image.chunks[i].bytes()) == image.digests[i]);
  }
  const sync::StateImage newest = sync::sample::image(sync::sample::history(1, 3).back());
  if (!store.save(newest)) return;
  loaded = sync::CheckpointStore(files, {"f", 2, "v"}).load_newest(sync::sample::kRun);
  TW_CHECK(loaded && loaded.value() && loaded.value()->image.record.round >= 3);
}

}  // namespace tw::fuzz
