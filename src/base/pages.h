// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace tw {

/// Memory of whole pages, in which nothing else lies: the driver of a device pins pages.
template <class T>
struct PageAllocator {
  using value_type = T;

  PageAllocator() = default;

  template <class U>
  explicit PageAllocator(const PageAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = (count * sizeof(T) + page - 1) / page;
    void* const memory = std::aligned_alloc(page, pages * page);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t /*count*/) { std::free(memory); }

  bool operator==(const PageAllocator&) const = default;
};

using PagedFloats = std::vector<float, PageAllocator<float>>;

}  // namespace tw
