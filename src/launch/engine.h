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
#include "launch/exit_codes.h"

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
  std::string client{};  ///< what messages call a script: "kubectl"; empty: the words
  std::string input{};   ///< its stdin; a secret travels here, or in a file of mode 0600, never in words
  bool input_is_secret = false;  ///< --dry-run does not show it
  std::string input_file{};      ///< a file as its stdin instead
  std::string output_file{};     ///< absolute; replaced by its stdout on success; empty: no file
  std::string own_folder{};      ///< it runs only if this is the user's alone: host::take_own_folder
  std::vector<int> fine{0};      ///< exit codes that are no failure
  bool says_why = false;         ///< the last line of its stderr is the whole message of a failure
  std::uint32_t peer =
      0;             ///< peer of the command; 0: the run. Commands of different peers may run in parallel
  Duration limit{};  ///< afterwards it is ended, with its process group; 0: it takes as long as it takes
  bool again_when_late = false;  ///< once
  bool others_go_on = false;     ///< when it fails, those after it are run all the same
  std::optional<int> in_vain{};  ///< of a start: the exit code by which it says that nothing of it lives

  bool operator==(const Command&) const = default;
};

enum class Action {
  prepare,  ///< before the peers given are started, each time: copies, Secrets, Services; idempotent
  check,    ///< copies the program to the machines of the given peers, sets them up and looks whether it can
            ///< run there; no commands: only the machines know, once they are there
  start,    ///< starts the given peers; one that runs already is no error if the engine can tell
  stop,     ///< stops the given peers within Deployment::grace
  retire,   ///< the given peers are leaving by themselves, without a second notice: the engine must not
            ///< restart them. What is left after the commands of stop and retire: Engine::remains
  status,   ///< output for states()
  collect,  ///< fetches new lines of logs to the state folder: logs/events-ID.jsonl, and output as
            ///< logs/pN.log
  hurry,    ///< the given peers wait in a queue of the engine (requeued): run them now
  logs,     ///< the output of the given peers, on stdout
  remove,   ///< removes the results of prepare, once all peers have stopped
};

enum class PeerState {
  unknown,  ///< its machine cannot be asked, or the engine's word for it is not known: it may live
  absent,   ///< the engine does not know it: never started, or gone without a trace
  waiting,  ///< queued, or its machine is starting
  running,
  leaving,  ///< was told to leave, and still runs
  left,     ///< ended with 75: the run goes on without it until it is restarted
  done,     ///< ended with 0: the run is complete
  failed,   ///< ended with anything else, or was killed
};

std::string_view to_string(PeerState state);

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

/// It ended with kNeedsPerson: another start would help nothing before a person has looked.
bool needs_person(const PeerReport& report);

/// What a command printed.
struct Output {
  Command command;
  int exit_code = 0;
  std::string text;         ///< stdout
  std::string errors;       ///< stderr; of one that is late: that it did not answer
  std::int64_t unix_s = 0;  ///< when it ended
  bool is_late = false;     ///< ended at its limit
};

/// The same commands with the limits for this action. Copies and setup lines of the user's (prepare, check)
/// have none.
std::vector<Command> with_limits(std::vector<Command> commands, Action action, const Deployment& deployment);

/// For commands whose output is the last chance to have it, or that somebody waits for.
inline constexpr Duration kOutputLimit = std::chrono::minutes(10);

/// All peers unknown, with this reason.
std::vector<PeerReport> unknown_for(const Deployment& deployment, const std::string& why);

/// "; 2 jobs live: 8_1, 6_1"; empty: at most one.
std::string twins_text(const std::vector<std::string>& living);

/// What an engine has of peers that are to end.
struct Remains {
  std::vector<Command> next;  ///< end it and look again: what they print is for the next remains(). Empty:
                              ///< nothing ends it
  std::string living;         ///< what lives, a line each; empty: nothing
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// True: the engine restarts this peer when it left or was lost; false: `tw up --keep` does.
  virtual bool restarts(const PeerJob& peer) const = 0;

  /// The error of Deployment::on for this engine, such as an unknown setting; also without any peer.
  virtual Status check_settings(const Deployment& deployment) const = 0;

  /// check_settings(), and the error of anything else for this engine, such as a missing host.
  virtual Status check(const Deployment& deployment) const = 0;

  virtual std::vector<File> files(const Deployment& deployment) const = 0;

  /// peers: of start, stop, retire, hurry, collect and logs; in order. Empty for those of the run.
  virtual std::vector<Command> commands(Action action, const Deployment& deployment,
                                        const std::vector<PeerJob>& peers) const = 0;

  /// What is left of peers after these commands of stop or retire, or after those of the last remains().
  virtual Remains remains(Action /*action*/, const Deployment& /*deployment*/,
                          const std::vector<PeerJob>& /*peers*/,
                          const std::vector<Output>& /*outputs*/) const {
    return {};
  }

  /// The peers in groups, in the order of their starts: what fails in one of them is no failure of the
  /// others.
  virtual std::vector<std::vector<PeerJob>> starts(const Deployment& /*deployment*/,
                                                   const std::vector<PeerJob>& peers) const {
    return {peers};
  }

  /// A report for each peer of the deployment, by number, from what the commands of Action::status printed.
  /// An error: the engine could not be asked, or its answer is not what its version promises.
  virtual Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                                 const std::vector<Output>& outputs) const = 0;
};

/// The names of all engines.
std::vector<std::string> engine_names();

/// on: EngineChoice::text(), such as "ssh", or "owned=ssh,spot=skypilot" for an engine that shares the peers
/// out. The error lists all engines.
Result<std::unique_ptr<Engine>> make_engine(const std::string& on);

}  // namespace tw::launch
