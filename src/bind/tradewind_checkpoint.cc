// SPDX-License-Identifier: Apache-2.0
#include "bind/tradewind_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "bind/boundary.h"
#include "host/store/object_place.h"
#include "host/store/store_files.h"
#include "sync/checkpoint.h"

using namespace tw;
using namespace tw::bind;

struct tw_checkpoint {
  sync::LoadedCheckpoint loaded;
  std::string run, skipped;
};

namespace {

constexpr std::string_view kWanted = "expected a checkpoint (round-NNNNNN-*.tw) or a folder of them";

bool is_in_store(const std::string& path) { return host::is_s3(path) || host::is_gs(path); }

/// A file of this machine may have been renamed. Objects are known by their names, which is one request less.
bool is_file(const std::string& path) {
  const bool is_named = path.ends_with(".tw") || path.ends_with(".tw.old");
  if (is_in_store(path)) return is_named;
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) ||
         (is_named && !std::filesystem::is_directory(path, none));
}

/// "file:/shared" is a folder of this machine, as in run files. Without a slash at the end, too.
std::string without_scheme(std::string path) {
  constexpr std::string_view kFile = "file:", kStore = "s3://";
  if (path.starts_with("file:/")) path.erase(0, kFile.size());
  const std::size_t begin = is_in_store(path) ? kStore.size() : 1;
  while (path.size() > begin && path.ends_with('/')) path.pop_back();
  return path;
}

Result<std::optional<sync::LoadedCheckpoint>> read(const std::string& given) {
  host::StoreFiles files;
  const std::string path = without_scheme(given);
  if (is_file(path)) {
    auto loaded = sync::read_checkpoint(files, path);
    if (!loaded) return Error{loaded.error().message};  // not lasting: no misuse, even if it is not there
    return std::optional(std::move(loaded).value());
  }
  return sync::read_newest_checkpoint(files, path);
}

/// The beginning of the state, into values.
void copy(const sync::StateImage& image, std::span<float> values) {
  auto rest = std::as_writable_bytes(values);
  for (const Blob& chunk : image.chunks) {
    const auto part = chunk.bytes().first(std::min(chunk.size(), rest.size()));
    if (part.empty()) return;
    std::memcpy(rest.data(), part.data(), part.size());
    rest = rest.subspan(part.size());
  }
}

}  // namespace

int tw_checkpoint_open(const char* path, tw_checkpoint** checkpoint, tw_stored* stored) {
  return without_throwing([&] {
    if (path == nullptr || checkpoint == nullptr || stored == nullptr) return misuse("a null pointer");
    if (*path == '\0') return misuse(fmt::format("an empty path: {}", kWanted));
    auto found = read(path);
    if (!found && found.error().lasting)
      return misuse(fmt::format("{}; {}, also s3://BUCKET/PREFIX", found.error().message, kWanted));
    if (!found) return failed(found.error().message);
    if (!found.value()) return misuse(fmt::format("{}: {}", path, kWanted));
    auto* const made = new tw_checkpoint{std::move(*found.value()), {}, {}};
    const wire::Record& record = made->loaded.image.record;
    made->run = to_string(record.run);
    made->skipped = fmt::format("{}", fmt::join(made->loaded.skipped, "\n"));
    *checkpoint = made;
    *stored = {.round = record.round,
               .samples = record.samples_total(),
               .run = made->run.c_str(),
               .layout = made->loaded.words.layout.c_str(),
               .skipped = made->skipped.c_str()};
    return int{TW_OK};
  });
}

int tw_checkpoint_values(tw_checkpoint* checkpoint, float* values, size_t count) {
  return without_throwing([&] {
    if (checkpoint == nullptr || values == nullptr) return misuse("a null pointer");
    const sync::StateImage& image = checkpoint->loaded.image;
    if (count > image.bytes() / sizeof(float))
      return misuse(fmt::format("{} values: the whole state has {}", count, image.bytes() / sizeof(float)));
    copy(image, {values, count});
    if (digest_of_parameters({values, count}) != image.parameters)
      return misuse(fmt::format("the model in the checkpoint has another number of values than {}", count));
    return int{TW_OK};
  });
}

void tw_checkpoint_close(tw_checkpoint* checkpoint) { delete checkpoint; }
