// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "e2e/soak/attackers.h"
#include "e2e/soak/peers.h"

namespace tw::soak {

/// What is done to a run.
enum class Kind {
  relaunch,   ///< kill -9, and the same command again at once
  kill,       ///< kill -9, and the same command some seconds later
  stop,       ///< SIGSTOP, SIGCONT later
  suspend,    ///< stopped, and its monotonic clock has gone on by up to an hour when it wakes
  wall_step,  ///< its calendar is set by up to an hour, and back
  cut,        ///< no packet to or from a host
  cut_pair,   ///< no packet between two hosts, or in one direction
  slow_link,  ///< a host's links carry a hundredth, or take far longer
  join,       ///< a new peer, which leaves or is killed some seconds later
  leave,      ///< SIGTERM, and the same command some seconds later
  full_disk,  ///< nothing more can be written on a host
  siege,      ///< connections of attackers to a peer
};

inline constexpr std::array<std::string_view, 12> kKindNames = {
    "relaunch", "kill",      "stop", "suspend", "wall step", "cut",
    "cut pair", "slow link", "join", "leave",   "full disk", "siege"};

/// Does to the peers what a seed says, one thing after another, and mends it after a while. Never takes so
/// many that no majority is left, and leaves some peers alive from begin to end.
class Troubles {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::set<std::string> without;       ///< names of kinds that are left out
    std::set<std::uint64_t> long_lived;  ///< are never killed and never leave
    bool long_ones = false;              ///< also stops of a minute, and cuts beyond the patience
    std::function<void(const std::string&)> say;
  };

  Troubles(Options options, Peers& peers, const Testbed& testbed, const Disks& disks);

  /// The next thing of the seed's list. What cannot be done now is passed over.
  void disturb();

  /// Ends what is due.
  void mend();
  /// Ends everything, whether it is due or not. Peers that are to come back are launched.
  void mend_all();

  bool any() const { return !open_.empty(); }

  /// "kill, siege": what is wrong now.
  std::string now() const;

  std::size_t made(Kind kind) const { return made_[static_cast<std::size_t>(kind)]; }

  std::size_t made() const;

  std::uint64_t attackers() const { return attackers_made_; }

 private:
  struct Trouble {
    Kind kind{};
    Moment until;
    std::set<std::size_t> hosts;        ///< whose links or disk it is about
    std::optional<std::uint64_t> peer;  ///< is out meanwhile
    std::function<bool()> mend;         ///< false: not yet
  };

  bool draw_one();
  bool act(Kind kind, Prng& prng);
  bool relaunch(Prng& prng);
  bool kill(Prng& prng);
  bool stop(Prng& prng);
  bool suspend(Prng& prng);
  bool step_wall(Prng& prng);
  bool cut(Prng& prng);
  bool cut_pair(Prng& prng);
  bool slow_link(Prng& prng);
  bool join(Prng& prng);
  bool leave(Prng& prng);
  bool fill_disk(Prng& prng);
  bool besiege(Prng& prng);

  void open(Trouble trouble, const std::string& what);
  bool is_open(Kind kind, std::optional<std::size_t> host = {}) const;
  /// Lines cut or disk full: no place to start a peer.
  bool is_bad(std::size_t host) const;
  bool has_link_trouble(std::size_t host) const;
  bool is_troubled(std::uint64_t id) const;
  /// It is a member, also by what it decided since it was out.
  bool is_trusted(std::uint64_t id) const;
  void distrust(const Trouble& trouble);
  /// A majority stays when these are out.
  bool may_lose(const std::set<std::uint64_t>& ids) const;
  std::optional<std::uint64_t> any_peer(Prng& prng, bool may_end) const;
  std::set<std::uint64_t> peers_at(std::size_t host) const;
  Moment after(double seconds) const;
  std::function<bool()> back(std::uint64_t id, Peers::Place place);

  Options options_;
  Peers* peers_;
  const Testbed* testbed_;
  const Disks* disks_;
  std::vector<Trouble> open_;
  std::map<std::uint64_t, Round> trusted_from_;  ///< by peer that was out: a round that it must have decided
  std::unique_ptr<Attackers> attackers_;
  std::uint64_t attackers_made_ = 0;
  std::array<std::size_t, kKindNames.size()> made_{};
  std::uint64_t turn_ = 0;
  std::uint64_t last_guest_ = 100;
};

}  // namespace tw::soak
