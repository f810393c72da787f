// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "timeline.h"

namespace sim {
namespace {

constexpr size_t kAlignment = 512;
struct sigaction before;

void touched(int, siginfo_t* info, void*) {
  static constexpr char kText[] = "sim: the host touches memory of the device\n";
  if (memory().device_of(info->si_addr) >= 0) {
    const ssize_t written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
    static_cast<void>(written);
  }
  // It faults again there: Python's own handler names the lines of all threads.
  sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

Memory& memory() {
  static auto* one = new Memory;  // tensors that outlive main() come here
  return *one;
}

Memory::Memory() {
  const size_t all = 2 * kDevices * kArena;
  void* found = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) fault("no room for the addresses of the devices");
  base_ = static_cast<char*>(found);
  if (mprotect(base_ + all / 2, all / 2, PROT_READ | PROT_WRITE) != 0) fault("no memory for the devices");
  struct sigaction action = {};
  action.sa_sigaction = touched;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
}

void* Memory::shadow(void* address) const {
  return device_of(address) < 0 ? address : static_cast<char*>(address) + kDevices * kArena;
}

int Memory::device_of(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  return at < base_ || at >= base_ + kDevices * kArena ? -1 : static_cast<int>((at - base_) / kArena);
}

void* Memory::give(int stream, size_t bytes) {
  if (bytes == 0) return nullptr;
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const int device = timeline().device_of(stream);
  void* address = nullptr;
  {
    std::lock_guard lock(mutex_);
    device_bytes_ += bytes;
    auto& same = free_[{stream, bytes}];
    if (!same.empty()) {
      address = same.back();
      same.pop_back();
      blocks_[address] = {stream, bytes, {}};
      return address;
    }
    if (used_[device] + bytes > kArena) fault("the device is out of addresses");
    address = base_ + device * kArena + used_[device];
    used_[device] += bytes;
    blocks_[address] = {stream, bytes, {}};
  }
  timeline().give(stream,
                  {"poison", 0, false, [to = shadow(address), bytes] { std::memset(to, 0xff, bytes); }});
  return address;
}

void Memory::take_back(void* address) {
  if (address == nullptr) return;
  Block block;
  {
    std::lock_guard lock(mutex_);
    block = blocks_.at(address);
    blocks_.erase(address);
    device_bytes_ -= block.bytes;
  }
  for (const int user : block.users) timeline().wait(block.stream, timeline().mark(user));
  const auto poison = [to = shadow(address), bytes = block.bytes] { std::memset(to, 0xff, bytes); };
  timeline().give(block.stream, {"poison", 0, false, poison});
  std::lock_guard lock(mutex_);
  free_[{block.stream, block.bytes}].push_back(address);
}

void Memory::used_by(void* address, int stream) {
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return;
  --block;
  if (block->second.stream != stream) block->second.users.insert(stream);
}

void* Memory::pin(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* address = nullptr;
  if (posix_memalign(&address, 4096, bytes) != 0) fault("no pinned memory");
  std::memset(address, 0xff, bytes);
  std::lock_guard lock(mutex_);
  pinned_[reinterpret_cast<uintptr_t>(address)] = bytes;
  pinned_bytes_ += bytes;
  return address;
}

void Memory::unpin(void* address) {
  if (address == nullptr) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  size_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    bytes = pinned_.at(begin);
    pinned_.erase(begin);
    pinned_bytes_ -= bytes;
  }
  if (const OpenCopy* copy = timeline().open_at(begin, begin + bytes, true, -1))
    fault("pinned memory is freed at " + place() + ", and the copy begun at " + copy->place + " is open");
  std::free(address);
}

bool Memory::is_pinned(const void* address) {
  std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto found = pinned_.upper_bound(at);
  if (found == pinned_.begin()) return false;
  --found;
  return at < found->first + found->second;
}

size_t Memory::device_bytes() {
  std::lock_guard lock(mutex_);
  return device_bytes_;
}

size_t Memory::pinned_bytes() {
  std::lock_guard lock(mutex_);
  return pinned_bytes_;
}

}  // namespace sim
