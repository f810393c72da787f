// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "wan/control.h"
#include "wan/fabric.h"
#include "wan/load.h"
#include "wan/netns.h"
#include "wan/testbed.h"
#include "wan/topology.h"

namespace tw::wan {

/// The delay box: moves packets between the devices of a testbed when the fabric says so, and answers
/// requests at its socket. One thread.
class Box {
 public:
  Box(Topology topology, Testbed testbed, Fd listener);

  /// Runs until a request to end, SIGTERM or SIGINT.
  Status run();

 private:
  Status watch();
  Status watch(int fd, std::uint64_t key);
  void wait();
  void attend(std::uint64_t key);
  void read_host(std::size_t host);
  void accept_client();
  void end_second(Instant now);

  Result<std::string> answer(const std::string& request);
  Result<std::string> set_link(const std::string& request);
  Result<std::size_t> find_site(const std::string& name) const;
  std::string status() const;

  Topology topology_;
  std::vector<Tun> tuns_;
  Fd listener_, signals_, epoll_;
  std::map<std::uint64_t, Client> clients_;
  Fabric fabric_;
  Load load_;
  Frame spare_;                         ///< what the next frame is read into
  std::vector<std::uint64_t> carried_;  ///< bytes of each pair when the second began
  std::vector<double> bit_s_;
  std::uint64_t unread_ = 0;
  std::uint64_t wire_bytes_ = 0;
  Instant began_, second_began_;
  Duration cpu_then_{};
  bool ends_ = false;
};

}  // namespace tw::wan
