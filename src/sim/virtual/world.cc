// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/virtual/world_rules.h"
#include "swarm/leases/lease_book.h"
#include "wire/frame.h"

namespace tw::sim {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(200);
const VirtualEvents::Watch kNoTap = [](PeerId, const world::Event&) {};
constexpr std::uint64_t kMostPeers = 10000;

// Arbitrary order, so that nothing can lean on ids that grow with age; the last digits count.
PeerId id_of(std::uint64_t seed, std::size_t index) {
  return PeerId{(mix(seed, index) % 9000 + 1000) * kMostPeers + index};
}

bool is_progress(world::Phase phase) {
  return phase != world::Phase::wait && phase != world::Phase::refuse && phase != world::Phase::lost;
}

bool is_plan(const Frame& frame) {
  static const std::byte kType = encode(wire::Plan{}).head.bytes().front();
  return !frame.head.empty() && frame.head.bytes().front() == kType;
}

}  // namespace

/// One peer's word, passed on to the checkers.
class World::Witness final : public train::SessionObserver {
 public:
  Witness(World& world, PeerId self) : world_(world), self_(self) {}

  void on_commit(const wire::Record& record) override {
    const Digest digest = digest_of(record);
    world_.ledger_.add(digest, record);
    for (const auto& checker : world_.checkers_) checker->on_commit({self_, record, digest});
    world_.note(fmt::format("{} commits {} {}", self_.value, record.round, to_string(digest)));
  }

