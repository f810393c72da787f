// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/board/board.h"
#include "monitor/fold/seen.h"
#include "wire/status.h"

namespace tw::monitor {

/// USD a GB (1e9 bytes) from one site to another, both provider:region:zone; nothing: not known.
using EgressPrice = std::function<std::optional<double>(const std::string& from, const std::string& to)>;

/// By the first step of the built-in tariffs. One of them may be a store of the catalog, too.
std::optional<double> usual_egress_price(const std::string& from, const std::string& to);

/// USD for a million requests to read from a store, and to write into it or list it; nothing: not known.
struct RequestPrices {
  std::optional<double> reads, writes;
};

RequestPrices usual_request_prices(const std::string& store);

/// Traffic from site to site, by the senders' counts, and from and to stores, by the peers' counts, with its
/// cost.
class Links {
 public:
  explicit Links(EgressPrice price) : price_(std::move(price)) {}

  void take(const Seen& seen);
  void take(PeerId from, const wire::Status& status, double at_s);

  /// The bandwidth of the peers that run bounds the links.
  std::vector<BoardLink> board(double now_s, const std::vector<BoardPeer>& peers) const;

  /// The traffic of this peer alone, without prices and rates; the links with the most bytes first.
  std::vector<BoardLink> links_of(PeerId peer) const;

  struct Usd {
    double bytes = 0, requests = 0;
  };

  /// Cost of this peer's traffic and its use of stores.
  Usd usd_of(PeerId peer) const;

 private:
  /// Traffic of one peer to one site, or from or to a store; or its requests.
  struct Way {
    std::uint64_t ended = 0;  ///< by its earlier processes
    std::uint64_t now = 0;    ///< by this one
    double told_s = 0;
    double bytes_per_s = 0;  ///< over the last 10 s or more, with their end and bytes
    double rated_s = 0;
    std::uint64_t rated_bytes = 0;

    std::uint64_t total() const { return ended + now; }
  };

  struct StoreWays {
    Way bytes, reads, written_bytes, writes;

    std::array<Way*, 4> all() { return {&bytes, &reads, &written_bytes, &writes}; }
  };

  struct Sender {
    std::string site;
    std::map<std::string, Way> ways;  ///< by site of the receivers
    std::map<std::string, StoreWays> stores;
    double began_s = 0;  ///< its process
  };

  /// Traffic in one direction: between sites, or between a site and a store.
  struct Flow {
    const std::string& from;
    const std::string& to;
    const Way& bytes;
    const std::string& store;       ///< empty: none
    const Way* requests = nullptr;  ///< to read, or to write and list; with a store
  };

  static std::vector<Flow> flows_of(const Sender& sender);

  /// Prices of a flow between these ends; nothing: not known.
  struct Price {
    std::optional<double> usd_per_gb, usd_per_million_requests;

    std::optional<double> of_bytes(std::uint64_t bytes) const;
    std::optional<double> of_requests(std::uint64_t requests) const;
  };

  /// The store is one of the ends; empty: both are sites.
  Price price_between(const std::string& from, const std::string& to, const std::string& store) const;

  static void tell(const Sender& sender, Way& way, std::uint64_t bytes, double at_s);
  static void tell_of(Sender& sender, const event::Traffic& traffic, double at_s);

  /// Total bandwidth of the peers of a site, Mbit/s. Nothing: that of one peer is not known, for no transfer
  /// has filled its line yet.
  struct SiteLine {
    std::optional<double> up_mbit_s = 0, down_mbit_s = 0;
  };

  static std::map<std::string, SiteLine> lines_by_site(const std::vector<BoardPeer>& peers);

  EgressPrice price_;
  std::map<PeerId, Sender> senders_;
};

}  // namespace tw::monitor
