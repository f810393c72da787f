// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sync/image.h"
#include "sync/unusable.h"
#include "wire/rank.h"
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
  std::string writer;  ///< CheckpointStore::Options::unique of its writer
  Digest origin;       ///< record of the checkpoint from which its history was resumed; zero: none
  Round begun = 0;     ///< rounds of a run before, which the records do not count (Session::goes_on_from)
  std::string path{};  ///< of its file
  std::vector<std::string> skipped;  ///< files of later rounds that cannot be used, each with the reason
};

/// Reads one file of any run; every byte is verified. The error names the file and says why it is of no use.
Result<LoadedCheckpoint> read_checkpoint(world::Files& files, const std::string& path);

/// What the header of a checkpoint says; the rest of the file may be cut off or corrupt.
struct CheckpointHead {
  wire::Record record;
  RunWords words;
};

/// beginning: enough bytes of the file for its header, which is verified.
Result<CheckpointHead> read_head(std::span<const std::byte> beginning);

/// Those of a folder's names that checkpoints have; the ones with more rounds first.
std::vector<std::string> checkpoints_among(const std::vector<std::string>& names);

/// True for just one of two checkpoints of a run: by the rank by which histories are compared where they meet
/// (wire/rank.h); but what was resumed from a checkpoint is newer than that one, which members may still have
/// and which therefore goes before it.
bool is_newer(const LoadedCheckpoint& one, const LoadedCheckpoint& other);

/// The newest checkpoint of a folder, also while a run writes there; nothing if it holds none. An error if it
/// holds those of several runs, or none that is sound.
Result<std::optional<LoadedCheckpoint>> read_newest_checkpoint(world::Files& files,
                                                               const std::string& folder);

/// What a folder has for a run.
struct FoundCheckpoints {
  std::optional<LoadedCheckpoint> newest{};    ///< of those whose every byte verifies
  std::vector<UnusableCheckpoint> unusable{};  ///< those with more rounds first
  std::string none{};                          ///< why none can be used; empty: one can, or there is none
  std::string remedy{};                        ///< then: what to do
};

/// Checkpoints of one run in one folder, round-000120-1a2b3c4d.tw each: the round, and the first digits of
/// the record's digest. Several peers may share the folder. A file appears under its name only when it is
/// complete and durable, so whatever kills a peer, the last checkpoint stays loadable.
///
/// Where a run had several histories, the number of a round says nothing: is_newer() compares them. So a
/// history that was given up does not come back from its checkpoints, however many rounds it had.
///
/// Calls block on the disk; one at a time, from any thread.
class CheckpointStore {
 public:
  struct Options {
    std::string folder;
    std::size_t keep = 2;  ///< number of checkpoints that stay
    std::string unique;    ///< distinguishes files of this peer from those of others
    RunWords words{};
  };

  /// files outlives this object.
  CheckpointStore(world::Files& files, Options options);

  /// add(), then prune().
  Status save(const StateImage& image, const Digest& origin = {}, Round begun = 0);

  /// Writes the checkpoint unless a sound one after the same record is there already. origin, begun:
  /// LoadedCheckpoint.
  Status add(const StateImage& image, const Digest& origin, Round begun);

  /// After the checkpoint of this record was saved: removes those beyond `keep`, this peer's own ones of a
  /// history that it gave up, the one that the history was resumed from (origin), and the leftovers of
  /// unfinished writes; the last one of a complete run before this one is set aside. Never removes a
  /// checkpoint of another run, nor one whose format it does not know, which may be of any; a damaged one
  /// goes once the run has more rounds. After an error some of those are still there.
  Status prune(const wire::Record& saved, const Digest& origin);

  /// Makes the folder, which else the first save does: an error is better now than then.
  Status make_folder();

  /// The run begins anew: its checkpoints get names that end with .old, which no call takes for those of
  /// checkpoints. Those that had such names before are removed.
  Status set_aside(const Digest& run);

  /// Reads all checkpoints of the folder; nothing when it holds none or is not there. Creates nothing. An
  /// error if it cannot be listed.
  Result<FoundCheckpoints> find(const Digest& run);

  /// The newest checkpoint of this run that find() has. If the folder holds some but none can be used, the
  /// error names them, so that no run silently starts anew.
  Result<std::optional<LoadedCheckpoint>> load_newest(const Digest& run);

  const std::string& folder() const { return options_.folder; }

 private:
  enum class Verdict { sound, other_run, other_format, no_checkpoint, broken, unreadable };

  struct Known {
    Known(const wire::Record& record, std::string by);

    Round round = 0;
    wire::Rank rank;
    std::string writer;
    std::vector<wire::Member> processes;  ///< of a record that was the last one of the run: its members
  };

  struct Finding {
    Verdict verdict = Verdict::unreadable;
    std::string why;          ///< unless sound
    LoadedCheckpoint loaded;  ///< when sound
  };

  Result<std::vector<std::string>> list();
  Status write(const std::string& name, const StateImage& image, const Digest& origin, Round begun);
  Status rename_to_old(const std::vector<std::string>& aside, const Digest& run);
  static bool is_of_former_run(const Known& other, const wire::Record& saved);
  bool drops(const Known& other, const wire::Record& saved, const Digest& origin) const;
  Status remove_parts(const std::vector<std::string>& names, Round oldest_kept);
  Finding examine(const std::string& name, const Digest& run);
  Status remove(const std::string& name);
  bool is_there(const std::string& name);
  std::string path_of(const std::string& name) const;

  world::Files& files_;
  Options options_;
  /// By name, which tells the record: written or read by this object. Nothing: of another run or format.
  std::map<std::string, std::optional<Known>> known_;
};

}  // namespace tw::sync
