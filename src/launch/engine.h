// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/deployment.h"

/// How an engine (ssh, Slurm, SkyPilot, Kubernetes, this machine) is told of the peers of a run. Pure: the
/// caller writes the files below the state folder of the run and runs the commands, in order.
namespace tw::launch {

/// Below Deployment::folder. A file that holds a secret has mode 0600.
struct File {
  std::string path;  ///< relative
  std::string text;
  unsigned mode = 0644;

  bool operator==(const File&) const = default;
};

/// A program to run, without a shell.
struct Command {
  std::vector<std::string> words;
  std::string input{};  ///< its stdin; a secret travels here, or in a file of mode 0600, never in words
  bool input_is_secret = false;  ///< --dry-run does not show it
  std::string input_file{};      ///< a file as its stdin instead
  std::string output_file{};     ///< absolute; replaced by its stdout when that is well; empty: no file
  std::vector<int> fine{0};      ///< exit codes that are no failure
  std::uint32_t peer = 0;        ///< it is about; 0: the run. Those of different peers may run at once

  bool operator==(const Command&) const = default;
};

enum class Action {
  prepare,  ///< before the peers given are started, each time: copies, Secrets, Services; idempotent
  start,    ///< the peers given; one that runs already is no error where the engine can tell
  stop,     ///< the peers given, with Deployment::grace to leave in
  retire,  ///< the peers given are leaving by themselves, with no second notice: the engine starts none again
  status,  ///< output for states()
  collect,  ///< the tails of logs to the state folder: logs/events-ID.jsonl, and output as logs/pN.log
  hurry,    ///< the peers given wait in a queue of the engine (requeued): let them run now
  logs,     ///< the output of the peers given, on stdout
  remove,   ///< what prepare made, once all peers have stopped
};

enum class PeerState {
  unknown,  ///< its machine cannot be asked: it may live
  absent,   ///< the engine does not know it: never started, or gone without a trace
  waiting,  ///< queued, or its machine is coming
  running,
  leaving,  ///< was told to go, and still runs
  left,     ///< ended with 75: the run goes on without it until it is started again
  done,     ///< ended with 0: the run is complete
  failed,   ///< ended with anything else, or was killed
};

std::string_view to_string(PeerState state);

/// The exit code of a peer that left on a notice while the run goes on (EX_TEMPFAIL).
inline constexpr int kLeftExit = 75;

/// done, left or failed.
PeerState state_after(int exit_code);

struct PeerReport {
  std::uint32_t number = 0;
  PeerState state = PeerState::absent;
  std::string where{};             ///< host, node, cloud zone; empty: not known
  std::optional<int> exit_code{};  ///< 128 + signal; of the last end
  std::uint32_t restarts = 0;      ///< by the engine
  std::string detail{};            ///< the engine's own word: "PENDING (Resources)"

  bool operator==(const PeerReport&) const = default;
};

/// What a command printed.
struct Output {
  Command command;
  int exit_code = 0;
  std::string text;    ///< stdout
  std::string errors;  ///< stderr
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// "ssh", as `tw up --on` takes it.
  virtual std::string_view name() const = 0;

  /// True: a peer that left or was lost is started again by the engine; false: `tw up --keep` does it.
  virtual bool restarts_peers() const = 0;

  /// What is wrong with this deployment for this engine: a host is missing, a setting of `on` is unknown.
  virtual Status check(const Deployment& deployment) const = 0;

  virtual std::vector<File> files(const Deployment& deployment) const = 0;

  /// peers: of start, stop, retire, hurry, collect and logs; in order. Empty for those of the run.
  virtual std::vector<Command> commands(Action action, const Deployment& deployment,
                                        const std::vector<PeerJob>& peers) const = 0;

  /// A report for each peer of the deployment, by number, from what the commands of Action::status printed.
  /// An error: the engine could not be asked, or its answer is not what its version promises.
  virtual Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                                 const std::vector<Output>& outputs) const = 0;
};

/// The names of all engines.
std::vector<std::string> engine_names();

/// The error names the engines that there are.
Result<std::unique_ptr<Engine>> make_engine(const std::string& name);

}  // namespace tw::launch
