// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tw {

/// Immutable bytes, cheap to copy. One segment is at the same time in the keep of its reducer and in the send
/// queues of several links, so its owners are counted.
class Blob {
 public:
  Blob() = default;

  // owners: every copy of this Blob
  explicit Blob(std::vector<std::byte> bytes)
      : bytes_(std::make_shared<const std::vector<std::byte>>(std::move(bytes))) {}

  std::span<const std::byte> bytes() const {
    return bytes_ ? std::span<const std::byte>(*bytes_) : std::span<const std::byte>();
  }

  std::size_t size() const { return bytes_ ? bytes_->size() : 0; }

  bool empty() const { return size() == 0; }

 private:
  // owners: every copy of this Blob
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

/// A whole message as it crosses a link: a small head and, for bulk messages, a payload that is not copied.
struct Frame {
  Blob head;
  Blob payload;

  std::size_t size() const { return head.size() + payload.size(); }
};

}  // namespace tw
