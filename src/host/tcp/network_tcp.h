// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "host/lifeline.h"
#include "host/tcp/admission/doorway.h"
#include "host/tcp/admission/extra_stream.h"
#include "host/tcp/admission/handshake.h"
#include "host/tcp/admission/reception.h"
#include "host/tcp/link.h"
#include "host/tcp/traffic.h"
#include "world/events.h"
#include "world/network.h"
#include "world/random.h"

namespace tw::host {

class Loop;
class Tls;

struct TcpOptions {
  const Tls* tls = nullptr;  ///< null: connections are not encrypted, and anybody may connect
  Duration patience = std::chrono::seconds(10);  ///< how long greetings may take
  int most_streams = StreamCount::kMost;         ///< most data streams of a link that this end wants
};

/// The Network door over TCP: a link is a control connection and data connections (link.h), all from the peer
/// that dialed. Ten seconds for a dial and ten for the greetings after it; the connections that come in go
/// through a Doorway. Loop thread only; outlived by the loop and by the events.
class TcpNetwork : public world::Network {
 public:
  /// Why a connection is no link, in a word and in words; for logs.
  using Refused = std::function<void(event::Cause cause, const std::string& what)>;

  /// on_refused: called for each connection without a valid hello, with the reason.
  TcpNetwork(Loop& loop, PeerId self, world::Random& random, Refused on_refused, TcpOptions options = {});
  ~TcpNetwork() override;
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;

  /// Without an address it only dials, and the address at which others reach it is empty too.
  Result<std::string> open(const std::string& listen_address, world::NetworkEvents& events) override;

  void greet_with(Frame hello) override;  ///< at most 64 KiB of head and of payload

  /// An address that is being dialed already is not dialed twice: both end in the same event.
  void connect(const std::string& address) override;

  void close(PeerId peer) override;
  void send(PeerId to, Frame message) override;
  void pull(PeerId to) override;

  /// Over all links to this peer, past ones included.
  LinkBytes bytes(PeerId peer) const;

  /// Over all connections, those that never became a link included.
  LinkBytes total() const;

  /// Data streams of the open link to this peer; 0: there is none.
  std::size_t data_streams(PeerId peer) const;

  /// All links closed here have sent their queues or given up: the process may end now.
  bool flushed() const { return departures_.empty(); }

 private:
  struct Greeted {
    std::unique_ptr<Handshake> handshake;
    std::vector<std::string> dialed;  ///< addresses whose dials end with this handshake
    Instant since{};
    std::optional<Doorway::Visitor> visitor{};  ///< a connection that came in
    event::Cause cause = event::Cause::broken;  ///< if it fails
  };

  struct Departure {
    PeerId peer;
    Link::Streams streams;
  };

  using Serial = std::uint64_t;

  void limit_time(Serial serial, Instant end);
  void know(const std::string& address);
  // owners: see stream.h
  void greet_stranger(Doorway::Visitor visitor, asio::ip::tcp::socket socket);
  void dismiss(Doorway::Visitor visitor, Doorway::Reason reason);
  void turned_away(const std::string& remote, std::optional<Doorway::Reason> reason);
  void on_admitted(Serial serial);
  void on_news(Serial serial, Handshake::News news);
  void dial_bulk(Serial serial);
  void join_bulk(Serial serial);
  void open_link(Serial serial);
  void share_line();  ///< the number of links has changed
  void dial_streams(PeerId peer, std::uint64_t nonce, int streams);
  // owners: see stream.h
  void join_link(const ExtraStream::Tie& tie, PeerId peer, std::shared_ptr<Stream> stream);
  void on_joined(Serial serial, PeerId peer, std::uint64_t nonce, bool accepted);
  Link* link_of(PeerId peer, std::uint64_t nonce);  ///< null when it is gone
  void on_failed(Serial serial);
  void settle_duplicate(Greeted& greeted);
  void forget(Serial serial);
  void lose(PeerId peer, const std::string& why);
  void settle(Serial departure);
  void retire(std::unique_ptr<StreamUser> gone);

  Loop& loop_;
  PeerId self_;
  world::Random& random_;
  Refused on_refused_;
  TcpOptions options_;
  world::NetworkEvents* events_ = nullptr;
  Frame hello_;
  Serial last_serial_ = 0;
  std::optional<Reception> reception_;
  std::unique_ptr<Doorway> door_;
  std::map<Serial, Greeted> handshakes_;
  std::map<PeerId, std::unique_ptr<Link>> links_;
  std::map<Serial, std::unique_ptr<ExtraStream>> extra_streams_;
  std::map<Serial, Departure> departures_;
  std::map<PeerId, LinkBytes> past_;  ///< of closed links
  LinkBytes never_linked_;            ///< of the connections that ended before they were a link
  std::vector<std::unique_ptr<StreamUser>> retired_;  ///< may be on the stack: destroyed from the loop
  Lifeline life_;
};

}  // namespace tw::host
