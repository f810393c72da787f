// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "base/time.h"
#include "world/events.h"

namespace tw::sim {

/// Everything that happened in a world, as lines in order; two runs of one seed have the same digest.
class History {
 public:
  explicit History(bool keep_lines) : keep_lines_(keep_lines) {}

  void add(const std::string& line);

  /// The same with the time before it.
  void note(Instant now, const std::string& what);

  const Digest& digest() const { return digest_; }

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  bool keep_lines_;
  Digest digest_;
  std::vector<std::string> lines_;
};

/// The event log of one virtual peer: written to the history and passed to a watcher (which must not act from
/// inside the call).
class VirtualEvents final : public world::EventSink {
 public:
  using Watch = std::function<void(PeerId, const world::Event&)>;

  VirtualEvents(PeerId self, History& history, const Watch& watch)
      : self_(self), history_(history), watch_(watch) {}

  void emit(const world::Event& event) override;

 private:
  PeerId self_;
  History& history_;
  const Watch& watch_;
};

}  // namespace tw::sim
