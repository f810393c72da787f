// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "market/site.h"

/// Network rates and round trips between sites.
namespace tw::market {

/// Path from a host of one site to a host of another or the same site; 0: not known.
struct PathRate {
  double rtt_s = 0;
  double stream_bytes_per_s = 0;  ///< rate of one TCP stream: its window / RTT, or the hosts' limit
  double path_bytes_per_s = 0;    ///< the most that many streams reach together
  std::string source;
  std::int64_t as_of_unix_s = 0;
  bool measured = true;  ///< false: estimated from other paths

  bool operator==(const PathRate&) const = default;
};

/// Limits of what one host sends or receives, and of what all hosts of a site send to other sites together.
struct SiteCaps {
  double host_bytes_per_s = 0;  ///< 0: not known
  double site_bytes_per_s = 0;  ///< 0: no limit known
  std::string source;           ///< of site_bytes_per_s; the hosts' is that of the path within the site
  std::int64_t as_of_unix_s = 0;

  bool operator==(const SiteCaps&) const = default;
};

class NetworkProfile {
 public:
  /// The measurements of Erben et al. 2024 (tables 3, 4 and 5, and with many streams), and round trips
  /// between regions of AWS, Azure and GCP (skyplane, April 2022).
  static const NetworkProfile& built_in();

  /// CSV with the columns a,b,rtt_ms: round trips between regions, the same both ways.
  Status add_round_trips(const std::string& file, std::string_view text);

  /// Rows of `other` replace those of the same sites.
  void merge(const NetworkProfile& other);

  /// The nearest row: of the pair itself or its regions; else from the round trip between the regions; else
  /// of their areas (gcp:us for gcp:us-central1). A row may count in the other direction. Without a row the
  /// values are estimated, measured = false. Never fails.
  PathRate path(const Site& from, const Site& to) const;

  SiteCaps caps(const Site& site) const;

  double rtt_s(const Site& from, const Site& to) const { return path(from, to).rtt_s; }

  /// Rate from host to host: min(caps of the hosts, rate of the path, streams * window / RTT).
  double bytes_per_s(const Site& from, const Site& to, int streams) const;

  /// From a site to itself it also sets what its hosts reach.
  void set(const Site& from, const Site& to, PathRate rate);

  /// Limits what all hosts of a site together send to other sites.
  void limit(const Site& site, double bytes_per_s, const std::string& source, std::int64_t as_of_unix_s);

  const std::map<std::pair<Site, Site>, PathRate>& paths() const { return paths_; }

  const std::map<Site, SiteCaps>& all_caps() const { return caps_; }

 private:
  const PathRate* row(const std::vector<Site>& froms, const std::vector<Site>& tos) const;
  PathRate estimate(const Site& from, const Site& to) const;
  double host_cap(const Site& site) const;

  std::map<std::pair<Site, Site>, PathRate> paths_;
  std::map<Site, SiteCaps> caps_;
  std::map<std::pair<Site, Site>, double> round_trips_s_;  ///< of regions, the lesser first
};

/// CSV with the columns from,to,rtt_ms,stream_mbit_s,path_mbit_s,source,as_of. A row from a site to itself
/// gives the rate of its hosts; a row to * what all of them together send to other sites.
Result<NetworkProfile> read_network(const std::string& file, std::string_view text);
std::string write_network(const NetworkProfile& profile);

}  // namespace tw::market
