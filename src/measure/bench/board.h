// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

/// Shared by the processes of `tw bench reduce`, of all compared systems: a start signal, and room for
/// measurements. Header only, because the programs of bench/ include it too.
namespace tw::measure {

inline constexpr int kMostPlaces = 64;
inline constexpr int kMostTurns = 1024;

/// Times of one process in one turn: seconds of CLOCK_MONOTONIC, and CPU seconds.
struct Stamp {
  double begin_s = 0;
  double end_s = 0;
  double cpu_s = 0;
};

/// Lives in a file that all of them map. Turns count from 1. A waiting process sleeps.
struct Board {
  std::atomic<std::uint32_t> released;
  std::atomic<std::uint32_t> ready[kMostPlaces];
  Stamp of[kMostPlaces][kMostTurns];

  /// Reports that this place is ready for the turn and returns once it is released.
  void await(int place, std::uint32_t turn) {
    ready[place].store(turn);
    for (std::uint32_t seen = released.load(); seen < turn; seen = released.load())
      syscall(SYS_futex, &released, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }

  void release(std::uint32_t turn) {
    released.store(turn);
    syscall(SYS_futex, &released, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct Unmap {
  void operator()(Board* board) const { munmap(board, sizeof(Board)); }
};

using MappedBoard = std::unique_ptr<Board, Unmap>;

/// The board in this file; a missing file is made, of zeros.
inline Result<MappedBoard> map_board(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0) {
    if (file >= 0) close(file);
    return Error{"cannot write " + path};
  }
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return Error{"cannot map " + path};
  return MappedBoard(static_cast<Board*>(memory));
}

}  // namespace tw::measure
