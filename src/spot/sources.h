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

/// Which sources are asked (--notices), and how long a notice without a deadline lasts (--grace).
struct NoticeOptions {
  enum class Ask {
    automatic,  ///< the provider whose firmware the machine has, if any
    aws,
    gcp,
    azure,
    file,
    signal,  ///< nobody: signals alone
    none,    ///< nobody, and signals are no notices either
  };

  Ask ask = Ask::signal;
  std::string path{};  ///< of the file, absolute
  Duration grace = std::chrono::seconds(25);
};

/// The cloud that lends this machine, as its firmware says. Nothing: not known, and nobody is to be asked.
std::optional<Source> provider_of(const world::MachineSigns& signs);

/// Those that are to be asked; perhaps none.
std::vector<std::unique_ptr<NoticeSource>> sources_of(const NoticeOptions& options,
                                                      const world::MachineSigns& signs);

/// What signals mean.
Signals::Options signals_of(const NoticeOptions& options, const world::MachineSigns& signs);

}  // namespace tw::spot
