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

/// Where peers of a run find each other without a server: a node of a distributed hash table, of which every
/// node is one that others can begin with. Holds announcements (host/identity/announcement.h) alone. Has a
/// thread of its own.
class DhtDirectory {
 public:
  struct Identity {
    wire::Token token;
    const Tls& tls;
  };

  /// Over UDP; a port that is taken, or 0, means any free one.
  static Result<std::unique_ptr<DhtDirectory>> open(Identity identity, std::uint16_t udp_port);

  ~DhtDirectory();
  DhtDirectory(const DhtDirectory&) = delete;
  DhtDirectory& operator=(const DhtDirectory&) = delete;

  std::uint16_t port() const;

  /// Addresses of peers, found through the node at this address; waits for at most that long. The error says
  /// whether the node did not answer or nobody of the run is announced.
  Result<std::vector<std::string>> find(const Address& bootstrap, Duration patience);

  /// From now on others find this address, until ten minutes after the end of this object. Once; loop thread.
  void announce(Loop& loop, const std::string& address);

 private:
  struct Node;
  DhtDirectory(Identity identity, std::unique_ptr<Node> node);

  Identity identity_;
  std::unique_ptr<Node> node_;
};

}  // namespace tw::host
