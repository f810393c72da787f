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

/// The peers that are known and linked, the last word of each on itself, and the schedule of dials.
class Roster {
 public:
  /// At most, for each peer that is known: entry, dial and address.
  static constexpr std::size_t kEntryBytes = 512 + wire::kMostSiteBytes + 2 * wire::kMostAddressBytes;

  /// bootstrap: addresses to dial as long as nobody is linked at them. A peer that has links keeps dialling
  /// the first kFewBootstraps of them: a process that is started again there has nobody else to find it.
  Roster(PeerId self, std::vector<std::string> bootstrap);

  /// A record names this peer.
  void learn(const wire::Member& member);

  /// Somebody told of this peer, rightly or not: of each who tells, so many that are not linked are
  /// remembered (kMostToldOf) until they were dialled in vain.
  void hear(PeerId teller, const wire::Member& member);

  static constexpr std::size_t kMostToldOf = 1024;
  static constexpr std::size_t kFewBootstraps = 8;

  /// The most that is remembered of whoever is neither linked nor a member: those heard of last.
  static constexpr std::size_t kMostStrangers = 4096;
  void forget_strangers(const std::vector<wire::Member>& members);

  void open(const wire::Member& peer, bool anchor = false);
  void close(Instant now, PeerId peer);

  /// A dial came to nothing: it is tried again later, ever less often.
  void refused(Instant now, const std::string& address);

  /// The peer at this address is linked, though it may name another one itself: a host has many names.
  void linked_there(const std::string& address);

  void heard(Instant now, PeerId peer, const wire::Heartbeat& heartbeat);

  /// A record names this process as a member: if it was fresh when it was heard last, it is no more.
  void now_follows(const wire::Member& member);

  /// This address of the bootstrap is the peer's own: it is dialled no more.
  void is_own(const std::string& address);

  /// Addresses to dial now. Peers without a link are dialled while they are members or came up lately; the
  /// bootstrap addresses while nobody is linked at them.
  std::vector<std::string> dials(Instant now, const std::vector<wire::Member>& members,
                                 const Rarely& chance = {});

  bool is_open(PeerId peer) const;

  /// Linked to this very process.
  bool is_open(const wire::Member& member) const;

  /// The process that is, or was last, linked under this id.
  wire::Member process(PeerId peer) const;

  /// In the order of ids.
  const std::vector<PeerId>& open_peers() const { return open_; }

  /// Linked peers, as Members with their addresses.
  std::vector<wire::Member> linked() const;

  /// Up to `count` of them, from a place in the order of ids on; `place` is any number.
  std::vector<wire::Member> linked(std::uint64_t place, std::size_t count) const;

  /// Linked peers that follow the history: neither fresh nor taking state.
  const std::map<PeerId, std::uint64_t>& following() const { return following_; }  ///< their incarnations

  /// Changes whenever following() or somebody's state does.
  std::uint64_t version() const { return version_; }

  /// Linked peers that are anchors.
  std::set<PeerId> anchors() const;

  /// Linked to this very process, and it follows the history.
  bool follows(const wire::Member& member) const;

  /// Linked, and fresh or taking state when it was heard last.
  bool is_behind(PeerId peer) const;

  std::uint64_t held_bytes() const;

  std::optional<wire::Heartbeat> last_heartbeat(PeerId peer) const;
  /// It is linked, and its last word is that it needs the state.
  bool fetches(PeerId peer) const;
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
    std::string site;               // the same
    bool open = false;
    bool anchor = false;  // of whoever was linked last
    std::optional<wire::Heartbeat> heartbeat;
    Instant heard_at{};
    std::optional<PeerId> teller;  // who told of it; nothing once it was linked, or when a record names it
    bool was_member = false;       // a record named it, and it did not say that it leaves
    int dialled = 0;               // since it was linked last

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
