// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace tw::soak {

/// A small file system of its own for each host, which can be filled to the last byte. Where this process may
/// not mount, plain folders that never fill up. Unmounted with the object.
class Disks {
 public:
  /// host-0, host-1 ... below `folder`.
  Disks(std::string folder, std::size_t hosts);
  ~Disks();
  Disks(const Disks&) = delete;
  Disks& operator=(const Disks&) = delete;

  bool can_fill() const { return mounted_; }

  std::string folder(std::size_t host) const;

  /// Nothing more can be written there; false when the filling failed.
  bool fill(std::size_t host) const;
  void free(std::size_t host) const;

  /// Copies what the disks hold to `target`, for a look at it after the object is gone.
  void keep(const std::string& target) const;

 private:
  std::string folder_;
  std::size_t hosts_;
  bool mounted_ = false;
};

}  // namespace tw::soak
