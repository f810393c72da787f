// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::host {

/// Marks a socket that forked children must not keep: while they hold it, the other side does not notice the
/// death of this process.
class ForkGuard {
 public:
  explicit ForkGuard(int descriptor);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  ~ForkGuard() { release(); }

  /// Call before the socket is closed: its number may be reused soon.
  void release();

 private:
  int place_;
};

/// In a forked child, right after the fork: closes all guarded sockets, without telling the other sides.
/// Takes no lock. Up to 4,096 sockets are known.
void close_guarded_sockets();

}  // namespace tw::host
