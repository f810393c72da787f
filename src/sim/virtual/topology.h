// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/scenarios/between.h"
#include "sim/virtual/network.h"

namespace tw::sim {

/// Machines of one place.
struct SiteSpec {
  std::string name = "site";
  int peers = 8;                     ///< at the beginning
  Between samples_per_s{10, 80};     ///< of one peer
  Between grain = 1;                 ///< microbatches that a peer computes at once
  Between job_s = 0;                 ///< PeerSpec::job
  Between up_bytes_per_s{1e5, 1e7};  ///< bandwidth of a peer
  Between down_bytes_per_s{1e5, 1e7};
  bool anchors = false;          ///< its peers are anchors
  double usd_per_h = 0;          ///< of one peer
  double egress_usd_per_gb = 0;  ///< of what leaves the site

  bool operator==(const SiteSpec&) const = default;
};

/// Paths between peers of two sites (or of one, when both names are the same), each drawn for itself. The
/// names hold in both directions; an empty one fits every site.
struct LinkSpec {
  std::string from, to;
  Between latency_s{1e-4, 0.15};   ///< one way
  Between jitter = 0.2;            ///< share of the latency
  Between bytes_per_s{1e5, 1e7};   ///< of one path
  Between window_bytes = 1 << 14;  ///< caps the rate of one path at window / RTT

  bool fits(const std::string& a, const std::string& b) const {
    const auto is = [](const std::string& name, const std::string& site) {
      return name.empty() || name == site;
    };
    return (is(from, a) && is(to, b)) || (is(from, b) && is(to, a));
  }

  Quality draw(Prng& random) const;

  bool operator==(const LinkSpec&) const = default;
};

/// One machine, as it is.
struct PeerSpec {
  int site = 0;  ///< number in WorldOptions::sites
  double samples_per_s = 50;
  Capacity line;
  std::uint64_t grain = 1;  ///< microbatches at once
  Duration job{};           ///< each job of its compute thread takes this on top; 0: next to nothing

  static PeerSpec draw(Prng& random, const SiteSpec& site, int number);
};

}  // namespace tw::sim
