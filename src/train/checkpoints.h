// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "sync/checkpoint.h"
#include "train/run.h"
#include "train/waits.h"
#include "world/clock.h"
#include "world/executor.h"
#include "world/files.h"

namespace tw::train {

/// The checkpoints of a session: when one is due, and the jobs of the disk. Loop thread only. No `done` comes
/// once this object is gone.
class Checkpoints {
 public:
  /// All outlive this object, the files its jobs. waits: is told of the jobs. then: after each `done`.
  struct Surroundings {
    world::Clock& clock;
    world::Files& files;
    world::Executor& disk;
    Waits& waits;
    std::function<void()> then;
  };

  /// unique: CheckpointStore::Options. Without a folder none are kept.
  Checkpoints(CheckpointOptions options, std::string unique, Surroundings surroundings);

  bool are_kept() const { return store_ != nullptr; }

  /// One of the state after this record.
  bool is_due(const wire::Record& record) const;

  // owners: the job
  void save(std::shared_ptr<const sync::StateImage> image, std::function<void(const Status&, Duration)> done);

  using Loaded = Result<std::optional<sync::LoadedCheckpoint>>;

  /// The newest one of this run. Only where they are kept.
  void load(const Digest& run, std::function<void(Loaded&)> done);

 private:
  template <class R>
  void submit(swarm::Wait what, std::function<R(sync::CheckpointStore&)> run,
              std::function<void(R&, Duration)> done);

  CheckpointOptions options_;
  Surroundings surroundings_;
  std::shared_ptr<sync::CheckpointStore> store_;           // owners: this and the disk job under way
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // owners: this; jobs hold it weakly
};

}  // namespace tw::train
