// SPDX-License-Identifier: Apache-2.0
#include "train/session/session.h"

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/check.h"
#include "fuzz/material.h"
#include "fuzz/memory_files.h"
#include "fuzz/target.h"
#include "train/learn/model.h"
#include "train/run/run_facts.h"
#include "train/session/test_clock.h"
#include "wire/frame.h"

namespace tw::fuzz {
namespace {

using namespace std::chrono_literals;

class QueueExecutor final : public world::Executor {
 public:
  void submit(world::Task job) override {
    jobs_.push_back(std::move(job));
    TW_CHECK(jobs_.size() < 100);
  }

  void run_one() {
    if (jobs_.empty()) return;
    const world::Task job = std::move(jobs_.front());
    jobs_.pop_front();
    job.run();
    job.done(10ms);
  }

 private:
  std::deque<world::Task> jobs_;
};

class OpenNetwork final : public world::Network {
 public:
  explicit OpenNetwork(Material& material) : material_(material) {}

  Result<std::string> open(const std::string&, world::NetworkEvents& user) override {
    events = &user;
    return std::string("p1");
  }

  void greet_with(Frame) override {}

  void connect(const std::string& address) override { dialled.insert(address); }

  void close(PeerId peer) override { linked.erase(peer); }

  void send(PeerId, Frame frame) override {
    const Result<wire::Message> message = wire::decode(frame);
    TW_CHECK(message.ok());
    material_.learn(message.value());
    TW_CHECK(++sent < 2000);
  }

  void pull(PeerId peer) override { pulled.insert(peer); }

  world::NetworkEvents* events = nullptr;
  std::set<PeerId> linked, pulled;
  std::set<std::string> dialled;
  std::size_t sent = 0;  ///< since somebody set it to 0

 private:
  Material& material_;
};

class SmallModel final : public train::Model {
 public:
  std::vector<std::uint64_t> tensor_sizes() const override { return {7}; }

  void initial_parameters(std::span<float> out) override { std::fill(out.begin(), out.end(), 1.0F); }

  train::WorkDone work(std::span<const float>, const swarm::WorkItem& item, std::span<float> sum) override {
    for (const Range& range : item.samples.ranges())
      for (float& value : sum) value += static_cast<float>(range.first % 3 * range.count);
    return {item.microbatches.count(), item.samples.count(), 1};
  }
};

class LastEvents final : public world::EventSink {
 public:
  void emit(const world::Event&) override { TW_CHECK(++count < 2000); }

  std::size_t count = 0;
};

train::SessionOptions draw(Input& input, const Material& material) {
  train::SessionOptions options{.self = material.self};
  if (input.one_in(2)) options.join = {"p2"};
  options.wait_for = static_cast<std::uint32_t>(1 + input.below(3));
  options.averaging.segment_length = 2;
  options.chunk_bytes = 16;
  options.run.model = "small";
  options.run.microbatch = material.microbatch;
  options.run.batch.size = material.microbatches * material.microbatch;
  options.run.rounds = 4;
  options.run.norm_cap = input.one_in(2) ? 20 : 0;
  options.run.codec = codec::kCodecs[input.below(codec::kCodecs.size())];
  options.run.optimizer.kind = train::OptimizerKind::sgd;
  if (input.one_in(2)) options.run.checkpoint = {.folder = "f", .every = 1};
  return options;
}

class SessionStory final : public train::SessionObserver {
 public:
  explicit SessionStory(Input& input)
      : input_(input),
        options_(draw(input, material_)),
        run_(run_digest(options_.run, parameter_count(model_))),
        network_(material_),
        session_({clock_, network_, files_, compute_, disk_, disk_, events_}, options_, model_, this) {
    material_.segments = 4;
    material_.payloads = {encoded_bytes(options_.run.codec, 2), encoded_bytes(options_.run.codec, 1), 16, 8};
    material_.records.front().run = run_;
  }

  void run() {
    TW_CHECK(session_.start().ok());
    for (int steps = 0; !input_.empty() && steps < 1500; ++steps) {
      network_.sent = events_.count = 0;
      act();
      (void)session_.view();
    }
  }

  void on_commit(const wire::Record& record) override {
    material_.learn(record);
    material_.head = record;
  }

  void on_applied(const wire::Record& record, const Digest& parameters, bool) override {
    material_.learn(record);
    material_.head = record;
    parameters_ = parameters;
    material_.digests[1] = parameters;
  }

 private:
  void pass(Duration time) {
    clock_.jump(time);
    TW_CHECK(clock_.timers() < 1000);
  }

  void act() {
    const PeerId peer = material_.peers[1 + input_.below(material_.peers.size() - 1)];
    material_.digests[1] = parameters_;
    switch (input_.below(16)) {
      case 0:
        return link(peer);
      case 1:
        if (network_.linked.erase(peer) > 0) network_.events->on_close(peer, "closed");
        return;
      case 2:
        return network_.events->on_refused(member_of(peer).address,
                                           {world::DialFailure::Kind::unreachable, {"timed out"}});
      case 3:
        return pass(steps_[input_.below(steps_.size())]);
      case 4:
      case 5:
      case 6:
        return compute_.run_one();
      case 7:
        return disk_.run_one();
      case 8:
        if (network_.linked.contains(peer)) (void)network_.events->next_bulk(peer);
        return;
      case 9:
        if (input_.one_in(16)) session_.leave();
        return;
      default:
        if (network_.linked.contains(peer)) network_.events->on_message(peer, frame());
    }
  }

  void link(PeerId peer) {
    if (network_.linked.contains(peer)) return;
    wire::Hello hello{.run = run_, .peer = peer, .parameters = 7, .address = member_of(peer).address};
    if (input_.one_in(16)) hello.parameters = input_.number();
    const Frame greeting = encode(hello);
    if (std::holds_alternative<world::Refusal>(network_.events->admit(greeting))) return;
    network_.linked.insert(peer);
    network_.events->on_open(peer, greeting);
  }

  Frame frame() {
    if (input_.one_in(32)) return {Blob(input_.bytes(input_.byte())), {}};
    const wire::Message message = make_message(input_, material_);
    material_.learn(message);
    return encode(message);
  }

  static constexpr std::array<Duration, 5> steps_ = {1ms, 50ms, 300ms, 2500ms, 21s};

  Input& input_;
  Material material_;
  SmallModel model_;
  train::SessionOptions options_;
  Digest run_;
  Digest parameters_{1, 1};
  train::HandClock clock_{Instant{} + 1h};
  OpenNetwork network_;
  MemoryFiles files_;
  QueueExecutor compute_, disk_;
  LastEvents events_;
  train::Session session_;
};

}  // namespace

void session(Input& input) { SessionStory(input).run(); }

}  // namespace tw::fuzz
