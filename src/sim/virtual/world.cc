// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/virtual/world_rules.h"
#include "wire/frame.h"

namespace tw::sim {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(200);
constexpr std::uint64_t kMostPeers = 10000;

// Arbitrary order, so that nothing can lean on ids that grow with age; the last digits count.
PeerId id_of(std::uint64_t seed, std::size_t index) {
  return PeerId{(mix(seed, index) % 9000 + 1000) * kMostPeers + index};
}

bool is_progress(world::Phase phase) {
  return phase != world::Phase::wait && phase != world::Phase::refuse && phase != world::Phase::lost;
}

Quality draw_path(const WorldOptions& options, int here, int there, Prng& random) {
  const std::string& near = options.sites.at(static_cast<std::size_t>(here)).name;
  const std::string& far = options.sites.at(static_cast<std::size_t>(there)).name;
  const auto link =
      std::ranges::find_if(options.links, [&](const LinkSpec& spec) { return spec.fits(near, far); });
  TW_CHECK(link != options.links.end());
  return link->draw(random);
}

train::SessionOptions session_options(const WorldOptions& options, const PeerSpec& spec) {
  train::SessionOptions session;
  session.site = site_name(options, spec.site);
  session.anchor = options.sites.at(static_cast<std::size_t>(spec.site)).anchors;
  session.wait_for = options.wait_for;
  session.averaging.segment_length = options.segment_length;
  session.chunk_bytes = options.chunk_bytes;
  session.averaging.probe_from =
      static_cast<std::uint64_t>(static_cast<double>(session.averaging.probe_from) / options.bulk_scale);
  session.run = options.run;
  session.grain = spec.grain;
  return session;
}

// Fresh peers with other parameters than the founder's take its state.
SyntheticModel model_of(const WorldOptions& options, const StoreFaults& stores, PeerId self) {
  SyntheticModel model = options.model;
  model.local = options.run.is_local();
  model.blind = options.run.mode.digest_every > 1;
  if (options.run.has_own_model()) model.seed = mix(model.seed, self.value);
  model.lacks = [&options, &stores, self](std::uint64_t sample) {
    return (options.lacks && options.lacks(self, sample)) || stores.lacks(self, sample);
  };
  return model;
}

Pace pace_of(const PeerSpec& made) {
  Pace pace{.weight_per_s = made.samples_per_s};
  if (made.job > Duration{}) pace.least = made.job;
  return pace;
}

}  // namespace

/// One peer's word, passed on to the checkers.
class World::Witness final : public train::SessionObserver {
 public:
  Witness(World& world, PeerId self) : world_(world), self_(self) {}

  void on_commit(const wire::Record& record) override {
    const Digest digest = digest_of(record);
    world_.referee_.ledger().add(digest, record);
    world_.referee_.tell([&](Checker& checker) { checker.on_commit({self_, record, digest}); });
    world_.history_.note(world_.now(),
                         fmt::format("{} commits {} {}", self_.value, record.round, to_string(digest)));
  }

  void on_applied(const wire::Record& record, const Digest& parameters, bool restored) override {
    const Digest digest = digest_of(record);
    world_.referee_.ledger().add(digest, record);
    world_.referee_.tell([&](Checker& checker) {
      checker.on_applied({self_, record, digest, parameters, restored});
    });
    world_.history_.note(
        world_.now(), fmt::format("{} {} {} {}", self_.value, restored ? "restores" : "applies", record.round,
                                  to_string(parameters)));
    world_.progressed(self_);
  }

 private:
  World& world_;
  PeerId self_;
};

struct World::Node {
  Node(World& world, PeerId id, const PeerSpec& made, std::unique_ptr<VirtualFiles> disk_files, Part played)
      : self(id),
        part(played),
        spec(made),
        process(world.scheduler_),
        clock(process),
        port(world.paths_.network().attach(process, made.line)),
        files(std::move(disk_files)),
        door(
            *files, world.store_, [&world, id] { return world.stores_.is_closed(id); },
            mix(world.options_.seed, id.value)),
        compute(process, pace_of(made), mix(world.options_.seed, 2 * id.value)),
        disk(process, Pace{.least = std::chrono::milliseconds(1)},
             mix(world.options_.seed, 2 * id.value + 1)),
        events(id, world.history_, played == Part::twin ? world.twin_tap_ : world.tap_),
        trainer(model_of(world.options_, world.stores_, id)),
        witness(world, id) {}

