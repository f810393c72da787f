// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "wan/netns.h"

namespace tw::wan {

/// The network card of a host: a TUN device in its namespace, gone when this is. Frames are as packet.h has
/// them.
class Tun {
 public:
  struct Options {
    std::string address;  ///< IPv4; the whole of 10.77.0.0/16 is behind the device
    int mtu = 1500;
    bool offloads = true;  ///< TSO: one frame stands for up to 64 KiB of packets
  };

  /// Made in the namespace of this thread.
  static Result<Tun> open(const Options& options);

  int fd() const { return fd_.get(); }

  /// Bytes of the next frame, 0 when there is none.
  std::size_t read(std::span<std::byte> frame) const;
  void write(std::span<const std::byte> frame) const;

  Status set_offloads(bool on) const;

  /// Frames of the host that were dropped because they were not read in time.
  std::uint64_t unread() const;

 private:
  Tun(Fd fd, Fd statistics) : fd_(std::move(fd)), statistics_(std::move(statistics)) {}

  Fd fd_;
  Fd statistics_;  ///< /proc/net/dev of its namespace
};

}  // namespace tw::wan
