// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated devices, and pinned host memory.
//
// A device's addresses have no memory behind them: the host faults at the first touch. Jobs find the values
// at shadow(address). What nobody has written, or what was freed, is NaN.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sim {

// Thread: any.
class Memory {
 public:
  static constexpr int kDevices = 2;

  Memory();

  // Memory of the stream's device. Freed memory goes to later calls with the same stream and size, after what
  // the stream was given until then: another stream that still reads it has to be named by used_by().
  void* give(int stream, size_t bytes);
  void take_back(void* address);
  void used_by(void* address, int stream);
  int device_of(const void* address) const;  // -1: none

  // Where jobs find the values of a device's address; others stay.
  void* shadow(void* address) const;

  void* pin(size_t bytes);
  void unpin(void* address);  // stops the program if a copy of it is open
  bool is_pinned(const void* address);

  size_t device_bytes();
  size_t pinned_bytes();

 private:
  static constexpr size_t kArena = size_t{1} << 36;  // addresses of each device

  struct Block {
    int stream;
    size_t bytes;
    std::set<int> users;
  };

  std::mutex mutex_;
  char* base_;
  size_t used_[kDevices] = {};
  size_t device_bytes_ = 0, pinned_bytes_ = 0;
  std::map<void*, Block> blocks_;
  std::map<std::pair<int, size_t>, std::vector<void*>> free_;
  std::map<uintptr_t, size_t> pinned_;
};

Memory& memory();

// Where in the program this is asked for: the innermost Python line outside of torch.
std::string place();

}  // namespace sim
