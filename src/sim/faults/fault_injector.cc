// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/fault_injector.h"

#include <algorithm>
#include <utility>

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

/// A death without notice is noticed within this time (docs/protocol.md: max(2 s, 6 RTT)).
constexpr Duration kUnnoticed = 4s;
constexpr Duration kClockJump = 1h;
/// Wait of a rolling relaunch until the next peer may go.
constexpr Duration kAskAgain = 1s;
/// Reads of a store that does not answer come to an end after this time.
constexpr Duration kStoreGivesUp = 8s;
/// A third peer without a sample ends the run (docs/data.md).
constexpr std::size_t kMostWithoutStore = 2;
/// A store that lacks samples lacks one in so many.
constexpr std::uint64_t kLacksOneIn = 16;

DiskFault disk_fault_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::disk_full:
      return DiskFault::full;
    case FaultKind::disk_error:
      return DiskFault::error;
    case FaultKind::torn_write:
      return DiskFault::torn_write;
    case FaultKind::lost_fsync:
      return DiskFault::lost_fsync;
    case FaultKind::bit_flip:
      return DiskFault::bit_flip;
    default:
      return DiskFault::rename_lost;
  }
}

}  // namespace

FaultInjector::FaultInjector(const Scenario& scenario, World& world)
    : scenario_(scenario), world_(world), came_(0) {
  for (const SiteSpec& site : scenario.sites) came_ += site.peers;
}

void FaultInjector::strike(const Fault& fault, std::optional<PeerId> author) {
  const Peers alive = world_.alive();
  if (calm_ || alive.size() < 2) return;
  const PeerId victim = aim(fault, author, alive);
  const PeerId other = alive[(fault.choice >> 20) % alive.size()];
  if (strike_one(fault, victim, other)) ++fired_[fault.kind];
}

bool FaultInjector::strike_one(const Fault& fault, PeerId victim, PeerId other) {
  switch (row_of(fault.kind).place) {
    case FaultPlace::path:
      return victim != other && strike_path(fault, victim, other);
    case FaultPlace::network:
      return strike_network(fault, victim);
    case FaultPlace::process:
      return strike_process(fault, victim);
    case FaultPlace::disk:
      return strike_disk(fault, victim);
    case FaultPlace::store:
      return strike_store(fault, victim);
    case FaultPlace::messages:
      return tamper(fault, victim);
  }
  return false;
}

bool FaultInjector::tamper(const Fault& fault, PeerId victim) {
  if (tampering_.contains(victim)) return false;
  world_.tamper(victim, fault.kind);
  tampering_[victim] = fault.kind;
  tell(fault.kind, {victim}, fault.lasts);
  later(fault.lasts, [this, victim, kind = fault.kind] { end_tampering(victim, kind); });
  return false;  // counted once a message was changed
}

void FaultInjector::end_tampering(PeerId victim, FaultKind kind) {
  if (tampering_.erase(victim) == 0) return;
  if (world_.tamper(victim, std::nullopt) > 0) ++fired_[kind];
}

int FaultInjector::fired(FaultKind kind) const {
  const auto found = fired_.find(kind);
  return found == fired_.end() ? 0 : found->second;
}

void FaultInjector::become_calm() {
  if (calm_) return;
  for (const auto& [victim, kind] : std::map(tampering_)) end_tampering(victim, kind);
  calm_ = true;
  world_.become_calm();
}

PeerId FaultInjector::aim(const Fault& fault, std::optional<PeerId> author, const Peers& alive) const {
  const PeerId any = alive[fault.choice % alive.size()];
  if (fault.aim == Aim::author && author && world_.lives(*author)) return *author;
  if (fault.aim == Aim::leader) {
    const PeerId leader = world_.view(any).leader;
    if (world_.lives(leader)) return leader;
  }
  return any;
}

void FaultInjector::later(Duration after, std::function<void()> call) {
  world_.scheduler().after(after, [this, call = std::move(call)] {
    if (!calm_) call();
  });
}

void FaultInjector::tell(FaultKind kind, Peers victims, Duration lasts) {
  world_.referee().struck({kind, std::move(victims), world_.now(), lasts});
}

// ---- the network

