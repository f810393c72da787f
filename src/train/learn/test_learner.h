// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/learn/learner.h"

namespace tw::train {

/// A model of four floats that counts its jobs: they wait until run_next(), and take a second.
class CountingLearner final : public Learner {
 public:
  CountingLearner() : Learner({4, 32, average::Geometry{4}}) {}

  void work(const swarm::WorkItem& item, Done<WorkDone> done) override {
    const std::uint64_t samples = item.samples.count();
    add("work " + to_string(item.microbatches), std::move(done),
        [item, samples, lost = missing, each = loss] {
          if (lost) return WorkDone{.missing = lost};
          return WorkDone{item.microbatches.count(), samples, each * static_cast<double>(samples)};
        });
  }

  bool take_back() override {
    if (!gives_back || jobs->empty()) return false;
    jobs->pop_back();  // tests take back what they gave last
    return true;
  }

  Duration deserted_for() const override { return gives_back ? std::chrono::hours(1) : Duration{}; }

  void knock(Done<Unit> done) override {
    add("knock", std::move(done), [] { return Unit{}; });
  }

  SlotValues contribution(Round, std::uint32_t) override { return {{sum, {}}, {}}; }

  bool has_uncollected(Round) const override { return uncollected; }

  void collect(Round, Done<Unit> done) override {
    add("collect", std::move(done), [this] {
      uncollected = false;
      return Unit{};
    });
  }

  void forget_sums(Round) override { ++forgotten; }

  void move_on(Done<Unit> done) override {
    add("move on", std::move(done), [] { return Unit{}; });
  }

  bool has_moved_on() const override { return false; }

  Digest settle(const wire::Record& /*anew*/) override { return {}; }

  void apply(Update update, Done<Result<Digest>> done) override {
    add((update.missed ? "replay " : "apply ") + std::to_string(update.record.round), std::move(done),
        [this]() -> Result<Digest> {
          if (!trouble.empty()) return Error{trouble};
          return Digest{};
        });
  }

  void freeze(const wire::Record& record, Turn turn, Done<Image> done) override {
    const std::string beside = turn == Turn::beside ? "beside" : "in order";
    add("freeze " + std::to_string(record.round) + " " + beside, std::move(done), [record] {
      sync::StateImage image;
      image.record = record;
      return std::make_shared<const sync::StateImage>(std::move(image));  // owners: as Learner says
    });
  }

  void restore(Image image, Done<Result<Digest>> done) override {
    add(image ? "restore" : "initialise", std::move(done), [this]() -> Result<Digest> {
      if (!trouble.empty()) return Error{trouble};
      return Digest{};
    });
  }

  std::vector<float> sum = {1, 2, 3, 4};
  std::string trouble;  ///< of updates and restores
  bool uncollected = false;
  int forgotten = 0;
  double loss = 0.5;  ///< of each sample
  std::optional<data::MissingSample> missing{};
  bool gives_back = false;         ///< its thread is elsewhere
  std::vector<std::string> given;  ///< jobs, in their order

  using Jobs = std::deque<std::function<void()>>;

  static bool run_next(Jobs& jobs) {
    if (jobs.empty()) return false;
    const auto job = std::move(jobs.front());
    jobs.pop_front();
    job();
    return true;
  }

  bool run_next() { return run_next(*jobs); }

  // owners: the learner, and a test that outlives it
  std::shared_ptr<Jobs> jobs = std::make_shared<Jobs>();

 private:
  template <class R, class Run>
  void add(std::string what, Done<R> done, Run run) {
    given.push_back(std::move(what));
    jobs->push_back([done = std::move(done), run] { done(run(), std::chrono::seconds(1)); });
  }
};

}  // namespace tw::train
