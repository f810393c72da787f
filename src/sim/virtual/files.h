// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/blob.h"
#include "base/prng.h"
#include "world/files.h"

namespace tw::sim {

/// Faults of a disk. Those marked * last until mend().
enum class DiskFault : std::uint8_t {
  full,         ///< * a write leaves a part of its content and fails: no space left on device
  error,        ///< one to three operations fail: input/output error
  torn_write,   ///< * a write leaves a part of its content, and nothing works any more: power is going
  lost_fsync,   ///< * writes claim success, but a crash leaves nothing, a part or the former content
  bit_flip,     ///< one bit of one file changes
  rename_lost,  ///< * renames and removals claim success, but a crash may undo the last of them
};

/// A disk in memory that knows what POSIX makes durable: content with the write (fsync), but a name that
/// appears or goes only with the next rename in its folder (fsync of the folder).
class VirtualFiles final : public world::Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) override;
  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status make_folder(const std::string& folder) override;

  /// Strikes the first operation that the fault concerns after `operations_from_now` others of any sort;
  /// `struck` is called once, from inside it. Several faults may wait at once.
  void arm(DiskFault fault, int operations_from_now, std::uint64_t seed, std::function<void()> struck);

  /// Ends all faults, waiting ones too. Their damage stays, also for a later crash.
  void mend();

  /// A copy with the same content and no fault, for checkers.
  VirtualFiles without_faults() const;

  /// The machine goes down and comes back: each name that was not durable is there or not, by chance. Power
  /// is back (torn_write ends); other faults last.
  void crash(Prng& random);

 private:
  struct File {
    Blob content;
    bool synced = true;
  };

  using Contents = std::map<std::string, File>;

  struct Armed {
    DiskFault fault{};
    int operations = 0;  ///< until it may strike
    Prng random;
    std::function<void()> struck;
  };

  enum class Operation : std::uint8_t { read, write, rename, remove, other };
  enum class Power : std::uint8_t { on, going, gone };  ///< going: the next write is torn

  bool lasts(DiskFault fault) const { return lasting_.contains(fault); }

  static bool concerns(DiskFault fault, Operation operation);
  std::optional<Error> begin(Operation operation, const std::string& path);
  void strike(Armed armed);
  void flip_bit(Prng& random);
  bool has_bits() const;
  Status put(const std::string& path, std::vector<std::byte> content);
  void leave_part(const std::string& path, std::vector<std::byte> content);
  void make_names_durable(const std::string& folder);
  Contents after_lost_renames(Prng& random);
  Contents after_power_loss(Prng& random);
  void spoil(Contents& files, Prng& random) const;

  Contents seen_;     ///< what calls see
  Contents durable_;  ///< least content after a crash
  std::set<std::string> folders_{"", "/"};

  std::vector<Armed> armed_;
  Prng chance_{0};  ///< of the fault that struck last
  int errors_ = 0;  ///< operations that will fail yet
  Power power_ = Power::on;
  std::set<DiskFault> lasting_;   ///< of those marked *, but torn_write, which is power_
  std::vector<Contents> undone_;  ///< content before each rename or removal that may be lost
};

}  // namespace tw::sim
