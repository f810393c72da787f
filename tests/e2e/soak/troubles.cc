// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/troubles.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tw::soak {
namespace {

constexpr std::size_t kGuestSlot = 1;
/// More at the same time leave little of the run to disturb.
constexpr std::ptrdiff_t kMostSlow = 2;

/// In the order of Kind: how often each is drawn.
constexpr std::array<std::size_t, kKindNames.size()> kWeights = {4, 3, 5, 2, 1, 4, 4, 2, 2, 2, 3, 3};

double between(Prng& prng, double least, double most) { return least + (most - least) * prng.uniform(); }

}  // namespace

Troubles::Troubles(Options options, Peers& peers, const Testbed& testbed, const Disks& disks)
    : options_(std::move(options)), peers_(&peers), testbed_(&testbed), disks_(&disks) {}

void Troubles::disturb() {
  constexpr int kDraws = 6;
  for (int draw = 0; draw < kDraws && !draw_one(); ++draw) {
  }
}

bool Troubles::draw_one() {
  Prng prng(mix(options_.seed, ++turn_));
  std::size_t drawn = prng.below(std::accumulate(kWeights.begin(), kWeights.end(), std::size_t{0}));
  std::size_t kind = 0;
  while (drawn >= kWeights[kind]) drawn -= kWeights[kind++];
  if (options_.without.contains(std::string(kKindNames[kind]))) return false;
  const bool done = act(static_cast<Kind>(kind), prng);
  made_[kind] += done ? 1 : 0;
  return done;
}

bool Troubles::act(Kind kind, Prng& prng) {
  switch (kind) {
    case Kind::relaunch:
      return relaunch(prng);
    case Kind::kill:
      return kill(prng);
    case Kind::stop:
      return stop(prng);
    case Kind::suspend:
      return suspend(prng);
    case Kind::wall_step:
      return step_wall(prng);
    case Kind::cut:
      return cut(prng);
    case Kind::cut_pair:
      return cut_pair(prng);
    case Kind::slow_link:
      return slow_link(prng);
    case Kind::join:
      return join(prng);
    case Kind::leave:
      return leave(prng);
    case Kind::full_disk:
      return fill_disk(prng);
    case Kind::siege:
      return besiege(prng);
  }
  return false;
}

// ---- processes
// ------------------------------------------------------------------------------------------------------

bool Troubles::relaunch(Prng& prng) {
  const auto id = any_peer(prng, true);
  if (!id || is_bad(peers_->host_of(*id))) return false;
  const Peers::Place place{peers_->host_of(*id), 0};
  options_.say(fmt::format("kill peer {} and start it again", *id));
  peers_->kill(*id);
  peers_->launch(*id, place);
  return true;
}

bool Troubles::kill(Prng& prng) {
  const auto id = any_peer(prng, true);
  if (!id) return false;
  const Peers::Place place{peers_->host_of(*id), 0};
  peers_->kill(*id);
  open({Kind::kill, after(between(prng, 1, 15)), {}, *id, back(*id, place)},
       fmt::format("kill peer {}", *id));
  return true;
}

bool Troubles::leave(Prng& prng) {
  const auto id = any_peer(prng, true);
  if (!id) return false;
  const Peers::Place place{peers_->host_of(*id), 0};
  peers_->dismiss(*id);
  open({Kind::leave, after(between(prng, 1, 10)), {}, *id, back(*id, place)},
       fmt::format("peer {} is told to leave", *id));
  return true;
}

bool Troubles::stop(Prng& prng) {
  const auto id = any_peer(prng, false);
  if (!id) return false;
  const double length = prng.uniform();
  const double seconds = length < 0.6                           ? between(prng, 0.3, 3.5)
                         : length < 0.95 || !options_.long_ones ? between(prng, 4, 15)
                                                                : 60;
  peers_->send(*id, SIGSTOP);
  open({Kind::stop,
        after(seconds),
        {},
        *id,
        [this, id = *id] {
          peers_->send(id, SIGCONT);
          return true;
        }},
       fmt::format("stop peer {} for {:.1f} s", *id, seconds));
  return true;
}

bool Troubles::suspend(Prng& prng) {
  const auto id = any_peer(prng, false);
  if (!id || !peers_->can_step_clock(*id)) return false;
  const auto by = std::chrono::seconds(prng.chance(0.5) ? 60 : 60 + prng.below(3600));
  peers_->send(*id, SIGSTOP);
  open({Kind::suspend,
        after(between(prng, 0.2, 3)),
        {},
        *id,
        [this, id = *id, by] {
          if (!peers_->runs(id)) return true;
          peers_->clock_of(id).step_monotonic(by);
          peers_->clock_of(id).step_wall(by);
          peers_->send(id, SIGCONT);
          return true;
        }},
       fmt::format("suspend peer {}; its clocks go on by {} s", *id, by.count()));
  return true;
}

