// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "base/ids.h"
#include "base/prng.h"
#include "world/files.h"

namespace tw::sim {

/// The object store that all peers of a world share. An object is there whole or not at all; a folder is the
/// beginning of a name and needs no making.
class VirtualStore final : public world::Files {
 public:
  /// Paths of its objects begin with this.
  static constexpr std::string_view kScheme = "s3://";

  Result<std::vector<std::byte>> read(const std::string& path) override {
    const auto found = objects_.find(path);
    if (found == objects_.end()) return no_such(path);
    const auto bytes = found->second.bytes();
    return std::vector(bytes.begin(), bytes.end());
  }

  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    std::vector<std::byte> content;
    for (const auto part : parts) content.insert(content.end(), part.begin(), part.end());
    objects_[path] = Blob(std::move(content));
    return Unit{};
  }

  Status rename(const std::string& from, const std::string& to) override {
    auto object = objects_.extract(from);
    if (object.empty()) return no_such(from);
    objects_[to] = std::move(object.mapped());
    return Unit{};
  }

  Status remove(const std::string& path) override {
    return objects_.erase(path) > 0 ? Status(Unit{}) : no_such(path);
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [path, object] : objects_) {
      const std::size_t slash = path.rfind('/');
      if (path.compare(0, slash, folder) == 0) names.push_back(path.substr(slash + 1));
    }
    return names;
  }

  Status make_folder(const std::string&) override { return Unit{}; }

 private:
  static Error no_such(const std::string& path) { return Error{path + ": no such object"}; }

  std::map<std::string, Blob> objects_;
};

/// Stores that fail single peers, in two ways.
class StoreFaults {
 public:
  using Lacks = std::function<bool(std::uint64_t sample)>;

  /// The peer cannot have these samples from now on, until the call with nothing.
  void break_samples(PeerId peer, Lacks lacks) {
    broken_.erase(peer);
    if (lacks) broken_.emplace(peer, std::move(lacks));
  }

  void mend_samples() { broken_.clear(); }

  bool lacks(PeerId peer, std::uint64_t sample) const {
    const auto broken = broken_.find(peer);
    return broken != broken_.end() && broken->second(sample);
  }

  /// The store of checkpoints answers this peer no more; and again.
  void close(PeerId peer) { closed_.insert(peer); }

  void open(PeerId peer) { closed_.erase(peer); }

  bool is_closed(PeerId peer) const { return closed_.contains(peer); }

 private:
  std::map<PeerId, Lacks> broken_;
  std::set<PeerId> closed_;
};

/// The Files door of one peer: its disk, and the store for paths of objects. While the store does not answer,
/// each call on it fails; half of those that change something took effect all the same.
class PeerFiles final : public world::Files {
 public:
  /// Disk and store outlive this. is_away: whether the store leaves this peer without an answer now.
  PeerFiles(world::Files& disk, world::Files& store, std::function<bool()> is_away, std::uint64_t seed)
      : disk_(disk), store_(store), is_away_(std::move(is_away)), random_(seed) {}

  Result<std::vector<std::byte>> read(const std::string& path) override {
    if (is_unanswered(path)) return unanswered(path);
    return of(path).read(path);
  }

  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    return change(path, [&] { return of(path).write(path, parts); });
  }

  Status rename(const std::string& from, const std::string& to) override {
    return change(from, [&] { return of(from).rename(from, to); });
  }

  Status remove(const std::string& path) override {
    return change(path, [&] { return of(path).remove(path); });
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (is_unanswered(folder)) return unanswered(folder);
    return of(folder).list(folder);
  }

  Status make_folder(const std::string& folder) override {
    return change(folder, [&] { return of(folder).make_folder(folder); });
  }

 private:
  static bool is_object(const std::string& path) { return path.starts_with(VirtualStore::kScheme); }

  static Error unanswered(const std::string& path) { return Error{path + ": the store does not answer"}; }

  bool is_unanswered(const std::string& path) const { return is_object(path) && is_away_(); }

  world::Files& of(const std::string& path) { return is_object(path) ? store_ : disk_; }

  template <class F>
  Status change(const std::string& path, F call) {
    if (!is_unanswered(path)) return call();
    if (random_.chance(0.5)) (void)call();
    return unanswered(path);
  }

  world::Files& disk_;
  world::Files& store_;
  std::function<bool()> is_away_;
  Prng random_;
};

}  // namespace tw::sim
