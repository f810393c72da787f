// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/doctor/machine_facts.h"

/// What `tw doctor` makes of what it measured: numbers in, a verdict and its remedy out. Pure.
namespace tw::measure {

enum class Verdict {
  ok,
  note,   ///< not known, or worth a look
  hurts,  ///< training will be slow, stop or lose work
};

/// "ok", "note", "will hurt"
std::string_view name_of(Verdict verdict);

struct Finding {
  std::string check;  ///< "disk": the same word for the same check, always
  Verdict verdict = Verdict::ok;
  std::string text;    ///< what was found, with its numbers
  std::string remedy;  ///< what to do, with the command where there is one; empty where nothing is to be done

  bool operator==(const Finding&) const = default;
};

/// The needs of the run, as far as a profile of its model and a plan were given.
struct Needs {
  std::optional<std::uint64_t> state_bytes;   ///< of one checkpoint
  std::optional<std::uint64_t> memory_bytes;  ///< of a peer
  std::optional<double> gpu_gib;              ///< of one GPU
  std::optional<std::uint64_t> peers;         ///< of the plan, this one included
};

Finding judge_cpu(const CpuFacts& cpu);

/// A second look, where the first one was not ok: other jobs may have been busy for its half second.
CpuFacts quieter(const CpuFacts& first, const CpuFacts& second);
Finding judge_memory(const MemoryFacts& memory, const Needs& needs);
Finding judge_gpu(const GpuFacts& facts, const Needs& needs);
Finding judge_files(const FileLimit& limit, const Needs& needs);

/// skew_s: by which the clock of another machine is ahead of this one. token_begins_in_s:
/// TokenFacts::begins_in_s
Finding judge_clock(const ClockFacts& clock, std::optional<double> skew_s, double token_begins_in_s = 0);
Finding judge_disk(const std::string& folder, const DiskFacts& disk, const Needs& needs);

/// Where measure_disk() could write nothing.
Finding judge_no_disk(const std::string& failure);

struct TokenFacts {
  std::string run, role;
  bool trains = true;              ///< peers and anchors do
  double left_s = 0;               ///< until it expires
  double begins_in_s = 0;          ///< more than 0: it does not hold yet, by this clock
  std::optional<std::string> bad;  ///< why TLS cannot be set up with it
};

/// Nothing: no token was given.
Finding judge_token(const std::optional<TokenFacts>& token);

/// An address that was dialed.
struct PeerFacts {
  enum class Answer { probe, peer, nobody };

  std::string address;
  Answer answer = Answer::nobody;
  std::string why;                       ///< of nobody
  std::optional<double> rtt_s;           ///< of a probe
  double out_mbit_s = 0, in_mbit_s = 0;  ///< of a probe
  std::optional<double> assumed_mbit_s;  ///< each way, by the plan or by what is known of the two sites
};

Finding judge_reach(const PeerFacts& peer);
/// Only if a probe answered.
Finding judge_bandwidth(const PeerFacts& peer);

/// Whether others can dial this machine.
struct DoorFacts {
  std::vector<std::string> own_addresses;  ///< of its interfaces, without loopback
  std::string listen;                      ///< HOST:PORT that was tried; empty: none
  std::optional<std::string> failed;       ///< why the probe could not dial it
  std::string probe;                       ///< address of the probe that tried; empty: nobody did
  std::string provider;                    ///< by --site: "aws"; empty: not known
};

Finding judge_door(const DoorFacts& door);

/// An address that only its own network can dial (RFC 1918, 6598, 4193, link-local).
bool is_private(std::string_view address);

struct NoticeFacts {
  std::string provider;               ///< that firmware or environment names; empty: none
  std::vector<std::string> sources;   ///< that are asked
  std::vector<std::string> warnings;  ///< of those that do not answer
};

Finding judge_notices(const NoticeFacts& notices);

/// The lines of all, the worst at the end of each word: "disk       ok         ...".
std::string render(const std::vector<Finding>& findings);

bool any_hurts(const std::vector<Finding>& findings);

}  // namespace tw::measure
