// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/virtual/process.h"
#include "world/network.h"

namespace tw::sim {

class VirtualNetwork;

/// A message on its way between ports.
struct Parcel {
  enum class Kind : std::uint8_t { hello, welcome, confirm, frame };

  Frame frame;
  std::uint64_t link = 0;
  int from = 0;
  Kind kind = Kind::frame;
};

/// The network door of one virtual process: greeting, one link a pair, delivery. Ports are known to each
/// other by number; messages between them go through VirtualNetwork, which knows distances, capacities and
/// faults.
///
/// Greeting: hello ->, <- welcome (the other hello), confirm ->. Where two dials meet, the one of the lower
/// port number stands. Each dial ends within kDialTimeout; one that meets a link which was open before is
/// refused.
class Port final : public world::Network {
 public:
  static constexpr Duration kDialTimeout = std::chrono::seconds(3);

  Port(VirtualNetwork& network, Process& process, int number);

  Result<std::string> open(const std::string& listen_address, world::NetworkEvents& events) override;

  void greet_with(Frame hello) override { hello_ = std::move(hello); }

  void connect(const std::string& address) override;
  void close(PeerId peer) override;
  void send(PeerId to, Frame message) override;
  void pull(PeerId to) override;

  int number() const { return number_; }

  std::string address() const;

  Process& process() { return process_; }

  bool listening() const { return events_ != nullptr; }

  /// Ports of the links that are open here.
  std::vector<int> linked() const;

 private:
  friend class VirtualNetwork;

  using Failed = world::DialFailure::Kind;

  enum class Stage { dialing, accepted, open };

  struct Link {
    std::uint64_t id = 0;
    Stage stage = Stage::dialing;
    PeerId peer;
    std::string dialed;           ///< address, when this side waits for the end of a dial
    Frame hello;                  ///< of the other side, until the link is open
    bool pulled = false;          ///< the user may have bulk messages
    bool pumping = false;         ///< a call of pump() is scheduled
    bool hole = false;            ///< what is sent on it vanishes
    std::uint64_t swallowed = 0;  ///< bulk bytes in the hole, never acknowledged
  };

  // What arrives from port `from`; each runs inside the process.
  void take(const Parcel& parcel);
  void on_hello(int from, std::uint64_t id, const Frame& hello);
  void on_welcome(int from, std::uint64_t id, const Frame& hello);
  void on_confirm(int from, std::uint64_t id);
  void on_bye(int from, std::uint64_t id, const world::Refusal& why, std::optional<Failed> refused);
  void on_frame(int from, std::uint64_t id, const Frame& frame);

  Frame greeting();
  void carry(int port, const Link& link, Frame frame);
  void carry_bulk(int port, Link& link, Frame frame);
  void say_bye(int port, const Link& link, const world::Refusal& why, std::optional<Failed> refused);
  Instant bulk_room(int port, const Link& link) const;
  bool swallow(int port);

  Link* link_to(int port) const;  ///< null: none
  Link& make_link(int port, Link link);
  std::optional<Link> end_link(int port);
  Link* find(int port, std::uint64_t id) const;
  bool opened(int port, Link& link);  ///< false: and it is gone
  void refuse_later(const std::string& address, const world::DialFailure& failure, Duration delay);
  void expire(int port, std::uint64_t id, const std::string& address);
  void schedule_pump(int port, Link& link, Instant when);
  void pump(int port, std::uint64_t id);

  VirtualNetwork& network_;
  Process& process_;
  int number_;
  world::NetworkEvents* events_ = nullptr;
  Frame hello_;
  std::vector<std::unique_ptr<Link>> links_;  ///< by the port at the other end; null: none
  std::unordered_map<PeerId, int> by_peer_;   ///< the open ones
};

}  // namespace tw::sim
