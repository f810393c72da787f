// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/prng.h"
#include "base/time.h"

/// How the peers of a run meet in a folder that all of them reach, where each keeps a notice of its address
/// for some minutes at a time: whoever is alive is found, whatever became of the first peers.
namespace tw::swarm {

/// The name of a notice: "peer-1a2b3c4d-1764170000-7". Whether it may count shows without reading it.
struct NoticeName {
  std::string run;  ///< the first digits of the digest of what the run trains
  std::int64_t until_unix_s = 0;
  PeerId peer;

  static constexpr std::size_t kRunDigits = 8;

  bool operator==(const NoticeName&) const = default;
};

std::string to_string(const NoticeName& name);

/// Nothing: it is no name of a notice.
std::optional<NoticeName> notice_name_in(const std::string& text);

/// The notices of others in a folder, by their names.
struct NoticeChoice {
  std::vector<std::string> read;   ///< some that may count, chosen by chance: not all joiners dial the same
  std::vector<std::string> ahead;  ///< dated ahead of the clock
  std::vector<std::string> over;   ///< expired so long ago that they may be removed; not all of them at once
  std::size_t fresh = 0;           ///< that may count
  std::size_t expired = 0;         ///< those in `over`, too

  static constexpr std::size_t kMostRead = 8;
  static constexpr std::size_t kMostRemoved = 16;
  static constexpr std::int64_t kKept_s = 3600;  ///< an expired one, for whose clock is behind
};

/// own: the run and this peer.
NoticeChoice choose_notices(const std::vector<std::string>& names, const NoticeName& own,
                            std::int64_t now_unix_s, std::uint64_t seed);

/// When a peer keeps its notice up, and what it does while it is alone: it dials those that it knew before,
/// and looks for notices. A step machine; one thread.
class Rendezvous {
 public:
  enum class Errand {
    recall,  ///< dial the peers of former times: done at once
    look,    ///< read notices, and dial who wrote them
    renew,   ///< write the own notice
  };

  struct Options {
    bool has_folder = false;
    bool announces = false;  ///< others can dial this peer
    std::uint64_t seed = 0;  ///< peers that start together ask the store at different times
  };

  /// How the peer stands.
  struct Standing {
    bool has_run = false;  ///< it has a record of the run, or begins it: worth finding
    bool alone = false;    ///< no other peer is linked that could let it go on
  };

  explicit Rendezvous(Options options) : options_(options), random_(options.seed) {}

  /// Call now and then. Until done() is called for a look or a renewal there is no other one.
  std::optional<Errand> next(Instant now, Standing standing);

  /// What next() gave is over. True: it has failed, and that is news. A store that lets itself be listed may
  /// not let itself be written, and the other way round: one errand that works says nothing of the other.
  bool done(Instant now, Errand errand, bool failed);

  /// Addresses that the user gave have this time to answer.
  static constexpr Duration kBeforeSearch = std::chrono::seconds(2);
  static constexpr Duration kRenewEvery = std::chrono::minutes(3);
  static constexpr Duration kLongestSilence = std::chrono::seconds(30);  ///< between two looks
  static constexpr Duration kLongestRetry = std::chrono::minutes(2);     ///< of a store that is down

 private:
  /// When an errand is due.
  struct Turn {
    Instant next{};
    Duration retry{};  ///< 0: it works
  };

  Duration about(Duration time);

  Options options_;
  Prng random_;
  bool busy_ = false;
  bool recalled_ = false;
  Instant alone_since_ = kNever;
  Turn look_, renewal_;
  Duration silence_{};  ///< before the next look
};

}  // namespace tw::swarm
