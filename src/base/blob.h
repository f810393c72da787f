// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tw {

/// An owned byte buffer to be written, not initialised.
class Buffer {
 public:
  Buffer() = default;

  explicit Buffer(std::size_t size)
      : bytes_(size == 0 ? nullptr : std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}

  Buffer(Buffer&& other) noexcept : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}

  Buffer& operator=(Buffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::span<std::byte> bytes() { return {bytes_.get(), size_}; }

  std::size_t size() const { return size_; }

 private:
  friend class Blob;

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

/// Immutable bytes, cheap to copy. One segment is kept by its reducer and queued for several links at the
/// same time, so its owners are counted.
class Blob {
 public:
  Blob() = default;

  // owners: every copy of this Blob
  explicit Blob(Buffer buffer) : bytes_(std::move(buffer.bytes_)), size_(buffer.size_) {}

  explicit Blob(std::vector<std::byte> bytes) : size_(bytes.size()) {
    // owners: every copy of this Blob
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    bytes_ = std::shared_ptr<const std::byte[]>(owner, owner->data());  // owners: as above
  }

  /// A view of bytes of another owner, which must not change while a copy of this Blob lives. If `owner` is
  /// given, it keeps them alive.
  // owners: whoever made the bytes, and every copy of this Blob
  static Blob view(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
    Blob blob;
    blob.bytes_ = std::shared_ptr<const std::byte[]>(owner, bytes.data());  // owners: as above
    blob.size_ = bytes.size();
    return blob;
  }

  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

  std::size_t size() const { return size_; }

  bool empty() const { return size_ == 0; }

 private:
  // owners: every copy of this Blob
  std::shared_ptr<const std::byte[]> bytes_;
  std::size_t size_ = 0;
};

/// A whole message as it crosses a link: a small head and, for bulk messages, a payload that is not copied.
struct Frame {
  Blob head;
  Blob payload;

  std::size_t size() const { return head.size() + payload.size(); }
};

}  // namespace tw
