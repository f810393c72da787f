// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tw::soak {

/// The hosts of a soak, one to a site: network namespaces joined by tw-wan where this process may have them,
/// else the loopback, where lines cannot be changed. Removed with the object.
class Testbed {
 public:
  /// The topology is written to `file`.
  Testbed(std::string file, std::size_t hosts);
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  bool is_up() const { return is_up_; }

  std::size_t hosts() const { return hosts_; }

  /// Where the process number `slot` of a host listens; the same in each call.
  std::string listen_address(std::size_t host, std::size_t slot) const;

  /// Words in front of a command that is to run on a host.
  std::vector<std::string> enter(std::size_t host) const;

  /// The network namespace of a host, for `ip netns`; empty on the loopback.
  std::string netns(std::size_t host) const;

  static std::string site(std::size_t host) { return {static_cast<char>('a' + host)}; }

  /// `tw-wan FILE WORDS`; false when it fails.
  bool tell(const std::string& words) const;

 private:
  std::string file_;
  std::size_t hosts_;
  bool is_up_ = false;
};

}  // namespace tw::soak