bool FaultInjector::strike_path(const Fault& fault, PeerId victim, PeerId other) {
  if (fault.kind == FaultKind::reset) {
    world_.paths().reset_link(victim, other);
  } else if (fault.kind == FaultKind::black_hole) {
    world_.paths().black_hole(victim, other);
  } else {
    worsen(fault, victim, other);
  }
  tell(fault.kind, {victim, other}, fault.lasts);
  return true;
}

bool FaultInjector::worsen(const Fault& fault, PeerId a, PeerId b) {
  Prng random(fault.choice);
  const Quality usual = world_.paths().path(a, b);
  Quality worse = usual;
  if (fault.kind == FaultKind::slow) worse.bytes_per_s *= Between{0.1, 0.5}.draw(random);
  if (fault.kind == FaultKind::latency) worse.latency = from_seconds(Between{0, 0.4}.draw(random));
  if (fault.kind == FaultKind::jitter)
    worse.jitter = from_seconds(to_seconds(usual.latency) * Between{1, 10}.draw(random));
  world_.paths().set_path(a, b, worse);
  later(fault.lasts, [this, a, b, usual] { world_.paths().set_path(a, b, usual); });
  return true;
}

bool FaultInjector::strike_network(const Fault& fault, PeerId victim) {
  Prng random(fault.choice);
  const std::set<PeerId> side = side_of(victim, random);
  if (fault.kind == FaultKind::clog) {
    swizzle(fault, victim);
  } else if (fault.kind == FaultKind::one_way) {
    world_.paths().hold_from(side);
    later(fault.lasts, [this] { world_.paths().heal(); });
  } else {
    world_.paths().isolate(side, random.chance(0.3));
    later(fault.lasts, [this] { world_.paths().heal(); });
  }
  tell(fault.kind, {side.begin(), side.end()}, fault.lasts);
  return true;
}

// A whole site where there are several; else some peers.
std::set<PeerId> FaultInjector::side_of(PeerId victim, Prng& random) const {
  std::set<PeerId> side{victim};
  const bool region = scenario_.sites.size() > 1 && random.chance(0.6);
  for (const PeerId peer : world_.alive()) {
    if (region ? world_.standing(peer).site == world_.standing(victim).site : random.chance(0.3))
      side.insert(peer);
  }
  return side;
}

void FaultInjector::swizzle(const Fault& fault, PeerId victim) {
  Prng random(fault.choice);
  const std::set<PeerId> chosen = side_of(victim, random);
  for (const PeerId peer : chosen) {
    const double from_s = to_seconds(fault.lasts) * random.uniform() / 2;
    const double to_s = to_seconds(fault.lasts) * (1 + random.uniform()) / 2;
    later(from_seconds(from_s), [this, peer] { world_.paths().clog(peer); });
    later(from_seconds(to_s), [this, peer] { world_.paths().unclog(peer); });
  }
}

// ---- processes and machines

bool FaultInjector::strike_process(const Fault& fault, PeerId victim) {
  switch (fault.kind) {
    case FaultKind::join:
      return join(victim);
    case FaultKind::leave:
      return leave(victim);
    case FaultKind::end_run:
      world_.tell(victim, "ends the run", [](auto& session) { session.end_run(train::EndCause::program); });
      break;
    case FaultKind::kill:
      tell(fault.kind, {victim});
      return end(victim, fault.death);
    case FaultKind::stop:
      world_.stop(victim, fault.lasts);
      break;
    case FaultKind::away:
      world_.send_away(victim, fault.lasts, (fault.choice & 1) != 0);
      tell(fault.kind, {victim}, fault.lasts);
      return true;
    case FaultKind::preempt_0s:
    case FaultKind::preempt_10s:
    case FaultKind::preempt_30s:
    case FaultKind::preempt_120s:
      return preempt(fault.kind, victim);
    case FaultKind::at_risk:
      return put_at_risk(victim, fault.lasts);
    case FaultKind::zone_loss:
      return lose_zone(fault, victim);
    case FaultKind::return_stale:
      if (!end(victim, fault.death)) return false;
      later(fault.lasts, [this, victim] {
        gone_.erase(victim);
        world_.come_back(victim);
      });
      break;
    case FaultKind::relaunch:
      return relaunch(victim, fault);
    case FaultKind::rolling_relaunch:
      roll(world_.alive(), fault);
      return true;
    case FaultKind::loss_of_all:
      return lose_all(fault);
    case FaultKind::twin:
      world_.add_twin(victim);
      break;
    case FaultKind::memory_flip:
      world_.flip_memory(victim, fault.choice, [this, victim](const Digest& parameters) {
        ++fired_[FaultKind::memory_flip];
        world_.referee().struck({FaultKind::memory_flip, {victim}, world_.now(), {}, parameters});
      });
      return false;
    case FaultKind::clock_jump:
      world_.jump_clock(victim, (fault.choice & 1) != 0 ? kClockJump : -kClockJump);
      break;
    default:
      return false;
  }
  tell(fault.kind, {victim});
  return true;
}

