// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "wire/frame.h"

namespace tw {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(200);
constexpr std::uint64_t kMostPeers = 1000;

// Arbitrary order, so that nothing can lean on ids that grow with age; the last digits count.
PeerId id_of(std::uint64_t seed, std::size_t index) {
  return PeerId{(mix(seed, index) % 9000 + 1000) * kMostPeers + index};
}

bool is_progress(Phase phase) {
  return phase != Phase::wait && phase != Phase::refuse && phase != Phase::lost;
}

bool is_stage(Phase phase) {
  switch (phase) {
    case Phase::accumulate:
    case Phase::call:
    case Phase::scatter:
    case Phase::gather:
    case Phase::commit:
    case Phase::apply:
      return true;
    default:
      return false;
  }
}

Rules rules_of(const WorldOptions& options) {
  return {options.run.target_batch_size,
          options.run.microbatch,
          options.run.codec,
          {options.model.parameters, options.segment_length}};
}

bool is_plan(const Frame& frame) {
  static const std::byte kType = encode(Plan{}).head.bytes().front();
  return !frame.head.empty() && frame.head.bytes().front() == kType;
}

}  // namespace

/// One peer's word, passed on to the checkers.
class World::Witness final : public SessionObserver {
 public:
  Witness(World& world, PeerId self) : world_(world), self_(self) {}

  void on_commit(const Record& record) override {
    const Digest digest = digest_of(record);
    world_.ledger_.add(digest, record);
    for (const auto& checker : world_.checkers_) checker->on_commit({self_, record, digest});
    world_.note(fmt::format("{} commits {} {}", self_.value, record.round, to_string(digest)));
  }

  void on_applied(const Record& record, const Digest& parameters, bool restored) override {
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
  Node(World& world, PeerId id, const Pace& pace, Capacity capacity)
      : self(id),
        process(world.scheduler_),
        clock(process),
        port(world.network_.attach(process, capacity)),
        compute(process, pace, mix(world.options_.seed, 2 * id.value)),
        disk(process, Pace{.least = std::chrono::milliseconds(1)},
             mix(world.options_.seed, 2 * id.value + 1)),
        events(id, world.history_, world.tap_),
        trainer(world.options_.model),
        witness(world, id) {}

  PeerId self;
  Process process;
  VirtualClock clock;
  Port& port;
  VirtualFiles files;
  VirtualExecutor compute, disk;
  VirtualEvents events;
  SyntheticTrainer trainer;
  Witness witness;
  std::unique_ptr<Session> session;     ///< null once the process is dead
  std::optional<SessionView> farewell;  ///< of a session that came to its end
  std::optional<Phase> phase;
  Instant last_progress{};
  Duration stopped_then{};  ///< process.stopped_for() at last_progress
};

World::World(const WorldOptions& options)
    : options_(options),
      random_(mix(options.seed, 1)),
      network_(scheduler_, mix(options.seed, 2)),
      history_(options.keep_lines),
      checkers_(all_checkers(rules_of(options), ledger_)),
      tap_([this](PeerId peer, const Event& event) { on_event(peer, event); }) {
  network_.tap([this](const Frame& frame) { on_sent(frame); });
  look();
}

World::~World() = default;

PeerId World::add_peer() {
  TW_CHECK(nodes_.size() < kMostPeers);
  const PeerId self = id_of(options_.seed, nodes_.size());
  const Pace pace{.weight_per_s = options_.samples_per_s.draw(random_)};
  const Capacity capacity{options_.bytes_per_s.draw(random_), options_.bytes_per_s.draw(random_)};
  const SessionOptions session = session_options(self);
  nodes_.push_back(std::make_unique<Node>(*this, self, pace, capacity));
  Node& added = *nodes_.back();
  for (int other = 0; other < added.port.number(); ++other) {
    const double latency_s = options_.latency_s.draw(random_);
    network_.set_quality(added.port.number(), other,
                         {from_seconds(latency_s), from_seconds(latency_s * options_.jitter),
                          options_.bytes_per_s.draw(random_), 1 << 14});
  }
  note(fmt::format("{} comes", self.value));
  added.last_progress = scheduler_.now();
  const Doors doors{added.clock, added.port, added.files, added.compute, added.disk, added.events};
  added.session = std::make_unique<Session>(doors, session, added.trainer, &added.witness);
  const Result<std::string> address = added.session->start();
  if (!address) violations_.push_back({"start", address.error().message});
  return self;
}

SessionOptions World::session_options(PeerId self) const {
  SessionOptions session;
  session.self = self;
  for (const auto& other : nodes_) {
    if (other->session) session.join.push_back(other->port.address());
  }
  session.wait_for = options_.wait_for;
  session.segment_length = options_.segment_length;
  session.chunk_bytes = options_.chunk_bytes;
  session.run = options_.run;
  session.keep_stale_seals = options_.keep_stale_seals;
  return session;
}

void World::kill(PeerId peer, Death death) {
  Node& victim = node(peer);
  note(fmt::format("{} dies", peer.value));
  network_.crash(victim.port.number(), death);
  victim.session.reset();
}

void World::stop(PeerId peer, Duration lasts) {
  Node& stopped = node(peer);
  note(fmt::format("{} stops", peer.value));
  stopped.process.stop();
  scheduler_.after(lasts, [&stopped] { stopped.process.resume(); });
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

void World::heal() {
  note("all are together");
  network_.heal();
}

void World::reset_link(PeerId a, PeerId b) {
  note(fmt::format("the link {} {} is reset", a.value, b.value));
  network_.reset(node(a).port.number(), node(b).port.number());
}

void World::set_path(PeerId a, PeerId b, const Quality& quality) {
  network_.set_quality(node(a).port.number(), node(b).port.number(), quality);
}

void World::leave(PeerId peer) {
  Node& leaving = node(peer);
  note(fmt::format("{} gets a notice", peer.value));
  leaving.process.enter([&leaving] { leaving.session->leave(); });
}

std::vector<PeerId> World::alive() const {
  std::vector<PeerId> peers;
  for (const auto& candidate : nodes_) {
    if (candidate->session) peers.push_back(candidate->self);
  }
  return peers;
}

bool World::lives(PeerId peer) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const auto& candidate) { return candidate->self == peer && candidate->session; });
}

