// SPDX-License-Identifier: Apache-2.0
#include "swarm/wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/peer_name.h"

namespace tw::swarm {
namespace {

std::string peer_names(const std::vector<PeerId>& peers) {
  if (peers.empty()) return "nobody";
  std::string text = peers.size() == 1 ? "peer " : "peers ";
  for (const PeerId peer : peers) text += (peer == peers.front() ? "" : ", ") + peer_name(peer);
  return text;
}

std::string whole_seconds(Duration left) { return fmt::format("{:.0f} s", std::max(0.0, to_seconds(left))); }

std::string megabytes(std::uint64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6); }

std::string transferred(const Wait& wait) {
  if (wait.total == 0) return {};
  std::string text = fmt::format(", {} of {} MB", megabytes(wait.done), megabytes(wait.total));
  if (wait.bytes_per_s > 0) text += fmt::format(" at {:.1f} MB/s", wait.bytes_per_s / 1e6);
  return text;
}

std::string size_of_it(const Wait& wait) {
  return wait.total == 0 ? "" : ": " + megabytes(wait.total) + " MB";
}

std::string words_of_copying(const Wait& wait) {
  const std::string what =
      wait.round == 0 ? "a checkpoint" : fmt::format("the checkpoint of round {}", wait.round);
  const std::string far = wait.done > 0 ? transferred(wait) : size_of_it(wait);
  return fmt::format("copying {} to {}{}", what, wait.place, far);
}

std::string steps_done(const Wait& wait, std::string_view what) {
  return wait.total == 0 ? "" : fmt::format(": {} of {} {}", wait.done, wait.total, what);
}

std::string no_answer_from(const Wait::Unanswered& dial) {
  std::string text = "no link to " + dial.address;
  if (!dial.cause.empty()) text += ": " + dial.cause;
  if (dial.attempts > 0)
    text += fmt::format(", {} {}", dial.attempts, dial.attempts == 1 ? "attempt" : "attempts");
  return text;
}

/// The answer that is due from the awaited peers.
std::string what_is_due(const Wait& wait) {
  switch (wait.kind) {
    case Wait::Kind::majority:
      return fmt::format("a majority of the members of round {}", wait.round) +
             (wait.left ? fmt::format(" (goes on alone in {})", whole_seconds(*wait.left)) : "");
    case Wait::Kind::promises:
      return fmt::format("the promise to follow ballot {}", wait.ballot);
    case Wait::Kind::takeover:
      return fmt::format("to lead round {}", wait.round);
    case Wait::Kind::gradients:
      return "gradients of leased microbatches";
    case Wait::Kind::held_back:
      return "the state of the run to be complete there: its bandwidth is below what rounds need, so no "
             "leases go out meanwhile";
    case Wait::Kind::requests:
      return "to ask for microbatches";
    case Wait::Kind::readiness:
      return fmt::format("to be ready for round {}", wait.round);
    case Wait::Kind::successor:
      return "to go on with the run: all others leave";
    case Wait::Kind::segments:
      return "segments to be averaged" + steps_done(wait, "are here");
    case Wait::Kind::votes:
      return "the mean to be complete there";
    case Wait::Kind::work:
      return "work or the call of the round";
    case Wait::Kind::commit:
      return "the commit of the round";
    case Wait::Kind::members:
      return "any member of the run to answer";
    case Wait::Kind::link:
      return "a link to it, which leads the run";
    case Wait::Kind::beginning:
      return "the first round to begin";
    case Wait::Kind::founder:
      return "the first round to begin, though none of them may begin it: the peer does that has no address "
             "to join, or listens at the first address of its token";
    case Wait::Kind::offers:
      return "an offer of the state";
    case Wait::Kind::state:
      return "the state of the run" + transferred(wait);
    case Wait::Kind::mean:
      return fmt::format("the mean of round {}", wait.round) + transferred(wait);
    case Wait::Kind::source:
      return "to have the state of the run";
    case Wait::Kind::custody:
      return "to have what this peer did, which leaves before the round ends";
    case Wait::Kind::last_round:
      return "word that they have the last round";
    default:
      return {};
  }
}

std::string words_of_own_work(const Wait& wait) {
  switch (wait.kind) {
    case Wait::Kind::initialising:
      return "making the parameters of the beginning";
    case Wait::Kind::computing:
      return fmt::format("computing a microbatch of round {} after {} samples", wait.round, wait.done);
    case Wait::Kind::collecting:
      return fmt::format("copying the sum of round {} to the engine", wait.round);
    case Wait::Kind::away:
      return fmt::format("the program's own thread, away for {} s", wait.done);
    case Wait::Kind::applying:
      return "applying an update";
    case Wait::Kind::restoring:
      return "putting the state in place" + size_of_it(wait);
    case Wait::Kind::freezing:
      return "copying the state for others" + size_of_it(wait);
    case Wait::Kind::saving:
      return "saving a checkpoint" + size_of_it(wait);
    case Wait::Kind::loading:
      return "loading a checkpoint";
    case Wait::Kind::copying:
      return words_of_copying(wait);
    default:
      return {};
  }
}

std::string words_of_past(const Wait& wait) {
  const Wait::Past past = wait.past.value_or(Wait::Past{});
  const std::string then =
      past.checkpoint        ? fmt::format("resumes alone from its checkpoint of round {}", *past.checkpoint)
      : past.trouble.empty() ? "begins the run anew"
                             : "ends: " + past.trouble;
  return fmt::format("waiting for the other peers of this run, up to {} ({}); then it {}",
                     whole_seconds(wait.left.value_or(Duration{})), past.found, then);
}

}  // namespace