// Nobody may pay for it, so that no checker hears of it.
bool FaultInjector::put_at_risk(PeerId victim, Duration lasts) {
  world_.tell(victim, "is at risk", [](auto& session) { session.set_at_risk(true); });
  later(lasts, [this, victim] {
    world_.tell(victim, "is safe", [](auto& session) { session.set_at_risk(false); });
  });
  return true;
}

bool FaultInjector::end(PeerId victim, Death death) {
  if (!may_go(victim)) return false;
  if (const auto phase = world_.standing(victim).phase) ++kills_by_phase_[*phase];
  if (world_.view(victim).leader == victim) ++leader_kills_;
  world_.kill(victim, death);
  gone_[victim] = world_.now();
  return true;
}

bool FaultInjector::relaunch(PeerId victim, const Fault& fault) {
  if (!end(victim, fault.death)) return false;
  tell(FaultKind::relaunch, {victim});
  later(fault.lasts, [this, victim] {
    gone_.erase(victim);
    world_.relaunch(victim);
  });
  return true;
}

// A peer that may not go yet (others have just gone, or are no members again) is asked again later.
void FaultInjector::roll(Peers left, const Fault& fault) {
  while (!left.empty() && !world_.lives(left.front())) left.erase(left.begin());
  if (left.empty()) return;
  const bool gone = relaunch(left.front(), fault);
  if (gone) left.erase(left.begin());
  later(gone ? fault.lasts : kAskAgain, [this, left = std::move(left), fault] { roll(left, fault); });
}

// The first peer begins the run again, so it has to be among them. That the others come back does not depend
// on what happens meanwhile.
bool FaultInjector::lose_all(const Fault& fault) {
  const Peers all = world_.alive();
  const auto first = std::ranges::find_if(all, [this](PeerId peer) { return world_.standing(peer).founds; });
  const wire::Record* newest = world_.referee().ledger().newest();
  if (first == all.end() || newest == nullptr || newest->round == 0) return false;
  tell(FaultKind::loss_of_all, all);
  for (const PeerId peer : all) {
    world_.kill(peer, fault.death);
    gone_.erase(peer);
  }
  world_.relaunch(*first);
  Prng random(fault.choice);
  for (const PeerId peer : all) {
    const Duration after = from_seconds(to_seconds(fault.lasts) * random.uniform());
    if (peer != *first) world_.scheduler().after(after, [this, peer] { world_.relaunch(peer); });
  }
  return true;
}

bool FaultInjector::power_off(PeerId victim) {
  if (!world_.lives(victim) || !may_go(victim)) return false;
  world_.lose_power(victim);
  gone_[victim] = world_.now();
  return true;
}

bool FaultInjector::preempt(FaultKind kind, PeerId victim) {
  if (!may_go(victim)) return false;
  tell(kind, {victim});
  const Duration notice = row_of(kind).notice;
  if (notice == 0s) return power_off(victim);
  world_.leave(victim, notice);
  gone_[victim] = world_.now();
  later(notice, [this, victim] {
    if (world_.lives(victim)) world_.lose_power(victim);
  });
  return true;
}

bool FaultInjector::lose_zone(const Fault& fault, PeerId victim) {
  Peers lost;
  for (const PeerId peer : world_.alive()) {
    const bool in_it = world_.standing(peer).site == world_.standing(victim).site;
    if (in_it && may_go(peer) && end(peer, fault.death)) lost.push_back(peer);
  }
  if (lost.empty()) return false;
  tell(FaultKind::zone_loss, lost);
  return lost.size() > 1;
}

