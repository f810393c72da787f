// SPDX-License-Identifier: Apache-2.0
#include "data/shards/index_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/digest.h"
#include "base/result.h"
#include "base/text/number.h"
#include "base/text/text.h"

namespace tw::data {
namespace {

constexpr std::size_t kMostNames = 1'000'000;

/// Expands the text between the outermost braces: "0..9", or texts separated by ','.
Result<std::vector<std::string>> alternatives(const std::string& inside, const std::string& text) {
  const std::size_t dots = inside.find("..");
  std::vector<std::string> all;
  if (dots == std::string::npos) {
    for (std::size_t begin = 0; begin <= inside.size();) {
      const std::size_t end = std::min(inside.find(',', begin), inside.size());
      all.push_back(inside.substr(begin, end - begin));
      begin = end + 1;
    }
    return all;
  }
  const std::string first = inside.substr(0, dots);
  const auto from = parse_number<std::uint64_t>(first);
  const auto to = parse_number<std::uint64_t>(inside.substr(dots + 2));
  if (!from || !to || *from > *to || *to - *from >= kMostNames)
    return Error{fmt::format(
        "{}: expected {{FIRST..LAST}} with at most {} whole numbers, found {{{}}}; letters and steps "
        "are not read",
        text, kMostNames, inside)};
  for (std::uint64_t number = *from; number <= *to; ++number)
    all.push_back(fmt::format("{:0{}}", number, first.size()));
  return all;
}

/// Parts of an object; the last one is kept, so ordered reads get each part once.
class Parts {
 public:
  Parts(world::Store& store, const Shard& shard) : store_(store), shard_(shard) {}

  Result<std::string_view> from(std::uint64_t offset) {
    const std::uint64_t begin = offset / kPartBytes * kPartBytes;
    if (!part_ || begin_ != begin) {
      part_.reset();
      auto got = world::read_now(
          store_, {shard_.object, begin, std::min(kPartBytes, shard_.bytes - begin), shard_.version});
      has_failed_ = !got;
      if (has_failed_) return got.error();
      part_ = std::move(got).value();
      begin_ = begin;
    }
    return std::string_view(*part_).substr(offset - begin);
  }

  bool has_failed() const { return has_failed_; }

 private:
  world::Store& store_;
  const Shard& shard_;
  std::uint64_t begin_ = 0;
  std::optional<std::string> part_;
  bool has_failed_ = false;  ///< the last read
};

/// No store failed: the shard is what it is.
Error of_shard(const Error& error) { return {error.message, true}; }

Result<std::string> digest_contents(world::Store& store, const Shard& shard) {
  ContentsDigest digest;
  for (std::uint64_t at = 0; at < shard.bytes; at += kPartBytes) {
    TW_TRY(const auto part,
           world::read_now(store, {shard.object, at, std::min(kPartBytes, shard.bytes - at), shard.version}));
    digest.add(part);
  }
  return digest.value();
}

struct Indexed {
  Shard shard;
  TarContents tar;
};

Result<Indexed> index_one(const std::string& object, world::Store& store, bool contents) {
  TW_TRY(const auto facts, world::look_now(store, object));
  Indexed one{{object, facts.bytes, facts.version}, {}};
  Parts parts(store, one.shard);
  auto members =
      tar_members(object, one.shard.bytes, [&](std::uint64_t offset) { return parts.from(offset); });
  if (!members) return parts.has_failed() ? members.error() : of_shard(members.error());
  one.tar = std::move(members).value();
  if (!contents) return one;
  TW_TRY(auto digest, digest_contents(store, one.shard));
  one.shard.contents = std::move(digest);
  return one;
}

/// Shards that several threads index, and their results.
class Indexes {
 public:
  Indexes(const std::vector<std::string>& objects, world::Store& store, const Indexing& how)
      : objects_(objects), store_(store), how_(how), found_(objects.size()) {
    const auto threads = std::min<std::size_t>(static_cast<std::size_t>(how.shards_at_once), objects.size());
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }

  ~Indexes() {
    const std::lock_guard lock(mutex_);
    next_ = objects_.size();
  }

  Indexes(const Indexes&) = delete;
  Indexes& operator=(const Indexes&) = delete;

