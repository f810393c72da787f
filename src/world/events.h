// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace tw::world {

enum class Phase {
  accumulate,  ///< the round begins: state is up to date, work is asked for
  probe,       ///< bandwidth was measured before the first averaging
  call,        ///< the plan of the averaging arrived
  scatter,     ///< all own contributions are on their way
  gather,      ///< the whole mean is here
  commit,      ///< the record is decided
  apply,       ///< the update is applied
  wait,        ///< the peer waits: for which peer and why
  lead,        ///< this peer leads the round now
  join,        ///< a peer became a member
  leave,       ///< a peer left on its own will
  handover,    ///< another peer has the sums of this one, which leaves before the round ends
  lost,        ///< a peer is out: peer and why
  reissue,     ///< microbatches of a lost peer are given out again; Cause::sample: a sample of this peer
  restore,     ///< state taken from others or from a checkpoint
  checkpoint,  ///< a checkpoint is durable, or (Cause::failed, Cause::skipped) why not
  refuse,      ///< a link or message was turned away, and why
  start,       ///< the process takes part from now on
  stop,        ///< the process ends, and why
  kill,        ///< the driver of an experiment ends a peer (never emitted by a peer itself)
  log,         ///< about the log itself: a further file begins, lines are missing, or which samples it names
  notice,      ///< this machine is about to go, as somebody said: source, cause, deadline_s
  copy,        ///< a finished checkpoint was copied away, or (Cause::failed) why not
  traffic,     ///< what this process sent so far, by site
  budget,      ///< the cost of the run comes near its budget, or has reached it
  skip,        ///< the run goes on without a sample, and why
  evaluate,    ///< what the program measured of the parameters after a round
  warn,        ///< for the user: what was promised or set up does not work, or works again
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 28> kPhaseNames = {
    "accumulate", "probe",    "call", "scatter", "gather",  "commit",     "apply",    "wait",  "lead", "join",
    "leave",      "handover", "lost", "reissue", "restore", "checkpoint", "refuse",   "start", "stop", "kill",
    "log",        "notice",   "copy", "traffic", "budget",  "skip",       "evaluate", "warn"};

static_assert(kPhaseNames.size() == static_cast<std::size_t>(Phase::warn) + 1);

inline std::string_view name_of(Phase phase) { return kPhaseNames.at(static_cast<std::size_t>(phase)); }

/// A stage of a round: each participating peer passes all of them in this order.
inline bool is_stage(Phase phase) { return phase <= Phase::apply && phase != Phase::probe; }

/// The kind of event where its phase has several; refusals (Phase::refuse) are counted by cause.
enum class Cause {
  none,         ///< none of these
  silent,       ///< a stranger sent nothing
  slow,         ///< a stranger took too long to prove that it belongs to the run
  crowded,      ///< there were too many strangers
  broken,       ///< a stranger's connection ended before that proof
  nonsense,     ///< a stranger does not follow the protocol
  credential,   ///< the two have no valid token in common, or only one side uses TLS
  version,      ///< another version of the protocol
  parameters,   ///< another model
  run,          ///< another run
  taken,        ///< a peer id that another process has
  self,         ///< this peer reached itself
  dial,         ///< a dial failed, or was refused there
  message,      ///< a peer sent what cannot be read or used
  own,          ///< an unusable contribution or state of this peer
  verdict,      ///< lost: nothing that the peer computed enters the round, but it stays and gets the mean
  checkpoint,   ///< restore: the state is from a checkpoint, not from other peers
  preempt,      ///< notice: the machine goes at its deadline
  at_risk,      ///< notice: it may go soon
  maintenance,  ///< notice: it stops at its deadline
  freeze,       ///< notice: it stands still for some seconds from its deadline on
  failed,       ///< checkpoint, copy: it was not made
  skipped,      ///< checkpoint: this one cannot be read, and an older one is taken
  sample,       ///< reissue: another peer gets a sample that this one cannot compute; wait: it is over, for
                ///< samples
  minority,     ///< commit: decided without a majority of the members
  anew,         ///< restore: from its own state, for no member of the run was reached
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 26> kCauseNames = {
    "",        "silent",     "slow",       "crowded",  "broken",  "nonsense",    "credential",
    "version", "parameters", "run",        "taken",    "self",    "dial",        "message",
    "own",     "verdict",    "checkpoint", "preempt",  "at_risk", "maintenance", "freeze",
    "failed",  "skipped",    "sample",     "minority", "anew"};

static_assert(kCauseNames.size() == static_cast<std::size_t>(Cause::anew) + 1);

inline std::string_view name_of(Cause cause) { return kCauseNames.at(static_cast<std::size_t>(cause)); }

/// One line of the event log.
struct Event {
  Instant at{};
  Phase phase{};
  Round round = 0;
  std::optional<PeerId> peer{};                           ///< whom it is about, when not the writer itself
  std::string why{};                                      ///< in words, for people alone
  std::vector<std::pair<std::string, double>> numbers{};  ///< named measurements, unit last in the name
  std::string digest{};  ///< of the parameters (apply, restore), the record (commit), the run (start)
  Cause cause{};
  std::string source{};         ///< notice: its source (spot::kSources)
  std::vector<PeerId> peers{};  ///< commit: contributors; wait: peers that are waited for
  std::vector<std::pair<std::string, std::string>> texts{};  ///< named facts that are no measurements

  /// The fact of that name; empty where it tells none.
  std::string text(std::string_view name) const {
    for (const auto& [known, value] : texts)
      if (known == name) return value;
    return {};
  }
};

/// Door to the event log. Loop thread only.
class EventSink {
 public:
  virtual ~EventSink() = default;

  virtual void emit(const Event& event) = 0;
};

}  // namespace tw::world
