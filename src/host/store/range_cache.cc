// SPDX-License-Identifier: Apache-2.0
#include "host/store/range_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/cause_text.h"
#include "base/digest.h"
#include "base/text/number.h"
#include "base/text/text.h"

namespace tw::host {
namespace {

constexpr std::string_view kRangeSuffix = ".range", kPartSuffix = ".part";
constexpr double kLeftShare = 0.9;     // of the cap, after files were taken away
constexpr std::uint64_t kLooks = 16;   // at the whole folder, while a process fills it
constexpr std::size_t kSumBytes = 32;  // the digest of a range, behind it in its file

/// "DIGEST-OFFSET-LENGTH.range"
struct KeptName {
  std::string digest;
  std::uint64_t offset = 0, length = 0;
};

std::optional<KeptName> kept_name(std::string_view text) {
  if (!text.ends_with(kRangeSuffix)) return std::nullopt;
  text.remove_suffix(kRangeSuffix.size());
  const std::size_t first = text.find('-'), second = text.find('-', first + 1);
  if (first != 32 || second == std::string_view::npos) return std::nullopt;
  const auto offset = parse_number<std::uint64_t>(text.substr(first + 1, second - first - 1));
  const auto length = parse_number<std::uint64_t>(text.substr(second + 1));
  if (!offset || !length) return std::nullopt;
  return KeptName{std::string(text.substr(0, first)), *offset, *length};
}

/// A query parameter that signs a URL: for S3, Google or CloudFront; with has_sig (a `sig` is there), for
/// Azure.
bool is_of_signature(std::string_view parameter, bool has_sig) {
  const std::string name = lower(parameter.substr(0, parameter.find('=')));
  static const std::set<std::string, std::less<>> kSigned{"signature",   "expires",        "policy",
                                                          "key-pair-id", "awsaccesskeyid", "googleaccessid"};
  static const std::set<std::string, std::less<>> kAzure{"sig", "se",  "sp",    "sv",   "sr",  "st",
                                                         "ss",  "srt", "spr",   "sip",  "ske", "sks",
                                                         "skv", "skt", "sktid", "skoid"};
  return name.starts_with("x-amz-") || name.starts_with("x-goog-") || kSigned.contains(name) ||
         (has_sig && kAzure.contains(name));
}

/// A URL that is signed anew is of the same object.
std::string without_signature(const std::string& object) {
  const std::size_t query = object.find('?');
  if (query == std::string::npos || object.find("://") > query) return object;
  std::string kept = object.substr(0, query);
  std::string_view rest = std::string_view(object).substr(query + 1);
  const bool has_sig = rest.starts_with("sig=") || rest.find("&sig=") != std::string_view::npos;
  while (!rest.empty()) {
    const std::string_view parameter = rest.substr(0, rest.find('&'));
    if (!is_of_signature(parameter, has_sig)) kept.append("&").append(parameter);
    rest.remove_prefix(std::min(rest.size(), parameter.size() + 1));
  }
  return kept;
}

/// The rest of the query counts: two objects may differ in it alone.
std::string digest_of_version(const world::Extent& extent) {
  return to_string(tw::digest_of(without_signature(extent.object) + '\n' + extent.version));
}

std::uint64_t file_bytes(std::uint64_t length) { return length + kSumBytes; }

struct KeptFile {
  std::filesystem::path path;
  std::filesystem::file_time_type used;
  std::uint64_t bytes = 0;
};

std::vector<KeptFile> files_in(const std::string& folder) {
  std::vector<KeptFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.ends_with(kRangeSuffix) && !name.ends_with(kPartSuffix)) continue;  // not a file of the cache
    std::error_code gone;
    KeptFile file{at->path(), at->last_write_time(gone), at->file_size(gone)};
    if (!gone) files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &KeptFile::used);
  return files;
}

}  // namespace

Status RangeCache::make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return Error{fmt::format("cache={}: expected a folder that can be made and written: {}", folder,
                             cause_text(error))};
  return Unit{};
}

RangeCache::RangeCache(world::Store& store, std::string folder, std::uint64_t most_bytes,
                       std::function<void(const std::string&)> troubled)
    : store_(store), folder_(std::move(folder)), most_bytes_(most_bytes), troubled_(std::move(troubled)) {
  find_files();
}

std::uint64_t RangeCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void RangeCache::find_files() {
  files_.clear();
  bytes_ = 0;
  for (const KeptFile& file : files_in(folder_)) {
    const auto name = kept_name(file.path.filename().string());
    if (!name || file_bytes(name->length) != file.bytes) continue;
    files_[name->digest][name->offset] = name->length;
    bytes_ += file.bytes;
  }
}

