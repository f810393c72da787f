// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/ids.h"
#include "base/time.h"
#include "event/process_facts.h"
#include "event/round_facts.h"

namespace tw::world {

/// The kinds of events; what each tells besides is a struct of its name (event/round_facts.h,
/// event/process_facts.h).
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

/// What an event tells, by its phase: in the order of the constants.
using Fact =
    std::variant<event::Accumulate, event::Probe, event::Call, event::Scatter, event::Gather, event::Commit,
                 event::Apply, event::Wait, event::Lead, event::Join, event::Leave, event::Handover,
                 event::Lost, event::Reissue, event::Restore, event::Checkpoint, event::Refuse, event::Start,
                 event::Stop, event::Kill, event::Log, event::Notice, event::Copy, event::Traffic,
                 event::Budget, event::Skip, event::Evaluate, event::Warn>;

static_assert(std::variant_size_v<Fact> == kPhaseNames.size());

/// A fact of that phase that tells nothing yet.
inline Fact fact_of(Phase phase) {
  Fact fact;
  const auto make = [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    ((kIndex == static_cast<std::size_t>(phase) ? void(fact.emplace<kIndex>()) : void()), ...);
  };
  make(std::make_index_sequence<std::variant_size_v<Fact>>());
  return fact;
}

/// One line of the event log.
struct Event {
  Instant at{};
  Round round = 0;
  std::optional<PeerId> peer{};  ///< whom it is about, when not the writer itself
  std::string why{};             ///< in words, for people alone
  Fact fact{};

  Phase phase() const { return static_cast<Phase>(fact.index()); }

  /// The fact, if it is of that kind: `event.as<event::Commit>()`.
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&fact);
  }
};

/// What the process used until now, where the event tells it; else null.
inline const event::Use* use_in(const Event& event) {
  if (const auto* call = event.as<event::Call>()) return &call->use;
  if (const auto* commit = event.as<event::Commit>()) return &commit->use;
  return nullptr;
}

/// The same of its bandwidth.
inline const event::Bandwidth* bandwidth_in(const Event& event) {
  if (const auto* probe = event.as<event::Probe>()) return &probe->bandwidth;
  if (const auto* commit = event.as<event::Commit>()) return &commit->bandwidth;
  if (const auto* traffic = event.as<event::Traffic>()) return &traffic->bandwidth;
  return nullptr;
}

/// Door to the event log. Loop thread only.
class EventSink {
 public:
  virtual ~EventSink() = default;

  virtual void emit(const Event& event) = 0;
};

}  // namespace tw::world