  PeerId self;
  std::uint64_t incarnation = 0;
  std::vector<std::string> join;
  Part part;
  PeerSpec spec;
  Process process;
  VirtualClock clock;
  Port& port;
  std::unique_ptr<VirtualFiles> files;  ///< null once another process has it
  PeerFiles door;
  VirtualExecutor compute, disk;
  VirtualEvents events;
  SyntheticTrainer trainer;
  Witness witness;
  std::unique_ptr<train::Session> session;     ///< null once the process is dead
  std::optional<train::SessionView> farewell;  ///< of a session that came to its end
  std::shared_ptr<Tamper> tamper;              // owners: this and the network's outgoing side
  std::optional<world::Phase> phase;
  bool is_told_to_leave = false;
  Instant last_progress{};
  Duration stopped_then{};  ///< process.stopped_for() at last_progress
};

World::World(const WorldOptions& options)
    : options_(options),
      random_(mix(options.seed, 1)),
      history_(options.keep_lines),
      paths_(scheduler_, history_, mix(options.seed, 2)),
      referee_(rules_of(options), options.checkers),
      tap_([this](PeerId peer, const world::Event& event) { on_event(peer, event); }),
      twin_tap_([this](PeerId peer, const world::Event& event) {
        referee_.tell([&](Checker& checker) { checker.on_twin_event(peer, event); });
      }),
      rare_(mix(options.seed, 3)) {
  paths_.network().set_bulk_scale(options.bulk_scale);
  paths_.network().tap([this](const Frame& frame) { referee_.on_sent(frame); });
  look();
}

World::~World() = default;

PeerId World::add_peer(int site) {
  return add_peer(PeerSpec::draw(random_, options_.sites.at(static_cast<std::size_t>(site)), site));
}

PeerId World::add_peer(const PeerSpec& spec) {
  const PeerId self = id_of(options_.seed, nodes_.size());
  history_.note(now(), fmt::format("{} comes", self.value));
  begin(self, spec, std::make_unique<VirtualFiles>(), Part::peer);
  return self;
}

void World::begin(PeerId self, const PeerSpec& spec, std::unique_ptr<VirtualFiles> files, Part part,
                  const Node* again) {
  TW_CHECK(nodes_.size() < kMostPeers);
  train::SessionOptions session = session_options(options_, spec);
  session.self = self;
  session.incarnation = mix(options_.seed, nodes_.size());
  for (const auto& other : nodes_) {
    if (other->session && other->self != self) session.join.push_back(other->port.address());
  }
  if (options_.rare_branches)
    session.rarely = [this](std::string_view site) { return !calm_ && rare_(site); };
  if (again != nullptr) {
    session.join = again->join;
    session.past = train::Past::begun;
    session.past_found = "it ran before";
    session.meeting.unasked = options_.unasked;
  }
  nodes_.push_back(std::make_unique<Node>(*this, self, spec, std::move(files), part));
  Node& added = *nodes_.back();
  added.join = session.join;
  if (again != nullptr) paths_.network().take_over(added.port.number(), again->port.number());
  added.incarnation = session.incarnation;
  if (part == Part::peer) current_[self] = &added;
  paths_.add(self, part == Part::twin);
  for (int other = 0; other < added.port.number(); ++other) {
    const int there = nodes_[static_cast<std::size_t>(other)]->spec.site;
    paths_.lay(other, added.port.number(), draw_path(options_, spec.site, there, random_));
  }
  added.last_progress = scheduler_.now();
  const train::Doors doors{
      .clock = added.clock,
      .network = added.port,
      .files = added.door,
      .compute = added.compute,
      .disk = added.disk,
      .copier = added.disk,  // a copy takes no longer than a save
      .events = added.events,
  };
  train::SessionObserver* observer = part == Part::peer ? &added.witness : nullptr;
  added.session = std::make_unique<train::Session>(doors, session, added.trainer, observer);
  const Result<std::string> address = added.session->start();
  if (!address) referee_.found({"start", address.error().message});
}

void World::kill(PeerId peer, Death death) {
  Node& victim = node(peer);
  history_.note(now(), fmt::format("{} dies", peer.value));
  end(victim, death);
  show_disk(victim);
}

void World::lose_power(PeerId peer) {
  Node& victim = node(peer);
  history_.note(now(), fmt::format("{} loses power", peer.value));
  end(victim, Death::silent);
  victim.files->crash(random_);
  show_disk(victim);
}

void World::show_disk(const Node& seen) {
  VirtualFiles disk = seen.files->without_faults();
  referee_.tell([&](Checker& checker) { checker.on_disk(seen.self, disk); });
  referee_.tell([&](Checker& checker) { checker.on_store(store_); });
}

