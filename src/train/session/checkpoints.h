// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "sync/checkpoint.h"
#include "train/run/run.h"
#include "train/session/waits.h"
#include "world/clock.h"
#include "world/executor.h"
#include "world/files.h"

namespace tw::train {

/// The checkpoints of a session: due times and disk jobs. Loop thread only. No `done` is called after this
/// object is destroyed.
class Checkpoints {
 public:
  /// All outlive this object; the files outlive its jobs. waits: records the jobs. then: called after each
  /// `done`.
  struct Surroundings {
    world::Clock& clock;
    world::Files& files;
    world::Executor& disk;
    Waits& waits;
    std::function<void()> then;
  };

  /// The peer that writes them.
  struct Writer {
    std::string unique;    ///< CheckpointStore::Options
    sync::RunWords words;  ///< CheckpointStore::Options
    bool anchor = false;   ///< it copies finished ones to CheckpointOptions::to, if that is given
  };

  /// Without a folder no checkpoints are kept.
  Checkpoints(CheckpointOptions options, const Writer& writer, Surroundings surroundings);

  bool are_kept() const { return store_ != nullptr; }

  /// Whether a checkpoint of the state after this record is due: after so many rounds, after so much time, at
  /// the end of the run, or kRetry after one that failed.
  bool is_due(const wire::Record& record) const;

  /// None of this state is saved.
  bool lacks(const wire::Record& record) const { return are_kept() && saved_ != digest_of(record); }

  /// The run begins anew on purpose: its checkpoints in the folder and among the copies get names by which
  /// nobody resumes from them. Only with a folder.
  void set_aside(const Digest& run, std::function<void(const Status&)> done);

  /// This peer took the state after this record from others. If it has checkpoints of a history with more
  /// rounds, which it gave up, the next one is due at once and replaces them.
  void took_state(const wire::Record& record);

  /// The history goes on from the checkpoint after this record.
  void resumed(const wire::Record& from);

  /// begun: LoadedCheckpoint.
  // owners: the job
  void save(std::shared_ptr<const sync::StateImage> image, Round begun,
            std::function<void(const Status&, Duration)> done);

  using Loaded = Result<std::optional<sync::LoadedCheckpoint>>;

  /// A checkpoint was saved since the last copy, or may have been before this process, or a copy failed
  /// kRetry ago.
  bool copy_is_due() const;

  /// True once, where copies are wanted and this peer, which is no anchor, makes none.
  bool asks_for_anchor();

  static constexpr Duration kRetry = std::chrono::seconds(60);

  /// Result of a copy: the record of the checkpoint now at the target; nothing if there was none to copy.
  using Copied = Result<std::optional<wire::Record>>;

  /// Copies the newest finished checkpoint with every byte verified. It gets its name only when it is
  /// complete and durable; an existing copy is not written again. Only when it is due.
  void copy(const Digest& run, std::function<void(const Copied&, Duration)> done);

  /// Loads the newest checkpoint of this run or the newest copy, whichever history goes before the other.
  /// Only with a folder.
  void load(const Digest& run, std::function<void(Loaded&)> done);

 private:
  enum class Copy { none, idle, due, under_way };
  enum class History { saved, failed, taken };

  template <class R>
  void submit(swarm::Wait what, std::function<R()> run, std::function<void(R&, Duration)> done);

  bool is_due_by_time() const;

  CheckpointOptions options_;
  Surroundings surroundings_;
  std::shared_ptr<sync::CheckpointStore> store_;   // owners: this and the disk job under way
  std::shared_ptr<sync::CheckpointStore> copies_;  // owners: this and the disk job under way
  Digest origin_;                                  ///< of its history: LoadedCheckpoint::origin
  std::uint32_t restarts_ = 0;                     ///< of a history with this origin, at least
  Round newest_ = 0;                               ///< of those that this process saved or loaded
  Digest saved_;                                   ///< record of the last one that is durable
  Instant saved_at_;                               ///< or was to be
  Duration took_{};                                ///< to save the last one
  History history_ = History::saved;               ///< taken: it has none yet of the present one
  Copy copy_ = Copy::none;
  bool asked_for_anchor_ = false;
  Instant copy_from_{};                                    // no copy before
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // owners: this; jobs hold it weakly
};

}  // namespace tw::train