std::string RangeCache::path_of(const world::Extent& range) const {
  return fmt::format("{}/{}-{}-{}{}", folder_, digest_of_version(range), range.offset, range.length,
                     kRangeSuffix);
}

std::optional<world::Extent> RangeCache::around(const world::Extent& extent) const {
  const std::lock_guard lock(mutex_);
  const auto ranges = files_.find(digest_of_version(extent));
  if (ranges == files_.end()) return std::nullopt;
  auto range = ranges->second.upper_bound(extent.offset);
  if (range == ranges->second.begin()) return std::nullopt;
  --range;
  if (range->first + range->second < extent.offset + extent.length) return std::nullopt;
  return world::Extent{extent.object, range->first, range->second, extent.version};
}

bool RangeCache::is_sound(const std::string& path, std::uint64_t length) {
  {
    const std::lock_guard lock(mutex_);
    if (sound_.contains(path)) return true;
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes(length, '\0'), sum(kSumBytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.read(sum.data(), kSumBytes) || sum != to_string(tw::digest_of(bytes))) return false;
  const std::lock_guard lock(mutex_);
  return sound_.insert(path).first != sound_.end();
}

std::optional<std::string> RangeCache::kept(const world::Extent& extent) {
  const auto range = around(extent);
  if (!range) return std::nullopt;
  const std::string path = path_of(*range);
  std::string bytes(extent.length, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(extent.offset - range->offset));
  if (!is_sound(path, range->length) ||
      !file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    drop(*range);
    return std::nullopt;
  }
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now; a failure to note it is none
  return bytes;
}

void RangeCache::drop(const world::Extent& range) {
  std::error_code error;
  std::filesystem::remove(path_of(range), error);
  const std::lock_guard lock(mutex_);
  sound_.erase(path_of(range));
  if (files_[digest_of_version(range)].erase(range.offset) > 0)
    bytes_ -= std::min(bytes_, file_bytes(range.length));
}

void RangeCache::keep(const world::Extent& extent, const std::string& bytes) {
  const std::uint64_t written = file_bytes(bytes.size());
  if (written > most_bytes_) return;
  const std::string part = fmt::format("{}/{}-{}{}", folder_, ::getpid(), ++writes_, kPartSuffix);
  std::ofstream file(part, std::ios::binary);
  file << bytes << to_string(tw::digest_of(bytes));
  file.close();
  std::error_code error;
  if (!file) error = std::error_code(errno, std::generic_category());
  if (file) std::filesystem::rename(part, path_of(extent), error);
  if (!file || error) {
    tell_failed_write(cause_text(error));
    std::filesystem::remove(part, error);
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = files_[digest_of_version(extent)].try_emplace(extent.offset, extent.length);
  if (!is_new) bytes_ -= std::min(bytes_, file_bytes(at->second));
  at->second = extent.length;
  bytes_ += written;
  unseen_ += written;
  if (bytes_ > most_bytes_ || unseen_ > most_bytes_ / kLooks) make_room();
}

void RangeCache::tell_failed_write(const std::string& why) {
  std::call_once(told_, [&] {
    if (troubled_)
      troubled_(fmt::format("cache={}: cannot be written, what is read is not kept: {}", folder_, why));
  });
}

// By what is there, which may be more than this process knows of.
void RangeCache::make_room() {
  unseen_ = 0;
  const std::vector<KeptFile> files = files_in(folder_);
  std::uint64_t all = 0;
  for (const KeptFile& file : files) all += file.bytes;
  if (all <= most_bytes_) return find_files();
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(most_bytes_) * kLeftShare);
  std::error_code error;
  for (const KeptFile& file : files) {
    if (all <= wanted) break;
    // Parts of others are being written; those of a process that was killed are the oldest one day.
    std::filesystem::remove(file.path, error);
    all -= file.bytes;
  }
  find_files();
}

void RangeCache::read(const world::Extent& extent, Read done) {
  if (extent.version.empty()) return store_.read(extent, std::move(done));
  if (extent.anew) {
    if (const auto range = around(extent)) drop(*range);
  } else if (auto bytes = kept(extent)) {
    return done(std::move(*bytes));
  }
  store_.read(extent, [this, extent, done = std::move(done)](Result<std::string> bytes) {
    if (bytes) keep(extent, bytes.value());
    done(std::move(bytes));
  });
}

void RangeCache::look(const std::string& object, Looked done) { store_.look(object, std::move(done)); }

}  // namespace tw::host
