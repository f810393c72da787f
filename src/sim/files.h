// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "world/files.h"

namespace tw {

/// A disk in memory that knows what POSIX makes durable: content with the write (fsync), but a name that
/// appears or goes only with the next rename in its folder (fsync of the folder).
enum class DiskFault { full, error, torn_write, lost_fsync, bit_flip, rename_lost };

class VirtualFiles final : public Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) override;
  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status make_folder(const std::string& folder) override;

  /// The machine goes down and comes back: each name that was not durable is there or not, by chance.
  void crash(Prng& random);

  void arm(DiskFault, int, std::uint64_t, std::function<void()>) {}

  void mend() {}

 private:
  using Contents = std::map<std::string, std::vector<std::byte>>;

  void make_names_durable(const std::string& folder);

  Contents seen_;     ///< what calls see
  Contents durable_;  ///< what is there after a crash at the least
  std::set<std::string> folders_{"", "/"};
};

}  // namespace tw
