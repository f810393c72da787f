// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/board.h"
#include "monitor/fold/seen.h"
#include "wire/status.h"

namespace tw::monitor {

/// USD a GB (1e9 bytes) from one site to another, both provider:region:zone; nothing: not known.
using EgressPrice = std::function<std::optional<double>(const std::string& from, const std::string& to)>;

/// As the first step of the built-in tariffs says.
std::optional<double> usual_egress_price(const std::string& from, const std::string& to);

/// What went from site to site, by the senders' counts, and what it costs.
class Links {
 public:
  explicit Links(EgressPrice price) : price_(std::move(price)) {}

  void take(const Seen& seen);
  void take(PeerId from, const wire::Status& status, double at_s);

  /// runs: whether the line of this peer still counts.
  std::vector<BoardLink> board(double now_s, const std::function<bool(PeerId)>& runs) const;

  wire::LineWord line_of(PeerId peer) const;

  /// What this peer sent, by the site of the receivers.
  std::vector<wire::SiteBytes> sent_by(PeerId peer) const;

  /// Costs of what this peer sent.
  double usd_of(PeerId peer) const;

 private:
  /// What one peer sent to one site.
  struct Way {
    std::uint64_t ended = 0;  ///< by its earlier processes
    std::uint64_t now = 0;    ///< by this one
    double told_s = 0;
    double bytes_per_s = 0;  ///< over the last 10 s or more, which ended then, with so many bytes
    double rated_s = 0;
    std::uint64_t rated_bytes = 0;

    std::uint64_t bytes() const { return ended + now; }
  };

  struct Sender {
    std::string site;
    wire::LineWord line;              ///< of all its links together
    std::map<std::string, Way> ways;  ///< by site of the receivers
    double began_s = 0;               ///< its process
  };

  void tell(Sender& sender, const std::string& to, std::uint64_t bytes, double at_s);
  /// What the lines of the peers at each site carry together; nothing where one of them is not known.
  std::map<std::string, std::optional<wire::LineWord>> lines_by_site(
      const std::function<bool(PeerId)>& runs) const;
  double usd(const std::string& from, const std::string& to, std::uint64_t bytes) const;

  EgressPrice price_;
  std::map<PeerId, Sender> senders_;
};

}  // namespace tw::monitor