  void on_applied(const wire::Record& record, const Digest& parameters, bool restored) override {
    const Digest digest = digest_of(record);
    world_.ledger_.add(digest, record);
    for (const auto& checker : world_.checkers_) {
      checker->on_applied({self_, record, digest, parameters, restored});
    }
    world_.note(fmt::format("{} {} {} {}", self_.value, restored ? "restores" : "applies", record.round,
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
        port(world.network_.attach(process, made.line)),
        files(std::move(disk_files)),
        door(
            *files, world.store_, [&world, id] { return world.without_store_.contains(id); },
            mix(world.options_.seed, id.value)),
        compute(process, Pace{.weight_per_s = made.samples_per_s}, mix(world.options_.seed, 2 * id.value)),
        disk(process, Pace{.least = std::chrono::milliseconds(1)},
             mix(world.options_.seed, 2 * id.value + 1)),
        events(id, world.history_, played == Part::twin ? kNoTap : world.tap_),
        trainer(world.model_of(id)),
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
      network_(scheduler_, mix(options.seed, 2)),
      history_(options.keep_lines),
      checkers_(make_checkers(rules_of(options), ledger_, options.checkers).value()),
      tap_([this](PeerId peer, const world::Event& event) { on_event(peer, event); }),
      rare_(mix(options.seed, 3)) {
  network_.set_bulk_scale(options.bulk_scale);
  network_.tap([this](const Frame& frame) { on_sent(frame); });
  look();
}

World::~World() = default;

PeerId World::add_peer(int site) {
  return add_peer(PeerSpec::draw(random_, options_.sites.at(static_cast<std::size_t>(site)), site));
}

PeerId World::add_peer(const PeerSpec& spec) {
  const PeerId self = id_of(options_.seed, nodes_.size());
  note(fmt::format("{} comes", self.value));
  begin(self, spec, std::make_unique<VirtualFiles>(), Part::peer);
  return self;
}

void World::begin(PeerId self, const PeerSpec& spec, std::unique_ptr<VirtualFiles> files, Part part,
                  const Node* again) {
  TW_CHECK(nodes_.size() < kMostPeers);
  train::SessionOptions session = session_options(self, spec);
  if (again != nullptr) {
    session.join = again->join;
    session.past = train::Past::begun;
    session.past_found = "it ran before";
  }
  nodes_.push_back(std::make_unique<Node>(*this, self, spec, std::move(files), part));
  Node& added = *nodes_.back();
  added.join = session.join;
  if (again != nullptr) network_.take_over(added.port.number(), again->port.number());
  added.incarnation = session.incarnation;
  if (part == Part::peer) current_[self] = &added;
  lay_paths(added);
  added.last_progress = scheduler_.now();
  const train::Doors doors{added.clock, added.port, added.door, added.compute, added.disk, added.events};
  train::SessionObserver* observer = part == Part::peer ? &added.witness : nullptr;
  added.session = std::make_unique<train::Session>(doors, session, added.trainer, observer);
  const Result<std::string> address = added.session->start();
  if (!address) violations_.push_back({"start", address.error().message});
}

void World::lay_paths(const Node& added) {
  for (int other = 0; other < added.port.number(); ++other) {
    const std::string& here = options_.sites.at(static_cast<std::size_t>(added.spec.site)).name;
    const int there = nodes_[static_cast<std::size_t>(other)]->spec.site;
    const std::string& far = options_.sites.at(static_cast<std::size_t>(there)).name;
    const auto link = std::find_if(options_.links.begin(), options_.links.end(),
                                   [&](const LinkSpec& spec) { return spec.fits(here, far); });
    TW_CHECK(link != options_.links.end());
    const Quality quality = link->draw(random_);
    drawn_paths_[{other, added.port.number()}] = quality;
    network_.set_quality(added.port.number(), other, quality);
  }
}

bool World::lacks(PeerId peer, std::uint64_t sample) const {
  if (options_.lacks && options_.lacks(peer, sample)) return true;
  const auto broken = broken_stores_.find(peer);
  return broken != broken_stores_.end() && broken->second(sample);
}

// Fresh peers with other parameters than the founder's take its state.
SyntheticModel World::model_of(PeerId self) const {
  SyntheticModel model = options_.model;
  if (options_.run.has_own_model()) model.seed = mix(model.seed, self.value);
  model.lacks = [this, self](std::uint64_t sample) { return lacks(self, sample); };
  return model;
}

train::SessionOptions World::session_options(PeerId self, const PeerSpec& spec) {
  train::SessionOptions session;
  session.self = self;
  session.site = site_name(options_, spec.site);
  session.incarnation = mix(options_.seed, nodes_.size());
  session.anchor = options_.sites.at(static_cast<std::size_t>(spec.site)).anchors;
  for (const auto& other : nodes_) {
    if (other->session && other->self != self) session.join.push_back(other->port.address());
  }
  session.wait_for = options_.wait_for;
  session.segment_length = options_.segment_length;
  session.chunk_bytes = options_.chunk_bytes;
  session.probe_from =
      static_cast<std::uint64_t>(static_cast<double>(session.probe_from) / options_.bulk_scale);
  session.run = options_.run;
  session.grain = spec.grain;
  if (options_.rare_branches)
    session.rarely = [this](std::string_view site) { return !calm_ && rare_(site); };
  return session;
}

void World::kill(PeerId peer, Death death) {
  Node& victim = node(peer);
  note(fmt::format("{} dies", peer.value));
  end(victim, death);
  show_disk(victim);
}

void World::lose_power(PeerId peer) {
  Node& victim = node(peer);
  note(fmt::format("{} loses power", peer.value));
  end(victim, Death::silent);
  victim.files->crash(random_);
  show_disk(victim);
}

void World::show_disk(const Node& seen) {
  VirtualFiles disk = seen.files->without_faults();
  for (const auto& checker : checkers_) checker->on_disk(seen.self, disk);
  for (const auto& checker : checkers_) checker->on_store(store_);
}

void World::end(Node& over, Death death) {
  struck({FaultKind::kill, {over.self}, now(), {}});
  network_.crash(over.port.number(), death);
  over.session.reset();
  if (alive().empty()) ledger_.start_over();
}

void World::come_back(PeerId peer) {
  Node& before = node(peer);
  TW_CHECK(!before.session);
  note(fmt::format("{} comes back", peer.value));
  begin(peer, before.spec, std::move(before.files), Part::peer);
}

void World::relaunch(PeerId peer) {
  Node& before = node(peer);
  TW_CHECK(!before.session);
  note(fmt::format("{} is started again", peer.value));
  begin(peer, before.spec, std::move(before.files), Part::peer, &before);
}

void World::add_twin(PeerId peer) {
  note(fmt::format("{} has a twin", peer.value));
  begin(peer, node(peer).spec, std::make_unique<VirtualFiles>(), Part::twin);
}

void World::stop(PeerId peer, Duration lasts) {
  Node& stopped = node(peer);
  note(fmt::format("{} stops", peer.value));
  stopped.process.stop();
  scheduler_.after(lasts, [&stopped] { stopped.process.resume(); });
}

void World::send_away(PeerId peer, Duration lasts, bool announced) {
  note(fmt::format("the thread of {} is away", peer.value));
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

void World::break_store(PeerId peer, std::function<bool(std::uint64_t)> lacks) {
  note(fmt::format("the store of {} {}", peer.value, lacks ? "fails" : "is back"));
  if (lacks) {
    broken_stores_[peer] = std::move(lacks);
  } else {
    broken_stores_.erase(peer);
  }
}

void World::resume_all() {
  for (const auto& stopped : nodes_) stopped->process.resume();
}

void World::isolate(const std::set<PeerId>& peers, bool close_links) {
  std::set<int> ports;
  std::string names;
  for (const PeerId peer : peers) {
    ports.insert(node(peer).port.number());
    names += to_string(peer) + " ";
  }
  note(names + "are cut off");
  network_.isolate(ports, close_links);
}

void World::hold_from(const std::set<PeerId>& peers) {
  std::string names;
  for (const PeerId peer : peers) {
    names += to_string(peer) + " ";
    for (const auto& [other, receiver] : current_) {
      if (!peers.contains(other)) network_.hold(node(peer).port.number(), receiver->port.number());
    }
  }
  note(names + "are not heard by the others");
}

void World::clog(PeerId peer) {
  note(fmt::format("{} is clogged", peer.value));
  const int own = node(peer).port.number();
  for (const auto& [other, end] : current_) {
    if (other == peer) continue;
    network_.hold(own, end->port.number());
    network_.hold(end->port.number(), own);
  }
}

void World::unclog(PeerId peer) {
  note(fmt::format("{} is free", peer.value));
  const int own = node(peer).port.number();
  for (const auto& [other, end] : current_) {
    if (other == peer) continue;
    network_.release(own, end->port.number());
    network_.release(end->port.number(), own);
  }
}

void World::heal() {
  note("all are together");
  network_.heal();
  for (const auto& [ends, quality] : drawn_paths_) network_.set_quality(ends.first, ends.second, quality);
}

void World::reset_link(PeerId a, PeerId b) {
  note(fmt::format("the link {} {} is reset", a.value, b.value));
  network_.reset(node(a).port.number(), node(b).port.number());
}

void World::black_hole(PeerId a, PeerId b) {
  note(fmt::format("the link {} {} is a black hole", a.value, b.value));
  network_.black_hole(node(a).port.number(), node(b).port.number());
}

Quality World::path(PeerId a, PeerId b) const {
  const auto [low, high] = std::minmax({node(a).port.number(), node(b).port.number()});
  return drawn_paths_.at({low, high});
}

void World::set_path(PeerId a, PeerId b, const Quality& quality) {
  network_.set_quality(node(a).port.number(), node(b).port.number(), quality);
}

void World::set_line(PeerId peer, Capacity line) { network_.set_capacity(node(peer).port.number(), line); }

void World::jump_clock(PeerId peer, Duration by) {
  note(fmt::format("the clock of {} jumps by {} s", peer.value, to_seconds(by)));
  if (by > Duration{}) node(peer).clock.jump(by);
  node(peer).clock.jump_wall(by);
}

void World::flip_memory(PeerId peer, std::uint64_t choice, std::function<void(const Digest&)> done) {
  node(peer).trainer.flip_later(choice, [this, peer, done = std::move(done)](const Digest& parameters) {
    if (calm_ || node(peer).session->view().leader == peer) return false;
    note(fmt::format("a bit of the parameters of {} flips", peer.value));
    done(parameters);
    return true;
  });
}

void World::tamper(PeerId peer, std::optional<FaultKind> kind) {
  Node& hostile = node(peer);
  note(fmt::format("{} sends {}", peer.value, kind ? name_of(*kind) : "what its session wrote"));
  if (!kind) return network_.tamper(hostile.port.number(), {});
  // owners: the node and the network's outgoing side
  const average::Geometry geometry{options_.model.parameters, options_.segment_length};
  hostile.tamper = std::make_shared<Tamper>(*kind, options_.run.codec, random_.next(), geometry);
  network_.tamper(hostile.port.number(),
                  [tamper = hostile.tamper](const Frame& frame) { return (*tamper)(frame); });
}

int World::tampered(PeerId peer) const { return node(peer).tamper ? node(peer).tamper->struck() : 0; }

void World::struck(const Strike& strike) {
  for (const auto& checker : checkers_) checker->on_strike(strike);
}

void World::become_calm() {
  calm_ = true;
  heal();
  resume_all();
  broken_stores_.clear();
  for (const auto& [peer, process] : current_) {
    if (process->tamper) tamper(peer, std::nullopt);
    process->compute.come_back();
    if (!process->session) continue;
    process->session->pause(false);
    process->session->set_at_risk(false);
  }
  for (const auto& checker : checkers_) checker->on_calm(now());
}

void World::leave(PeerId peer, Duration notice) {
  Node& leaving = node(peer);
  note(fmt::format("{} gets a notice", peer.value));
  const bool again = std::exchange(leaving.is_told_to_leave, true);
  leaving.process.enter([&leaving, notice, again] {  // later, where it is stopped
    if (notice == Duration{}) return again ? leaving.session->leave_at_once() : leaving.session->leave();
    leaving.session->leave_within(notice - kKeptInHand);
  });
}

void World::set_at_risk(PeerId peer, bool at_risk) {
  Node& warned = node(peer);
  if (!warned.session) return;
  note(fmt::format("{} is {}", peer.value, at_risk ? "at risk" : "safe"));
  warned.process.enter([&warned, at_risk] { warned.session->set_at_risk(at_risk); });
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

std::optional<world::Phase> World::phase(PeerId peer) const { return node(peer).phase; }

int World::site(PeerId peer) const { return node(peer).spec.site; }

bool World::founds(PeerId peer) const { return node(peer).join.empty(); }

VirtualFiles& World::disk(PeerId peer) { return *node(peer).files; }

bool World::runs_beside(PeerId peer, PeerId other) const {
  const Node& seen = node(other);
  return seen.process.state() == Process::State::running &&
         !network_.cut(node(peer).port.number(), seen.port.number());
}

std::vector<wire::Record> World::open_drafts() const {
  const wire::Record* newest = ledger_.newest();
  std::vector<wire::Record> open;
  for (const auto& [digest, draft] : drafts_) {
    if (newest == nullptr || draft.round == newest->round + 1) open.push_back(draft);
  }
  return open;
}

std::uint64_t World::computed_samples() const {
  std::uint64_t samples = 0;
  for (const auto& process : nodes_) samples += process->trainer.computed();
  return samples;
}

World::Sent World::sent(PeerId peer) const {
  Sent sent;
  for (const auto& process : nodes_) {
    if (process->self != peer) continue;
    const int port = process->port.number();
    sent.control_bytes += network_.control_bytes_sent(port);
    sent.messages += network_.messages_sent(port);
    for (const auto& other : nodes_) sent.bytes += network_.bytes_sent(port, other->port.number());
  }
  return sent;
}

std::uint64_t World::sent_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& from : nodes_) {
    for (const auto& to : nodes_) bytes += network_.bytes_sent(from->port.number(), to->port.number());
  }
  return bytes;
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
  for (const auto& checker : checkers_) checker->on_end(survivors);
}

std::vector<Violation> World::violations() const {
  std::vector<Violation> all = violations_;
  for (const auto& checker : checkers_) {
    all.insert(all.end(), checker->violations().begin(), checker->violations().end());
  }
  return all;
}

World::Node& World::node(PeerId peer) const {
  const auto found = current_.find(peer);
  TW_CHECK(found != current_.end());
  return *found->second;
}

void World::look() {
  for (const auto& candidate : nodes_) {
    if (candidate->session && candidate->part == Part::peer) look_at(*candidate);
  }
  scheduler_.after(kLookInterval, [this] { look(); });
}

void World::look_at(Node& seen) {
  if (seen.compute.busy()) progressed(seen.self);
  const Survivor now = survivor(seen);
  for (const auto& checker : checkers_) checker->on_look(now);
  if (!now.view.finished && now.view.failure.empty()) return;
  note(fmt::format("{} is done at round {}", seen.self.value, now.view.round));
  seen.farewell = now.view;
  network_.crash(seen.port.number(), Death::clean);
  seen.session.reset();
}

Survivor World::survivor(const Node& seen) const {
  const Duration stopped = seen.process.stopped_for() - seen.stopped_then;
  Survivor survivor{seen.self, seen.session ? seen.session->view() : *seen.farewell,
                    scheduler_.now() - seen.last_progress - stopped, scheduler_.now()};
  survivor.incarnation = seen.incarnation;
  survivor.held_bytes = survivor.view.held_bytes;
  survivor.held_bytes_limit = held_bytes_limit(held_sizes());
  return survivor;
}

HeldSizes World::held_sizes() const {
  const average::Geometry geometry{options_.model.parameters, options_.segment_length};
  const std::uint64_t state_bytes = 3 * sizeof(float) * geometry.length;  // an optimizer has two buffers
  return {.vector_bytes = encoded_bytes(codec_of_mean(options_.run.codec), geometry),
          .segments = geometry.segments(),
          .state_bytes = state_bytes,
          .state_chunks = state_bytes / options_.chunk_bytes + 1,
          .microbatches = options_.run.microbatches(),
          .peers = current_.size()};
}

void World::on_event(PeerId peer, const world::Event& event) {
  Node& writer = node(peer);
  if (is_stage(event.phase)) writer.phase = event.phase;
  if (is_progress(event.phase)) progressed(peer);
  if (event.phase == world::Phase::traffic) {
    const std::map<std::string, std::uint64_t> given = given_by(writer);
    for (const auto& checker : checkers_) checker->on_traffic(peer, given);
  }
  for (const auto& checker : checkers_) checker->on_event(peer, event);
  if (watch_) watch_(peer, event);
}

std::map<std::string, std::uint64_t> World::given_by(const Node& sender) const {
  std::map<std::string, std::uint64_t> given;
  for (const auto& other : nodes_) {
    if (other.get() == &sender) continue;
    const std::uint64_t bytes = network_.bytes_given(sender.port.number(), other->port.number());
    if (bytes > 0) given[site_name(options_, other->spec.site)] += bytes;
  }
  return given;
}

void World::on_sent(const Frame& frame) {
  if (!is_plan(frame)) return;
  const Result<wire::Message> message = wire::decode(frame);
  if (!message.ok()) return;  // tampered with
  const wire::Record& draft = std::get<wire::Plan>(message.value()).draft;
  drafts_.emplace(digest_of(draft), draft);
}

void World::progressed(PeerId peer) {
  Node& busy = node(peer);
  busy.last_progress = scheduler_.now();
  busy.stopped_then = busy.process.stopped_for();
}

void World::note(const std::string& what) {
  history_.add(fmt::format("{:.9f} {}", to_seconds(scheduler_.now().time_since_epoch()), what));
}

}  // namespace tw::sim
