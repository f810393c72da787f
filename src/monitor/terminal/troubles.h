// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "world/events.h"

namespace tw::monitor {

/// Finds in the events of one peer what its user has to hear as a warning: a promise that is not kept. What
/// is tried again and again is said once, and once more when it succeeds, or when it was the last time.
class Troubles {
 public:
  /// The warning that is due with this event.
  std::optional<std::string> line_for(const world::Event& event);

  /// "peer 2 was refused: another run: expected ...", of the last one with another model or run; empty: none.
  const std::string& refused() const { return refused_; }

  /// Why the newest checkpoint that was due, or its copy, could not be written; empty: it was.
  const std::string& unsaved() const { return checkpoints_.why.empty() ? copies_.why : checkpoints_.why; }

 private:
  /// What is written again and again.
  struct Writes {
    std::uint64_t failed = 0;  ///< since the last success
    std::string why{};         ///< of the last one; empty: it succeeded, or was not even tried

    std::optional<std::string> line_for(const world::Event& event, const auto& written, const char* one,
                                        const char* many, bool is_last);
  };

  std::optional<std::string> alone_line(Round round, const event::Commit& commit);
  std::optional<std::string> restore_line(const world::Event& event, const event::Restore& restored);
  std::optional<std::string> refuse_line(const world::Event& event, event::Cause cause);

  Writes checkpoints_, copies_;
  std::optional<Round> last_round_;  ///< the newest one, if the run ends with it
  std::optional<Round> alone_from_;  ///< first round that was decided without a majority
  std::uint64_t members_then_ = 0;
  std::string refused_;
  std::set<std::string> refusals_told_;  ///< kMostRefusals at most
};

}  // namespace tw::monitor
