// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/identity/tls.h"
#include "host/loop.h"
#include "host/system/random_os.h"
#include "host/tcp/network_tcp.h"
#include "market/network.h"
#include "measure/doctor/findings.h"

/// Measures what the run's own links carry between hosts: round trip, and bytes in both directions at once.
namespace tw::measure {

struct ProbeOptions {
  market::Site site;
  std::string listen;                       ///< empty: only dials
  std::unique_ptr<host::Tls> tls;           ///< nothing: --insecure
  Duration time = std::chrono::seconds(1);  ///< of a pair; its second half counts
};

/// One end of a probe. Answers others while it serves; the asking end measures a pair of hosts for each pair
/// of sites.
class Probe : public world::NetworkEvents {
 public:
  explicit Probe(ProbeOptions options);

  /// Begins to listen: the address.
  Result<std::string> open();

  /// Answers until the loop is stopped (a signal).
  void serve();

  /// Rows for all pairs of the sites of these peers and of this one; within a site if it has two.
  Result<market::NetworkProfile> measure_all(const std::vector<std::string>& addresses);

  /// The peer that answers at an address; for a probe also the round trip and the rate each way. nullopt in
  /// assumed_mbit_s.
  PeerFacts meet(const std::string& address);

  /// How far the clock of the probe at this address is ahead of this machine's. Nothing: not known.
  std::optional<double> skew_s(const std::string& address);

  /// Asks the probe at `address` to dial `own`, where this one listens. Returns why it cannot; nothing: it
  /// can.
  std::optional<std::string> refusal_of(const std::string& address, const std::string& own);

  /// The site of a probe that meet() reached.
  market::Site site_of(const std::string& address) const;

  world::Admission admit(const Frame& hello) override;
  void on_open(PeerId peer, const Frame& hello) override;
  void on_message(PeerId from, Frame frame) override;
  void on_close(PeerId peer, const std::string& why) override;
  void on_refused(const std::string& address, const world::DialFailure& failure) override;
  std::optional<Frame> next_bulk(PeerId to) override;

 private:
  struct Other {
    std::string address;  ///< as it was dialed; empty: it dialed
    market::Site site;
    bool sends = false;               ///< bulk goes there
    double received_bytes = 0;        ///< of the present measurement
    double half_bytes = 0;            ///< of its first half
    std::optional<double> pong_s;     ///< the last round trip
    std::optional<std::string> told;  ///< "received ..." or "measured ..." or "failed ..."
  };

  /// One pair, in both directions.
  struct Measured {
    double rtt_s = 0;
    double out_bytes_per_s = 0;
    double in_bytes_per_s = 0;
    int streams = 1;
  };

  struct Host {
    PeerId peer;  ///< this one for itself
    market::Site site;
    std::string address;
  };

  /// Why a dial failed.
  struct Refusal {
    std::string why;
    world::DialFailure::Kind kind{};
    bool is_stranger = false;  ///< its token is none of this run
  };

  Result<PeerId> dial(const std::string& address);
  Result<Measured> measure(PeerId peer);
  Result<Measured> measure_between(const Host& a, const Host& b);
  Result<double> round_trip_s(PeerId peer);
  void begin_stream(PeerId peer, bool report);
  void answer(PeerId from, const std::string& address);
  void say(PeerId to, const std::string& words);
  Result<std::string> told_by(PeerId peer, Duration limit);

  ProbeOptions options_;
  host::Loop loop_;
  host::OsRandom random_;
  PeerId self_;
  Frame piece_;
  host::TcpNetwork network_;
  std::map<PeerId, Other> others_;
  std::map<std::string, Refusal> refused_;            ///< by address
  std::optional<PeerId> opened_;                      ///< the last link
  std::deque<std::pair<PeerId, std::string>> asked_;  ///< to measure: by whom, which address
  bool stopped_ = false;
};

}  // namespace tw::measure