bool Troubles::step_wall(Prng& prng) {
  const auto id = any_peer(prng, false);
  if (!id || !peers_->can_step_clock(*id)) return false;
  const auto by = std::chrono::seconds(prng.below(7200)) - std::chrono::seconds(3600);
  peers_->clock_of(*id).step_wall(by);
  open({Kind::wall_step,
        after(between(prng, 2, 15)),
        {},
        *id,
        [this, id = *id, by] {
          if (peers_->runs(id)) peers_->clock_of(id).step_wall(-by);
          return true;
        }},
       fmt::format("set the calendar of peer {} by {} s", *id, by.count()));
  return true;
}

bool Troubles::join(Prng& prng) {
  const std::size_t host = prng.below(testbed_->hosts());
  if (is_open(Kind::join) || is_bad(host)) return false;
  const std::uint64_t id = ++last_guest_;
  peers_->launch(id, {host, kGuestSlot});
  const bool leaves = prng.chance(0.6);
  open({Kind::join,
        after(between(prng, 5, 30)),
        {},
        {},
        [this, id, leaves] {  // the next guest of the host listens at the same port
          if (peers_->is_leaving(id)) return false;
          if (!peers_->runs(id)) return true;
          if (peers_->is_settled(id)) leaves ? peers_->dismiss(id) : peers_->kill(id);
          return !peers_->runs(id) && !peers_->is_leaving(id);
        }},
       fmt::format("peer {} joins on host {}; it is to {} later", id, Testbed::site(host),
                   leaves ? "leave" : "be killed"));
  return true;
}

// ---- links
// ------------------------------------------------------------------------------------------------------

bool Troubles::cut(Prng& prng) {
  const std::size_t host = prng.below(testbed_->hosts());
  if (!testbed_->is_up() || has_link_trouble(host) || !may_lose(peers_at(host))) return false;
  const bool is_long = options_.long_ones && prng.chance(0.15);
  const double seconds = is_long ? between(prng, 25, 45) : between(prng, 0.5, 9);
  const std::string pair = Testbed::site(host) + ":all";
  if (!testbed_->tell("set " + pair + " outage on")) return false;
  open({Kind::cut,
        after(seconds),
        {host},
        {},
        [this, pair] { return testbed_->tell("set " + pair + " outage off"); }},
       fmt::format("cut host {} off for {:.1f} s", Testbed::site(host), seconds));
  return true;
}

bool Troubles::cut_pair(Prng& prng) {
  const std::size_t one = prng.below(testbed_->hosts());
  const std::size_t other = (one + 1 + prng.below(testbed_->hosts() - 1)) % testbed_->hosts();
  auto both = peers_at(one);
  both.merge(peers_at(other));
  if (!testbed_->is_up() || has_link_trouble(one) || has_link_trouble(other) || !may_lose(both)) return false;
  const std::string pair = Testbed::site(one) + ":" + Testbed::site(other);
  const std::string way = prng.chance(0.5) ? " --one-way" : "";
  if (!testbed_->tell(fmt::format("set {} outage on{}", pair, way))) return false;
  open({Kind::cut_pair,
        after(between(prng, 0.5, 12)),
        {one, other},
        {},
        [this, pair] { return testbed_->tell("set " + pair + " outage off"); }},
       fmt::format("cut {}{}", pair, way));
  return true;
}

bool Troubles::slow_link(Prng& prng) {
  static const std::vector<std::pair<std::string, std::string>> kChanges = {
      {"bandwidth 3mbit", "bandwidth 1gbit"},
      {"bandwidth 20mbit", "bandwidth 1gbit"},
      {"rtt 400ms", "rtt 20ms"},
      {"jitter 80ms", "jitter 0ms"}};
  const std::size_t host = prng.below(testbed_->hosts());
  const auto slow = std::count_if(open_.begin(), open_.end(),
                                  [](const Trouble& trouble) { return trouble.kind == Kind::slow_link; });
  if (!testbed_->is_up() || has_link_trouble(host) || slow >= kMostSlow) return false;
  const auto& [bad, good] = kChanges[prng.below(kChanges.size())];
  const std::string pair = Testbed::site(host) + ":all ";
  if (!testbed_->tell("set " + pair + bad)) return false;
  open({Kind::slow_link,
        after(between(prng, 2, 20)),
        {host},
        {},
        [this, words = "set " + pair + good] { return testbed_->tell(words); }},
       fmt::format("links of host {}: {}", Testbed::site(host), bad));
  return true;
}

bool Troubles::besiege(Prng& prng) {
  if (attackers_) return false;
  const std::size_t host = prng.below(testbed_->hosts());
  const std::size_t from = (host + 1 + prng.below(testbed_->hosts() - 1)) % testbed_->hosts();
  attackers_ = std::make_unique<Attackers>(Attackers::Options{
      .target = testbed_->listen_address(host, 0), .netns = testbed_->netns(from), .seed = prng.next()});
  open({Kind::siege,
        after(between(prng, 4, 20)),
        {},
        {},
        [this] {
          attackers_made_ += attackers_->made();
          attackers_.reset();
          return true;
        }},
       fmt::format("attackers besiege host {} from {}", Testbed::site(host), Testbed::site(from)));
  return true;
}