void World::end(Node& over, Death death) {
  referee_.struck({FaultKind::kill, {over.self}, now(), {}});
  paths_.network().crash(over.port.number(), death);
  over.session.reset();
  if (alive().empty()) referee_.ledger().start_over();
}

void World::come_back(PeerId peer) {
  Node& before = node(peer);
  TW_CHECK(!before.session);
  history_.note(now(), fmt::format("{} comes back", peer.value));
  begin(peer, before.spec, std::move(before.files), Part::peer);
}

void World::relaunch(PeerId peer) {
  Node& before = node(peer);
  TW_CHECK(!before.session);
  history_.note(now(), fmt::format("{} is started again", peer.value));
  begin(peer, before.spec, std::move(before.files), Part::peer, &before);
}

void World::add_twin(PeerId peer) {
  history_.note(now(), fmt::format("{} has a twin", peer.value));
  begin(peer, node(peer).spec, std::make_unique<VirtualFiles>(), Part::twin);
}

void World::stop(PeerId peer, Duration lasts) {
  Node& stopped = node(peer);
  history_.note(now(), fmt::format("{} stops", peer.value));
  stopped.process.stop();
  scheduler_.after(lasts, [&stopped] { stopped.process.resume(); });
}

void World::send_away(PeerId peer, Duration lasts, bool announced) {
  history_.note(now(), fmt::format("the thread of {} is away", peer.value));
  Node& away = node(peer);
  const Instant until = scheduler_.now() + lasts;
  if (!announced) return away.compute.go_away(until);
  const auto tell = [&away](bool paused) {
    if (away.session) away.session->pause(paused);
  };
  away.compute.stand(until);
  tell(true);
  away.process.at(until, [tell] { tell(false); });
}

void World::break_store(PeerId peer, StoreFaults::Lacks lacks) {
  history_.note(now(), fmt::format("the store of {} {}", peer.value, lacks ? "fails" : "is back"));
  stores_.break_samples(peer, std::move(lacks));
}

void World::jump_clock(PeerId peer, Duration by) {
  history_.note(now(), fmt::format("the clock of {} jumps by {} s", peer.value, to_seconds(by)));
  if (by > Duration{}) node(peer).clock.jump(by);
  node(peer).clock.jump_wall(by);
}

void World::flip_memory(PeerId peer, std::uint64_t choice, std::function<void(const Digest&)> done) {
  node(peer).trainer.flip_later(choice, [this, peer, done = std::move(done)](const Digest& parameters) {
    if (calm_ || node(peer).session->view().leader == peer) return false;
    history_.note(now(), fmt::format("a bit of the parameters of {} flips", peer.value));
    done(parameters);
    return true;
  });
}

int World::tamper(PeerId peer, std::optional<FaultKind> kind) {
  Node& hostile = node(peer);
  const int changed = hostile.tamper ? hostile.tamper->struck() : 0;
  history_.note(now(),
                fmt::format("{} sends {}", peer.value, kind ? name_of(*kind) : "what its session wrote"));
  if (!kind) {
    paths_.network().tamper(hostile.port.number(), {});
    return changed;
  }
  // owners: the node and the network's outgoing side
  hostile.tamper =
      std::make_shared<Tamper>(*kind, options_.run.codec, random_.next(), fragments_of(options_));
  paths_.network().tamper(hostile.port.number(),
                          [tamper = hostile.tamper](const Frame& frame) { return (*tamper)(frame); });
  return changed;
}

void World::become_calm() {
  calm_ = true;
  paths_.heal();
  for (const auto& stopped : nodes_) stopped->process.resume();
  stores_.mend_samples();
  for (const auto& [peer, process] : current_) {
    if (process->tamper) tamper(peer, std::nullopt);
    process->compute.come_back();
    if (!process->session) continue;
    process->session->pause(false);
    process->session->set_at_risk(false);
  }
  referee_.tell([&](Checker& checker) { checker.on_calm(now()); });
}

void World::leave(PeerId peer, Duration notice) {
  Node& leaving = node(peer);
  history_.note(now(), fmt::format("{} gets a notice", peer.value));
  const bool again = std::exchange(leaving.is_told_to_leave, true);
  leaving.process.enter([&leaving, notice, again] {  // later, where it is stopped
    if (notice == Duration{}) return again ? leaving.session->leave_at_once() : leaving.session->leave();
    leaving.session->leave_within(notice - kKeptInHand);
  });
}

