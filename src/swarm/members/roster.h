// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rarely.h"
#include "base/time.h"
#include "wire/limits.h"
#include "wire/messages.h"

namespace tw::swarm {

/// The known and linked peers, the last report of each about itself, and the schedule of dials.
class Roster {
 public:
  /// At most, for each peer that is known: entry, dial and address.
  static constexpr std::size_t kEntryBytes = 512 + wire::kMostSiteBytes + 2 * wire::kMostAddressBytes;

  /// bootstrap: addresses to dial as long as no peer is linked at them. A peer that has links keeps dialling
  /// the first kFewBootstraps of them, since a process restarted there depends on being found.
  Roster(PeerId self, std::vector<std::string> bootstrap);

  /// A record names this peer.
  void learn(const wire::Member& member);

  /// `teller` told of this peer, rightly or not. At most kMostToldOf unlinked peers of each teller are
  /// remembered, until they were dialled in vain.
  void hear(PeerId teller, const wire::Member& member);

  static constexpr std::size_t kMostToldOf = 1024;
  static constexpr std::size_t kFewBootstraps = 8;

  /// At most this many peers that are neither linked nor members are remembered: those heard of last.
  static constexpr std::size_t kMostStrangers = 4096;
  void forget_strangers(const std::vector<wire::Member>& members);

  void open(const wire::Member& peer, bool anchor = false);
  void close(Instant now, PeerId peer);

  /// A dial failed: it is tried again later, ever less often.
  void refused(Instant now, const std::string& address);

  /// The peer at this address is linked, though it may give another address itself: a host has many names.
  void linked_there(const std::string& address);

  void heard(Instant now, PeerId peer, const wire::Heartbeat& heartbeat);

  /// A record names this process as a member, so it is not fresh, whatever it said when it was heard last.
  void now_follows(const wire::Member& member);

  /// This bootstrap address is the peer's own: it is not dialled any more.
  void is_own(const std::string& address);

  /// Addresses to dial now. Peers without a link are dialled while they are members or came up lately,
  /// bootstrap addresses while no peer is linked at them.
  std::vector<std::string> dials(Instant now, const std::vector<wire::Member>& members,
                                 const Rarely& chance = {});

  /// Each bootstrap address has answered or failed, and each peer that is linked then has said where it
  /// stands. True without such addresses.
  bool has_asked_all() const;

  bool is_open(PeerId peer) const;

  /// True when linked to this very process.
  bool is_open(const wire::Member& member) const;

  /// The process that is, or was last, linked under this id.
  wire::Member process(PeerId peer) const;

  /// Linked peers in the order of ids.
  const std::vector<PeerId>& open_peers() const { return open_; }

  /// Linked peers, as Members with their addresses.
  std::vector<wire::Member> linked() const;

  /// Up to `count` of them in the order of ids, from position `place` on; `place` is any number.
  std::vector<wire::Member> linked(std::uint64_t place, std::size_t count) const;

  /// Linked peers that follow the history: neither fresh nor taking state.
  const std::map<PeerId, std::uint64_t>& following() const { return following_; }  ///< their incarnations

  /// Changes whenever following() or the state of a peer does.
  std::uint64_t version() const { return version_; }

  /// Linked peers that are anchors.
  std::set<PeerId> anchors() const;

  /// Linked to this very process, and it follows the history.
  bool follows(const wire::Member& member) const;

  /// Linked, and fresh or taking state when it was heard last.
  bool is_behind(PeerId peer) const;

  std::uint64_t held_bytes() const;

  std::optional<wire::Heartbeat> last_heartbeat(PeerId peer) const;
  /// The peer is linked, and its last heartbeat says that it needs the state.
  bool fetches(PeerId peer) const;
  /// Age of the last heartbeat.
  Duration heartbeat_age(Instant now, PeerId peer) const;

 private:
  struct Dial {
    Instant next{};
    Duration backoff{};
    int failures = 0;
  };

  struct Entry {
    std::string address;
    std::uint64_t incarnation = 0;  // of the process linked last
    std::string site;               // the same
    bool open = false;
    bool anchor = false;  // of the process linked last
    std::optional<wire::Heartbeat> heartbeat;
    Instant heard_at{};
    std::optional<PeerId> teller;  // the peer that told of it; empty once it was linked or a record named it
    bool was_member = false;       // a record named it, and it did not say that it leaves
    int dialled = 0;               // dials since it was linked last

    bool behind() const;
  };

  void update(PeerId peer, const Entry& entry);
  bool given_up(PeerId peer, Entry& entry, const std::vector<wire::Member>& members);
  void set_address(Entry& entry, const std::string& address);
  void set_teller(Entry& entry, std::optional<PeerId> teller);
  void forget_dials();
  bool is_linked_at(const std::string& address) const;

  PeerId self_;
  std::vector<std::string> bootstrap_;
  std::unordered_map<PeerId, Entry> entries_;
  std::uint64_t address_bytes_ = 0;            // in entries_
  std::map<PeerId, std::size_t> told_;         // entries_ by teller
  std::vector<PeerId> open_;                   // of entries_, sorted
  std::map<PeerId, std::uint64_t> following_;  // of open_
  std::uint64_t version_ = 0;
  std::map<std::string, Dial> dials_;
  std::set<std::string> linked_at_;  // of bootstrap_; forgotten when any link ends
};

}  // namespace tw::swarm
