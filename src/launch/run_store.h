// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/disk/file_lock.h"
#include "launch/deployment.h"
#include "launch/engine.h"

/// What `tw up` remembers of a run between two commands: a folder of its own, with state.json, the files of
/// the engine, the key and the tokens (0600), and logs/.
namespace tw::launch {

/// What `tw down` did about a run: whoever watches it starts nobody again, unless it is none.
enum class StopState {
  none,
  stopping,  ///< under way, or failed: peers may live
  stopped,   ///< no peer lives
};

struct RunState {
  std::string engine;
  std::string plan_file;          ///< absolute; the plan that is followed
  std::string job_file;           ///< of the plan; empty: not known
  std::uint32_t next_number = 1;  ///< of a new peer
  StopState stop = StopState::none;
  Deployment deployment;  ///< without its tokens, which are files of their own

  bool operator==(const RunState&) const = default;
};

std::string to_json(const RunState& state);

/// Errors name the file and what is wrong with it.
Result<RunState> run_state_in(const std::string& file, const std::string& text);

/// tw::write_file, which makes the folder first.
Status write_with_folder(const std::string& path, const std::string& text, unsigned mode);

/// The folder of one run, locked against other processes while this object lives. Main thread.
class RunStore {
 public:
  /// The store of a run that is there. Errors: no such run, with the names of those that are; damaged; not
  /// made by `tw up`; another command holds the lock for longer than a minute.
  static Result<RunStore> open(const std::string& runs, const std::string& run);

  /// The same without waiting; nothing while another command holds the lock.
  static Result<std::optional<RunStore>> open_if_free(const std::string& runs, const std::string& run);

  /// As open(), or a new one where nothing is: has_state() tells.
  static Result<RunStore> open_or_make(const std::string& runs, const std::string& run);

  RunStore(RunStore&& other) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();

  const std::string& folder() const { return folder_; }

  bool has_state() const { return has_state_; }

  const RunState& state() const { return state_; }

  Status save(RunState state);
  Status write(const std::vector<File>& files) const;

 private:
  explicit RunStore(std::string folder) : folder_(std::move(folder)) {}

  /// The process that holds the lock; nothing: this one.
  Result<host::FileLock::Holder> try_lock();
  Status lock();
  Status read();

  std::string folder_;
  std::optional<host::FileLock> lock_;
  bool has_state_ = false;
  RunState state_;
};

/// As far as its state can be read, else none. Takes no lock: tw down holds it for long.
StopState stop_state_of(const std::string& runs, const std::string& run);

/// The runs of which `runs` has a state, by name.
std::vector<std::string> runs_in(const std::string& runs);

}  // namespace tw::launch