  /// Waits for the result of this shard.
  Result<Indexed> take(std::size_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return found_[number].has_value(); });
    Result<Indexed> one = std::move(*found_[number]);
    found_[number] = Error{"taken"};
    return one;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (next_ < objects_.size()) {
      const std::size_t number = next_++;
      lock.unlock();
      auto one = index_one(objects_[number], store_, how_.contents);
      lock.lock();
      found_[number] = std::move(one);
      changed_.notify_all();
    }
  }

  const std::vector<std::string>& objects_;
  world::Store& store_;
  const Indexing& how_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;                               // guarded by mutex_
  std::vector<std::optional<Result<Indexed>>> found_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

/// Members of no sample, counted over all shards.
class LeftOut {
 public:
  void add(const std::string& object, const std::vector<TarMember>& members) {
    for (const TarMember& member : members) {
      if (!split_member(member.name).key.empty() || member.name.starts_with("__")) continue;
      if (count_++ == 0) first_ = world::shown_object(object) + ": " + member.name;
    }
  }

  /// Empty: there are none.
  std::string text() const {
    if (count_ == 0) return {};
    return fmt::format("{} without a key and a field {} left out, the first of them {}",
                       counted(count_, "file"), count_ == 1 ? "is" : "are", first_);
  }

 private:
  std::uint64_t count_ = 0;
  std::string first_;
};

/// The same for all spellings of a path, links included; other URLs as they stand.
std::string plain_name(const std::string& object) {
  constexpr std::string_view kFile = "file://";
  const bool is_file = object.starts_with(kFile);
  if (!is_file && object.find("://") != std::string::npos) return object;
  std::error_code error;
  const auto path = std::filesystem::absolute(is_file ? object.substr(kFile.size()) : object, error);
  const auto plain = std::filesystem::weakly_canonical(path, error);
  return (error ? path.lexically_normal() : plain).string();
}

/// Empty: none is.
std::string named_twice(const std::vector<std::string>& objects) {
  std::set<std::string> known;
  for (const std::string& object : objects) {
    if (!known.insert(plain_name(object)).second) return object;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> expand_braces(const std::string& text) {
  const std::size_t open = text.find('{'), close = text.find('}');
  if (open == std::string::npos && close == std::string::npos) return std::vector{text};
  if (open == std::string::npos || close == std::string::npos || close < open)
    return Error{fmt::format("{}: braces that do not match", text)};
  if (text.find('{', open + 1) < close)
    return Error{fmt::format("{}: braces inside braces are not read; give several names", text)};
  TW_TRY(const auto here, alternatives(text.substr(open + 1, close - open - 1), text));
  TW_TRY(const auto rest, expand_braces(text.substr(close + 1)));
  if (here.size() * rest.size() > kMostNames)
    return Error{fmt::format("{}: more than {} names", text, kMostNames)};
  std::vector<std::string> all;
  for (const std::string& one : here)
    for (const std::string& end : rest) all.push_back(text.substr(0, open) + one + end);
  return all;
}

Result<ShardIndex> index_shards(const std::vector<std::string>& objects, world::Store& store,
                                const Indexing& how) {
  if (const std::string twin = named_twice(objects); !twin.empty())
    return of_shard({fmt::format("{}: named twice; each of its samples would come twice in an epoch",
                                 world::shown_object(twin))});
  const auto warn = [&](const std::string& text) {
    if (how.warn && !text.empty()) how.warn(text);
  };
  Indexes indexes(objects, store, how);
  LeftOut left_out;
  ShardIndex index;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    TW_TRY(auto one, indexes.take(i));
    const TarContents& tar = one.tar;
    if (!tar.doubt.empty()) warn(fmt::format("{}: {}", world::shown_object(objects[i]), tar.doubt));
    left_out.add(objects[i], tar.members);
    if (const Status added = index.add(std::move(one.shard), tar.members); !added)
      return of_shard(added.error());
    if (how.progress) how.progress(i + 1);
  }
  warn(left_out.text());
  return index;
}

void ContentsDigest::add(const std::string& part) { digests_ += to_string(digest_of(part)); }

std::string ContentsDigest::value() const { return to_string(digest_of(digests_)); }

}  // namespace tw::data
