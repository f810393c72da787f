// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "base/result.h"
#include "host/identity/announcement.h"
#include "host/identity/tls.h"
#include "host/store/files_s3.h"
#include "swarm/members/rendezvous.h"
#include "wire/record.h"
#include "wire/token.h"
#include "world/files.h"

namespace tw::peer {

/// The folder where the peers of a run find each other (swarm/members/rendezvous.h): signed notices, one a
/// peer. Anybody who can write there can remove notices, but not make one. Calls block; one thread at a
/// time.
class MeetingPlace {
 public:
  /// The peer that reads and writes there.
  struct Self {
    const wire::Token& token;
    const host::Tls& tls;
    Digest training;  ///< wire::Hello::run
    PeerId peer;
    std::string address{};  ///< where a former process may have listened, too; empty: not known
  };

  /// files and self outlive it. unix_s: the wall clock.
  MeetingPlace(world::Files& files, std::string folder, const Self& self,
               std::function<std::int64_t()> unix_s);

  struct Found {
    std::vector<wire::Member> peers;   ///< some of those that are alive, elsewhere
    std::vector<std::string> ignored;  ///< "NAME is not signed by a peer of this run"
    std::size_t expired = 0;
  };

  /// Reads some notices, those that seed chooses. Errors: of the store, if it shows nobody before it fails.
  Result<Found> look(std::uint64_t seed);

  /// Removes some notices that the last look found to be old.
  void tidy();

  /// Writes the notice of this peer, which counts for wire::kAnnouncementLasts_s, and removes the one before.
  /// Error::lasting: it would lead others to their own machine.
  Status renew(const std::string& address);

  /// Removes the notice of this peer. Error: it is still there; a store that is down is none.
  Status leave();

  const std::string& folder() const { return folder_; }

  /// A store that is down holds up neither a start nor an end for long; no notice is larger.
  static constexpr host::S3Files::Effort kEffort{.attempts = 2,
                                                 .patience = std::chrono::seconds(5),
                                                 .silence = std::chrono::seconds(5),
                                                 .most_bytes = wire::kMostAnnouncementBytes};

 private:
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }

  /// Nothing: it counts.
  std::optional<std::string> objection_to(const host::Announcement& said) const;
  bool leads_elsewhere(const std::string& address) const;
  Status write(const std::string& name, std::span<const std::byte> bytes);

  world::Files& files_;
  const std::string folder_;
  const bool is_file_;  ///< on this machine, or a disk that several share; not in a store
  const Self self_;
  swarm::NoticeName own_;
  const std::function<std::int64_t()> unix_s_;
  std::string notice_;            ///< the name of its own that is there, as far as it knows; empty: none
  std::vector<std::string> old_;  ///< that the last look found
};

}  // namespace tw::peer