void World::tell(PeerId peer, std::string_view what, std::function<void(train::Session&)> call) {
  Node& told = node(peer);
  if (!told.session) return;
  history_.note(now(), fmt::format("{} {}", peer.value, what));
  told.process.enter([&told, call = std::move(call)] { call(*told.session); });
}

std::vector<PeerId> World::alive() const {
  std::vector<PeerId> peers;
  for (const auto& candidate : nodes_) {
    if (candidate->session && candidate->part == Part::peer) peers.push_back(candidate->self);
  }
  return peers;
}

bool World::lives(PeerId peer) const {
  const auto found = current_.find(peer);
  return found != current_.end() && found->second->session;
}

bool World::lives(const wire::Member& process) const {
  return lives(process.peer) && node(process.peer).incarnation == process.incarnation;
}

train::SessionView World::view(PeerId peer) const {
  const Node& seen = node(peer);
  TW_CHECK(seen.session || seen.farewell);
  return seen.session ? seen.session->view() : *seen.farewell;
}

World::Standing World::standing(PeerId peer) const {
  const Node& seen = node(peer);
  return {seen.spec.site, seen.join.empty(), seen.phase, seen.session && seen.session->linking().is_alone()};
}

VirtualFiles& World::disk(PeerId peer) { return *node(peer).files; }

bool World::runs_beside(PeerId peer, PeerId other) const {
  const Node& seen = node(other);
  return seen.process.state() == Process::State::running &&
         !paths_.network().cut(node(peer).port.number(), seen.port.number());
}

std::uint64_t World::computed_samples() const {
  std::uint64_t samples = 0;
  for (const auto& process : nodes_) samples += process->trainer.computed();
  return samples;
}

void World::run_until(Instant deadline) {
  while (scheduler_.now() < deadline && !alive().empty()) {
    scheduler_.run_until(std::min(deadline, scheduler_.now() + kLookInterval));
  }
}

void World::finish() {
  std::vector<Survivor> survivors;
  for (const auto& [peer, last] : current_) {
    if (!last->session && !last->farewell) continue;
    survivors.push_back(survivor(*last));
    show_disk(*last);
  }
  referee_.tell([&](Checker& checker) { checker.on_end(survivors); });
}

World::Node& World::node(PeerId peer) const {
  const auto found = current_.find(peer);
  TW_CHECK(found != current_.end());
  return *found->second;
}

void World::look() {
  for (const auto& candidate : nodes_) {
    if (!candidate->session || candidate->part != Part::peer) continue;
    Node& seen = *candidate;
    if (seen.compute.busy()) progressed(seen.self);
    const Survivor survives = survivor(seen);
    referee_.tell([&](Checker& checker) { checker.on_look(survives); });
    if (!survives.view.finished && survives.view.failure.empty()) continue;
    history_.note(now(), fmt::format("{} is done at round {}", seen.self.value, survives.view.round));
    seen.farewell = survives.view;
    paths_.network().crash(seen.port.number(), Death::clean);
    seen.session.reset();
  }
  scheduler_.after(kLookInterval, [this] { look(); });
}

Survivor World::survivor(const Node& seen) const {
  const Duration stopped = seen.process.stopped_for() - seen.stopped_then;
  Survivor survivor{seen.self, seen.session ? seen.session->view() : *seen.farewell,
                    scheduler_.now() - seen.last_progress - stopped, scheduler_.now()};
  survivor.incarnation = seen.incarnation;
  survivor.held_bytes = survivor.view.held_bytes;
  survivor.held_bytes_limit = most_held_bytes(options_, current_.size());
  return survivor;
}

void World::on_event(PeerId peer, const world::Event& event) {
  Node& writer = node(peer);
  if (is_stage(event.phase())) writer.phase = event.phase();
  if (is_progress(event.phase())) progressed(peer);
  if (event.phase() == world::Phase::traffic) {
    std::map<std::string, std::uint64_t> given;
    for (const auto& other : nodes_) {
      if (other.get() == &writer) continue;
      const std::uint64_t bytes = paths_.network().bytes_given(writer.port.number(), other->port.number());
      if (bytes > 0) given[site_name(options_, other->spec.site)] += bytes;
    }
    referee_.tell([&](Checker& checker) { checker.on_traffic(peer, given); });
  }
  referee_.tell([&](Checker& checker) { checker.on_event(peer, event); });
  if (watch_) watch_(peer, event);
}

void World::progressed(PeerId peer) {
  Node& busy = node(peer);
  busy.last_progress = scheduler_.now();
  busy.stopped_then = busy.process.stopped_for();
}

}  // namespace tw::sim
