// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "codec/codec.h"
#include "swarm/shares/division.h"

/// Values of the command line of `tw bench reduce`, from text.
namespace tw::measure {

/// "64MiB", "256MB", "4096": powers of 1024 and of 1000. Whole floats, at least one.
Result<std::uint64_t> parse_bytes(const std::string& option, const std::string& text);

Result<codec::Codec> parse_codec(const std::string& text);

/// "auto", "flat", "tree".
Result<swarm::SiteUse> parse_site_use(const std::string& text);

/// A disturbance of one peer in the middle of one round.
struct Disturbance {
  enum class Kind { kill, stop };
  Kind kind{};
  std::optional<PeerId> victim;  ///< nothing: the leader
  double fraction = 0;           ///< of an undisturbed round, in [0, 1]

  bool operator==(const Disturbance&) const = default;
};

/// "2@0.5", "leader@0.3"; option is --kill or --stop.
Result<Disturbance> parse_disturbance(const std::string& option, const std::string& text,
                                      std::uint64_t peers);

/// A disturbance of many rounds, one after the other.
enum class TroubleKind {
  busy,  ///< two loops beside the peers, a core each
  link,  ///< the links of the first site of a topology at a tenth
  stop,  ///< SIGSTOP of the last peer
};

inline constexpr std::array<const char*, 3> kTroubleNames = {"busy", "link", "stop"};

/// It begins after the measured rounds and has a duration.
struct TroubleTime {
  TroubleKind kind{};
  Duration lasts{};

  bool operator==(const TroubleTime&) const = default;
};

/// "busy@20s"; narrowing a link needs a topology.
Result<TroubleTime> parse_trouble(const std::string& text, bool topology);

/// "busy@20s".
std::string to_string(const TroubleTime& trouble);

/// "gloo,openmpi".
Result<std::vector<std::string>> parse_baselines(const std::string& text);

}  // namespace tw::measure
