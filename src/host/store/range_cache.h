// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "world/store.h"

namespace tw::host {

/// A cache in a folder before another store: a file for each range of each version, renamed into place when
/// complete, with a checksum: a file that does not match it is read from the store again. A range inside a
/// cached one is served from it. Beyond `most_bytes` the least recently used are removed. Several processes
/// may use one folder: a file that another one removed is read from the store again, and each may exceed the
/// cap by a sixteenth before it sees the files of the others. A failed write to the cache is no error, only a
/// warning. Ranges without a version are not kept. Any thread.
class RangeCache final : public world::Store {
 public:
  /// Makes the folder where it is missing; the error names it and why it cannot be used.
  static Status make_folder(const std::string& folder);

  /// The store outlives it. Reads the list of files in the folder, which is there. troubled: of the first
  /// failed write, in words; empty: nobody is told. Any thread.
  RangeCache(world::Store& store, std::string folder, std::uint64_t most_bytes,
             std::function<void(const std::string&)> troubled = {});

  void read(const world::Extent& extent, Read done) override;
  void look(const std::string& object, Looked done) override;

  world::StoreUses uses() const override { return store_.uses(); }

  /// Bytes of the files that are known.
  std::uint64_t bytes() const;

 private:
  void find_files();
  std::string path_of(const world::Extent& range) const;
  /// The kept range that holds this one.
  std::optional<world::Extent> around(const world::Extent& extent) const;
  std::optional<std::string> kept(const world::Extent& extent);
  /// By its checksum, which is read once: this process trusts it from then on.
  bool is_sound(const std::string& path, std::uint64_t length);
  void drop(const world::Extent& range);
  void keep(const world::Extent& extent, const std::string& bytes);
  void tell_failed_write(const std::string& why);
  void make_room();

  world::Store& store_;
  const std::string folder_;
  const std::uint64_t most_bytes_;
  const std::function<void(const std::string&)> troubled_;
  mutable std::mutex mutex_;
  /// Object and version as a digest, then offset: length. Guarded by mutex_.
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> files_;
  std::set<std::string> sound_;            // paths; guarded by mutex_
  std::uint64_t bytes_ = 0;                // guarded by mutex_
  std::uint64_t unseen_ = 0;               // written since it read the folder; guarded by mutex_
  std::atomic<std::uint64_t> writes_ = 0;  // names of parts
  std::once_flag told_;
};

}  // namespace tw::host