bool is_own_work(Wait::Kind kind) { return kind >= Wait::Kind::initialising; }

bool is_named(const Wait& wait) {
  if (wait.kind == Wait::Kind::answer) return wait.unanswered && !wait.unanswered->address.empty();
  if (wait.kind == Wait::Kind::others) return wait.past.has_value();
  if (wait.kind == Wait::Kind::nothing || wait.kind == Wait::Kind::company || is_own_work(wait.kind))
    return true;
  return !wait.peers.empty();
}

bool goes_on(const Wait& before, const Wait& now) {
  return before.kind == now.kind && before.peers == now.peers && before.round == now.round &&
         before.ballot == now.ballot;
}

std::string text_of(const Wait& wait) {
  if (wait.kind == Wait::Kind::nothing) return {};
  if (is_own_work(wait.kind)) return words_of_own_work(wait);
  if (wait.kind == Wait::Kind::relief)
    return peer_names(wait.peers) + (wait.peers.size() == 1 ? " is" : " are") +
           " slow: others reduce the rest of " + (wait.peers.size() == 1 ? "its share" : "their shares");
  if (wait.kind == Wait::Kind::newcomer)
    return fmt::format("waiting for a peer that goes on with the run: {} {}", peer_names(wait.peers),
                       wait.peers.size() == 1 ? "leaves" : "leave");
  if (wait.kind == Wait::Kind::company) {
    return fmt::format("waiting for {} more {} to begin: {} of {} are here", wait.total - wait.done,
                       wait.total - wait.done == 1 ? "peer" : "peers", wait.done, wait.total);
  }
  if (wait.kind == Wait::Kind::others) return words_of_past(wait);
  if (wait.kind == Wait::Kind::answer) {
    return "waiting: " + no_answer_from(wait.unanswered.value_or(Wait::Unanswered{})) +
           (wait.left ? ", gives up in " + whole_seconds(*wait.left) : "");
  }
  return fmt::format("waiting for {}: {}", peer_names(wait.peers), what_is_due(wait)) +
         (wait.unanswered ? "; " + no_answer_from(*wait.unanswered) : "");
}

}  // namespace tw::swarm
