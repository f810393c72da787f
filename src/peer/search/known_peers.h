// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "wire/record.h"

namespace tw::peer {

/// The address of every member of a run that a peer ever knew, in a file beside its event log: a process that
/// is started again dials them when the addresses that it was given lead nowhere.
class KnownPeers {
 public:
  /// Reads the files of all peers in this folder (peers-*.csv), as far as they are of this run; what is torn
  /// or foreign there is left out. Empty: no folder, and nothing is written.
  KnownPeers(std::string folder, PeerId self, const Digest& training);

  /// True: some are new, or moved.
  bool see(const std::vector<wire::Member>& members);

  /// Those seen last come first.
  std::vector<wire::Member> all() const;

  /// The file; empty: none.
  const std::string& path() const { return path_; }

  /// Its text.
  std::string text() const;

  static constexpr std::size_t kMost = 1024;  ///< those seen first are forgotten

 private:
  struct Known {
    std::string address;
    std::uint64_t seen = 0;  ///< a counter
  };

  void read(const std::string& file);
  bool note(PeerId peer, const std::string& address);

  std::string path_;
  PeerId self_;
  std::string training_;
  std::map<PeerId, Known> known_;
  std::uint64_t seen_ = 0;
};

}  // namespace tw::peer
