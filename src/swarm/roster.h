// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "wire/messages.h"

namespace tw {

/// Who is known, who is linked, what each said of itself last, and whom to dial when.
class Roster {
 public:
  /// bootstrap: addresses to dial as long as nobody is linked.
  Roster(PeerId self, std::vector<std::string> bootstrap);

  /// Somebody told of this peer.
  void learn(const Member& member);

  void open(const Member& peer);
  void close(Instant now, PeerId peer);

  /// A dial came to nothing: it is tried again later, ever less often.
  void refused(Instant now, const std::string& address);

  void heard(Instant now, PeerId peer, const Heartbeat& heartbeat);

  /// A record names this process as a member: if it was fresh when it was heard last, it is no more.
  void now_follows(const Member& member);

  /// Addresses to dial now. Peers without a link are dialled while they are members or came up lately.
  std::vector<std::string> dials(Instant now, const std::vector<Member>& members);

  bool is_open(PeerId peer) const;

  /// Linked to this very process.
  bool is_open(const Member& member) const;

  /// The process that is, or was last, linked under this id.
  Member process(PeerId peer) const;
  std::vector<PeerId> open_peers() const;

  /// Linked peers, as Members with their addresses.
  std::vector<Member> linked() const;

  /// Linked peers that follow the history: neither fresh nor taking state.
  std::set<PeerId> following() const;

  /// The same, with their incarnations.
  std::map<PeerId, std::uint64_t> following_processes() const;

  /// Linked to this very process, and it follows the history.
  bool follows(const Member& member) const;

  std::optional<Heartbeat> last_heartbeat(PeerId peer) const;
  /// How long ago the last heartbeat came.
  Duration heartbeat_age(Instant now, PeerId peer) const;

 private:
  struct Dial {
    Instant next{};
    Duration backoff{};
    int failures = 0;
  };

  struct Entry {
    std::string address;
    std::uint64_t incarnation = 0;  // of whoever was linked last
    bool open = false;
    std::optional<Heartbeat> heartbeat;
    Instant heard_at{};

    bool behind() const;
  };

  PeerId self_;
  std::vector<std::string> bootstrap_;
  std::map<PeerId, Entry> entries_;
  std::map<std::string, Dial> dials_;
};

}  // namespace tw