bool FaultInjector::join(PeerId beside) {
  if (++came_ > scenario_.most_peers) return false;
  world_.add_peer(world_.standing(beside).site);
  return true;
}

bool FaultInjector::leave(PeerId peer) {
  if (!may_go(peer)) return false;
  world_.leave(peer);
  gone_[peer] = world_.now();
  return true;
}

// ---- disks

bool FaultInjector::strike_disk(const Fault& fault, PeerId victim) {
  const DiskFault kind = disk_fault_of(fault.kind);
  const int operations = static_cast<int>(fault.choice % 4);
  const bool ends =
      kind == DiskFault::torn_write || kind == DiskFault::lost_fsync || kind == DiskFault::rename_lost;
  if (ends && !may_go(victim)) return false;
  world_.disk(victim).arm(kind, operations, fault.choice, [this, victim, name = fault.kind] {
    ++fired_[name];
    later({}, [this, victim, name] {
      tell(name, {victim});
      if (name == FaultKind::torn_write && !power_off(victim) && world_.lives(victim))
        world_.disk(victim).mend();
    });
  });
  tell(fault.kind, {victim});
  if (kind == DiskFault::torn_write) return false;  // counted once it strikes, as the others
  const bool power = kind == DiskFault::lost_fsync || kind == DiskFault::rename_lost;
  later(fault.lasts, [this, victim, power] {
    if (power && power_off(victim)) return;
    if (world_.lives(victim)) world_.disk(victim).mend();
  });
  return false;
}

// ---- stores

bool FaultInjector::strike_store(const Fault& fault, PeerId victim) {
  if (!without_store_.contains(victim) && without_store_.size() == kMostWithoutStore) return false;
  without_store_.insert(victim);
  const bool away = fault.kind == FaultKind::store_away;
  world_.break_store(victim, [away, draw = fault.choice](std::uint64_t sample) {
    return away || mix(draw, sample) % kLacksOneIn == 0;
  });
  if (away) world_.send_away(victim, std::min(fault.lasts, kStoreGivesUp), false);
  if (away) world_.stores().close(victim);
  tell(fault.kind, {victim}, fault.lasts);
  later(fault.lasts, [this, victim] {
    world_.break_store(victim, {});
    world_.stores().open(victim);
  });
  return true;
}

// ---- who must live on

// Whether whatever may be decided next can go on without this peer.
bool FaultInjector::may_go(PeerId peer) const {
  const wire::Record* last = world_.referee().ledger().newest();
  if (last == nullptr || last->round == 0) return false;
  std::vector<wire::Record> bases = world_.referee().open_drafts();
  bases.push_back(*last);
  if (const wire::Record* before = world_.referee().ledger().find(last->parent)) bases.push_back(*before);
  return (!scenario_.keep_majority || most_beside_live(peer)) &&
         std::all_of(bases.begin(), bases.end(),
                     [&](const wire::Record& record) { return enough_live_without(record, peer); });
}

// A leader that has not noticed yet who died of late may name all of them in its next draft.
bool FaultInjector::most_beside_live(PeerId peer) const {
  std::size_t beside = 0;
  for (const PeerId other : world_.alive()) {
    beside += world_.runs_beside(peer, other) && !gone_.contains(other) ? 1 : 0;
  }
  const Instant of_late = world_.now() - kUnnoticed;
  const auto dead =
      std::count_if(gone_.begin(), gone_.end(), [&](const auto& gone) { return gone.second > of_late; });
  return 2 * (beside - 1) > beside + static_cast<std::size_t>(dead);
}

bool FaultInjector::enough_live_without(const wire::Record& record, PeerId peer) const {
  const auto live =
      std::count_if(record.members.begin(), record.members.end(), [&](const wire::Member& member) {
        return member.peer != peer && !gone_.contains(member.peer) && world_.lives(member);
      });
  return scenario_.keep_majority ? 2 * live > std::ssize(record.members) : live > 0;
}

}  // namespace tw::sim
