// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "sync/checkpoint.h"
#include "train/run/run.h"
#include "train/session/waits.h"
#include "world/clock.h"
#include "world/executor.h"
#include "world/files.h"

namespace tw::train {

/// The checkpoints of a session: due times, disk jobs, and copies, for which no disk job waits. Loop thread
/// only. No `done` is called after this object is destroyed.
class Checkpoints {
 public:
  /// All outlive this object; the files outlive its jobs. waits: records the jobs. then: called after each
  /// `done`.
  struct Surroundings {
    world::Clock& clock;
    world::Files& files;
    world::Executor& disk;
    world::Executor& copier;
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

  /// Whether the state after this record is to be saved now. While a save is under way only the last one of
  /// the run is: each holds a whole state in memory. Another one that falls due by rounds is due after it.
  bool is_time_for(const wire::Record& record);

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

  /// None is under way, and a checkpoint was saved since it began, or may have been before this process, or
  /// it failed kRetry ago.
  bool copy_is_due() const;

  bool is_copying() const { return copy_ == Copy::under_way || copy_ == Copy::overtaken; }

  /// True once, where copies are wanted and this peer, which is no anchor, makes none.
  bool asks_for_anchor();

  static constexpr Duration kRetry = std::chrono::seconds(60);

  /// What is at the target after a copy.
  struct AtTarget {
    std::optional<wire::Record> record{};  ///< of the newest checkpoint; nothing: there was none to copy
    std::string stays{};                   ///< a warning of old copies that cannot be removed; empty: no news
  };

  using Copied = Result<AtTarget>;

  /// Copies the newest finished checkpoint with every byte verified. It gets its name only when it is
  /// complete and durable; an existing copy is not written again. Only when it is due. Old copies that cannot
  /// be removed make no copy fail: the next one tries that again.
  void copy(const Digest& run, std::function<void(const Copied&, Duration)> done);

  /// Loads the newest checkpoint of this run or the newest copy, whichever history goes before the other.
  /// Only with a folder.
  void load(const Digest& run, std::function<void(Loaded&)> done);

 private:
  enum class Copy {
    none,
    idle,
    due,
    under_way,
    overtaken,  ///< under way, and a newer one was saved meanwhile
  };
  enum class History {
    saved,
    failed,
    taken,  ///< it has none yet of the present one
    owed,   ///< one fell due while another was saved
  };

  /// The copies. Both threads use them: one at a time.
  struct Copies {
    explicit Copies(sync::CheckpointStore in) : store(std::move(in)) {}

    sync::CheckpointStore store;
    std::mutex taking_turns;
  };

  // owners: the jobs
  using Stores = std::pair<std::shared_ptr<sync::CheckpointStore>, std::shared_ptr<Copies>>;

  /// The jobs of one thread.
  struct Thread {
    world::Executor& executor;
    OwnWork& work;
  };

  Thread disk() { return {surroundings_.disk, surroundings_.waits.disk()}; }

  Thread copier() { return {surroundings_.copier, surroundings_.waits.copies()}; }

  template <class R>
  void submit(Thread on, swarm::Wait what, std::function<R()> run, std::function<void(R&, Duration)> done);

  static Copied copy_newest(const Stores& stores, const Digest& run);
  static Loaded load_from(const Stores& stores, const Digest& run);
  bool is_due_by_time() const;

  CheckpointOptions options_;
  Surroundings surroundings_;
  std::shared_ptr<sync::CheckpointStore> store_;   // owners: this and the disk job under way
  std::shared_ptr<sync::CheckpointStore> copied_;  // owners: this and the copy under way, which reads there
  std::shared_ptr<Copies> copies_;                 // owners: this and the jobs under way
  swarm::Wait next_copy_;                          ///< what is known of it
  Digest origin_;                                  ///< of its history: LoadedCheckpoint::origin
  std::uint32_t restarts_ = 0;                     ///< of a history with this origin, at least
  Round newest_ = 0;                               ///< of those that this process saved or loaded
  Digest saved_;                                   ///< record of the last one that is durable
  Instant saved_at_;                               ///< or was to be
  Duration took_{};                                ///< to save the last one
  int saves_ = 0;                                  ///< under way
  History history_ = History::saved;
  Copy copy_ = Copy::none;
  bool asked_for_anchor_ = false;
  bool old_copies_stay_ = false;
  Instant copy_from_{};                                    // no copy before
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // owners: this; jobs hold it weakly
};

}  // namespace tw::train
