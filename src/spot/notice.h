// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

/// Notices: announcements by clouds, schedulers and people that a machine will be taken away. Input: answers
/// of metadata services (by the Http door), lines of a file, and signals. Output: notices with their
/// deadlines. Every source is a step machine, which reads no clock and opens no socket (notice_source.h);
/// peer/ runs them on the loop thread. The session (train/) acts on notices. docs/launch.md lists what each
/// provider announces and when.
namespace tw::spot {

enum class NoticeKind {
  preempt,      ///< the machine goes at the deadline
  at_risk,      ///< it may be taken soon: nothing is certain, and there is no deadline
  maintenance,  ///< it stops at the deadline, or the process on it does; the machine may come back
  freeze,       ///< it stands still for some seconds from the deadline on, and goes on
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 4> kNoticeKinds = {"preempt", "at_risk", "maintenance",
                                                                 "freeze"};

inline std::string_view name_of(NoticeKind kind) { return kNoticeKinds.at(static_cast<std::size_t>(kind)); }

std::optional<NoticeKind> notice_kind_named(std::string_view name);

/// The process on the machine will end.
constexpr bool goes(NoticeKind kind) {
  return kind == NoticeKind::preempt || kind == NoticeKind::maintenance;
}

/// Where a notice comes from.
enum class Source {
  signal,      ///< SIGTERM, SIGHUP, SIGUSR1 or SIGUSR2 from anybody
  slurm,       ///< the same signals in a Slurm job
  kubernetes,  ///< the same signals in a pod
  aws,
  gcp,
  azure,
  file,
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 7> kSources = {"signal", "slurm", "kubernetes", "aws",
                                                             "gcp",    "azure", "file"};

inline std::string_view name_of(Source source) { return kSources.at(static_cast<std::size_t>(source)); }

struct Notice {
  Source source{};
  NoticeKind kind{};
  Instant deadline = kNever;  ///< kNever: only at_risk
  std::string text{};         ///< words of the source, for people

  bool operator==(const Notice&) const = default;
};

/// "aws: preempt in 118 s (spot instance action terminate)".
std::string text_of(const Notice& notice, Instant now);

}  // namespace tw::spot