bool Troubles::fill_disk(Prng& prng) {
  const std::size_t host = prng.below(testbed_->hosts());
  if (!disks_->can_fill() || is_open(Kind::full_disk)) return false;
  const auto there = peers_at(host);
  const bool begun = std::all_of(there.begin(), there.end(), [&](auto id) { return peers_->is_settled(id); });
  if (!begun || !disks_->fill(host)) return false;
  open({Kind::full_disk,
        after(between(prng, 2, 20)),
        {host},
        {},
        [this, host] {
          disks_->free(host);
          return true;
        }},
       fmt::format("the disk of host {} is full", Testbed::site(host)));
  return true;
}

// ---- what is wrong now
// ------------------------------------------------------------------------------------------------------

void Troubles::open(Trouble trouble, const std::string& what) {
  options_.say(what);
  open_.push_back(std::move(trouble));
}

void Troubles::mend() {
  const Moment now = std::chrono::steady_clock::now();
  // What mends one thing looks at the others.
  std::vector<bool> ended;
  for (Trouble& trouble : open_) ended.push_back(trouble.until <= now && trouble.mend());
  for (std::size_t i = open_.size(); i-- > 0;) {
    if (!ended[i]) continue;
    distrust(open_[i]);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Troubles::distrust(const Trouble& trouble) {
  std::set<std::uint64_t> ids;
  if (trouble.peer) ids.insert(*trouble.peer);
  for (const std::size_t host : trouble.hosts) ids.merge(peers_at(host));
  for (const std::uint64_t id : ids) trusted_from_[id] = peers_->newest_round() + 2;
}

bool Troubles::is_trusted(std::uint64_t id) const {
  const auto found = trusted_from_.find(id);
  return peers_->is_settled(id) && (found == trusted_from_.end() || peers_->last_round(id) >= found->second);
}

void Troubles::mend_all() {
  const Moment now = std::chrono::steady_clock::now();
  for (Trouble& trouble : open_) trouble.until = std::min(trouble.until, now);
  mend();
}

std::string Troubles::now() const {
  std::string names;
  for (const Trouble& trouble : open_)
    names += (names.empty() ? "" : ", ") + std::string(kKindNames[static_cast<std::size_t>(trouble.kind)]);
  return names.empty() ? "nothing" : names;
}

std::size_t Troubles::made() const { return std::accumulate(made_.begin(), made_.end(), std::size_t{0}); }

bool Troubles::is_open(Kind kind, std::optional<std::size_t> host) const {
  return std::any_of(open_.begin(), open_.end(), [&](const Trouble& trouble) {
    return trouble.kind == kind && (!host || trouble.hosts.contains(*host));
  });
}

bool Troubles::has_link_trouble(std::size_t host) const {
  return is_open(Kind::cut, host) || is_open(Kind::cut_pair, host) || is_open(Kind::slow_link, host);
}

bool Troubles::is_bad(std::size_t host) const {
  return is_open(Kind::cut, host) || is_open(Kind::cut_pair, host) || is_open(Kind::full_disk, host);
}

bool Troubles::is_troubled(std::uint64_t id) const {
  const bool out = std::any_of(open_.begin(), open_.end(), [&](const Trouble& t) { return t.peer == id; });
  if (out || !peers_->runs(id)) return true;
  const std::size_t host = peers_->host_of(id);
  return is_open(Kind::cut, host) || is_open(Kind::cut_pair, host);
}

bool Troubles::may_lose(const std::set<std::uint64_t>& ids) const {
  std::size_t stay = 0;
  for (const std::uint64_t id : peers_->ids())
    stay += is_trusted(id) && !is_troubled(id) && !ids.contains(id) ? 1 : 0;
  const bool settled = std::all_of(ids.begin(), ids.end(), [&](auto id) { return is_trusted(id); });
  return settled && stay >= 2 && 2 * stay > peers_->members();
}

std::optional<std::uint64_t> Troubles::any_peer(Prng& prng, bool may_end) const {
  std::vector<std::uint64_t> ids = peers_->ids();
  std::erase_if(ids, [&](std::uint64_t id) {
    const bool guest = id > 100;
    return guest || is_troubled(id) || (may_end && options_.long_lived.contains(id)) || !may_lose({id});
  });
  if (ids.empty()) return std::nullopt;
  return ids[prng.below(ids.size())];
}

std::set<std::uint64_t> Troubles::peers_at(std::size_t host) const {
  std::set<std::uint64_t> ids;
  for (const std::uint64_t id : peers_->ids()) {
    if (peers_->host_of(id) == host) ids.insert(id);
  }
  return ids;
}

Moment Troubles::after(double seconds) const {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Moment::duration>(std::chrono::duration<double>(seconds));
}

std::function<bool()> Troubles::back(std::uint64_t id, Peers::Place place) {
  return [this, id, place] {
    if (peers_->is_leaving(id) || is_bad(place.host)) return false;
    options_.say(fmt::format("peer {} comes back", id));
    peers_->launch(id, place);
    return true;
  };
}

}  // namespace tw::soak
