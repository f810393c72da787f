// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sync/image.h"
#include "world/files.h"

namespace tw::sync {

/// What a checkpoint says of its run, for people and readers without the model.
struct RunWords {
  std::string layout{};  ///< of the parameters (RunOptions::layout); empty: not known
  std::string facts{};   ///< a line each: what names the run (RunFacts); empty: not known
  std::string end{};     ///< what ends the run, in words
};

struct LoadedCheckpoint {
  StateImage image;
  RunWords words;
  std::vector<std::string> skipped;  ///< newer files that cannot be used, each with the reason
};

/// Reads one file of any run; every byte is verified. The error names the file and says why it is of no use.
Result<LoadedCheckpoint> read_checkpoint(world::Files& files, const std::string& path);

/// The newest file of a folder by its name; nothing if it holds no checkpoints.
Result<std::optional<std::string>> newest_checkpoint(world::Files& files, const std::string& folder);

/// Checkpoints of one run in one folder, round-000120.tw each. Several peers may share the folder. A file
/// appears under its name only when it is complete and durable, so whatever kills a peer, the last checkpoint
/// stays loadable.
///
/// Calls block on the disk; one at a time, from any thread.
class CheckpointStore {
 public:
  struct Options {
    std::string folder;
    std::size_t keep = 2;  ///< number of newest checkpoints that stay
    std::string unique;    ///< distinguishes the unfinished files of this peer from those of others
    RunWords words{};
  };

  /// files outlives this object.
  CheckpointStore(world::Files& files, Options options);

  /// Writes the checkpoint unless a sound one after the same record is there already. Then removes those
  /// beyond `keep` and the leftovers of unfinished writes. Never removes or replaces a checkpoint of another
  /// run: one in the way is an error. After an error the earlier checkpoints are still there.
  Status save(const StateImage& image);

  /// Makes the folder, which else the first save does: an error is better now than then.
  Status make_folder();

  /// The newest checkpoint of this run whose every byte verifies; nothing when the folder holds no
  /// checkpoints or is not there. Creates nothing. If it holds some but none can be used, the error names
  /// them, so that no run silently starts anew.
  Result<std::optional<LoadedCheckpoint>> load_newest(const Digest& run);

 private:
  enum class Verdict { sound, other_run, unusable };

  struct Finding {
    Verdict verdict = Verdict::unusable;
    std::string why;          ///< unless sound
    LoadedCheckpoint loaded;  ///< when sound
  };

  Result<std::vector<std::string>> list();
  Status write(const std::string& name, const StateImage& image);
  Status prune(const StateImage& saved);
  Finding examine(const std::string& name, const Digest& run);
  std::string difference(const RunWords& theirs) const;
  Status remove(const std::string& name);
  std::string path_of(const std::string& name) const;

  world::Files& files_;
  Options options_;
  std::set<std::string>
      ours_;  ///< written or found sound by this object: need not be read again before removal
};

}  // namespace tw::sync
