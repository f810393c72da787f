// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::host {

/// Says that a socket of this process must not live on in forked children: as long as they hold it, the other
/// side does not see this process die.
class ForkGuard {
 public:
  explicit ForkGuard(int descriptor);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  ~ForkGuard() { release(); }

  /// Before the socket is closed: its number may be that of something else soon.
  void release();

 private:
  int place_;
};

/// In a forked child, right after the fork: closes all guarded sockets, without a word to the other sides.
/// Takes no lock. Up to 4,096 sockets are known.
void close_guarded_sockets();

}  // namespace tw::host
