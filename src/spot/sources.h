// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spot/notice_source.h"
#include "spot/signals.h"
#include "world/machine.h"

namespace tw::spot {

/// Sources to poll (--notices), and the length of a notice without a deadline (--grace).
struct NoticeOptions {
  enum class Ask {
    automatic,  ///< the provider that the machine's firmware names, if any
    aws,
    gcp,
    azure,
    file,
    signal,  ///< no source: signals only
    none,    ///< no source, and signals are no notices either
  };

  Ask ask = Ask::signal;
  std::string path{};  ///< of the file, absolute
  Duration grace = std::chrono::seconds(25);
};

/// The cloud of this machine, by its firmware. Nothing: not known, and no source is polled.
std::optional<Source> provider_of(const world::MachineSigns& signs);

/// The sources to poll; may be empty.
std::vector<std::unique_ptr<NoticeSource>> sources_of(const NoticeOptions& options,
                                                      const world::MachineSigns& signs);

/// Options for the meaning of signals.
Signals::Options signals_of(const NoticeOptions& options, const world::MachineSigns& signs);

}  // namespace tw::spot