SessionView World::view(PeerId peer) const { return node(peer).session->view(); }

std::optional<Phase> World::phase(PeerId peer) const { return node(peer).phase; }

bool World::runs_beside(PeerId peer, PeerId other) const {
  const Node& seen = node(other);
  return seen.process.state() == Process::State::running &&
         !network_.cut(node(peer).port.number(), seen.port.number());
}

std::vector<Record> World::open_drafts() const {
  const Record* newest = ledger_.newest();
  std::vector<Record> open;
  for (const auto& [digest, draft] : drafts_) {
    if (newest == nullptr || draft.round == newest->round + 1) open.push_back(draft);
  }
  return open;
}

void World::run_until(Instant deadline) {
  while (scheduler_.now() < deadline && !alive().empty()) {
    scheduler_.run_until(std::min(deadline, scheduler_.now() + kLookInterval));
  }
}

void World::finish() {
  std::vector<Survivor> survivors;
  for (const auto& candidate : nodes_) {
    if (candidate->session || candidate->farewell) survivors.push_back(survivor(*candidate));
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
  const std::size_t index = peer.value % kMostPeers;
  TW_CHECK(index < nodes_.size() && nodes_[index]->self == peer);
  return *nodes_[index];
}

void World::look() {
  for (const auto& candidate : nodes_) {
    if (candidate->session) look_at(*candidate);
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
  return {seen.self, seen.session ? seen.session->view() : *seen.farewell,
          scheduler_.now() - seen.last_progress - stopped};
}

void World::on_event(PeerId peer, const Event& event) {
  Node& writer = node(peer);
  if (is_stage(event.phase)) writer.phase = event.phase;
  if (is_progress(event.phase)) progressed(peer);
  if (watch_) watch_(peer, event);
}

void World::on_sent(const Frame& frame) {
  if (!is_plan(frame)) return;
  const Result<Message> message = decode(frame);
  TW_CHECK(message.ok());
  const Record& draft = std::get<Plan>(message.value()).draft;
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

}  // namespace tw
