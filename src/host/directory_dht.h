// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/address.h"
#include "wire/token.h"

namespace tw::host {

class Loop;
class Tls;

/// Lets peers of a run find each other without a server: a node of a distributed hash table; others can begin
/// with any node. It holds only announcements (host/identity/announcement.h). Has a thread of its own.
class DhtDirectory {
 public:
  struct Identity {
    wire::Token token;
    const Tls& tls;
  };

  /// Whether this build has OpenDHT (TW_DHT); the others open none.
  static bool available();

  /// Over UDP; a port that is taken, or 0, means any free one.
  static Result<std::unique_ptr<DhtDirectory>> open(Identity identity, std::uint16_t udp_port);

  ~DhtDirectory();
  DhtDirectory(const DhtDirectory&) = delete;
  DhtDirectory& operator=(const DhtDirectory&) = delete;

  std::uint16_t port() const;

  /// Addresses of peers, found through the node at this address; waits at most for the limit. The error says
  /// whether the node did not answer, or no peer of the run is announced.
  Result<std::vector<std::string>> find(const Address& bootstrap, Duration patience);

  /// Announces this address until ten minutes after the end of this object. Call once; loop thread.
  void announce(Loop& loop, const std::string& address);

 private:
  struct Node;
  DhtDirectory(Identity identity, std::unique_ptr<Node> node);

  Identity identity_;
  std::unique_ptr<Node> node_;
};

}  // namespace tw::host
