// SPDX-License-Identifier: Apache-2.0
// Streams of a simulated device, and two things that hold of them at once: which jobs have run, and what time
// it is.
//
// Order. A job runs when somebody waits for it, or earlier: a seed decides. Nothing runs by itself, so a seed
// repeats a failure. Jobs of one stream run in order; those of two streams in any order that their events
// leave open.
//
// Time. Each job gets its begin and end when it is given to a stream: after the one before it, not before the
// host gave it, and a copy not before the bus is free. The host's time is what its own code took, and its
// waits.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace sim {

// How far each stream has come, by number.
using Clock = std::map<int, uint64_t>;

struct Job {
  std::string what;
  double seconds = 0;
  bool crosses = false;  // between host and device
  std::function<void()> run;
};

// A point of a stream: after all that it was given.
struct Mark {
  int stream = -1;  // -1: nothing to wait for
  Clock clock;
  double at_s = 0;
};

// Host memory that a copy reads or writes, until the host has waited for it.
struct OpenCopy {
  uintptr_t begin, end;
  bool writes;
  int stream;
  uint64_t position;
  std::string place;
  std::function<void()> check;  // stops the program if the source was changed
};

struct Counts {
  int64_t launches = 0, copies = 0, bytes_to_host = 0, bytes_to_device = 0;
  int64_t late_to_pageable =
      0;  // copies to the host that nobody waited for at once, to memory that is not pinned
  int64_t waits = 0, device_waits = 0;
};

enum class Order { kAtOnce, kLate, kRandom, kNewStreamsFirst, kOldStreamsFirst };

// Prints and stops the program.
[[noreturn]] void fault(const std::string& what);

// Thread: any; calls are one at a time.
class Timeline {
 public:
  // The host's clock stands still while one lives: what the simulation costs is nobody's time.
  class Pause {
   public:
    Pause();
    ~Pause();
  };

  // Begins a story: all has run, the time is 0, nothing is counted.
  void begin(uint64_t seed, Order order, bool real_host);

  int make_stream(int device);
  int device_of(int stream);

  // Returns its position. A job may not call the timeline.
  uint64_t give(int stream, Job job);
  Mark mark(int stream);
  void wait(int stream, const Mark& mark);  // the stream waits

  // The host waits.
  void finish(const Mark& mark);
  void finish_stream(int stream);
  void finish_device(int device);
  bool is_done(const Mark& mark);  // also lets something run, so that a loop of it ends

  void open(OpenCopy copy);
  // Copies that the host has not waited for and that have memory in common with this. ordered_on: stream
  // whose order with them is known, or -1.
  const OpenCopy* open_at(uintptr_t begin, uintptr_t end, bool writes, int ordered_on);

  double host_seconds();
  void count_copy(int64_t bytes, bool to_host, bool late_to_pageable);
  Counts counts();

 private:
  struct Stream {
    int device;
    std::deque<Job> left;  // the last one has position given
    uint64_t given = 0;
    Clock clock;
    double free_s = 0;
  };

  void run_until(int stream, uint64_t position);
  void run_one(int stream);
  void let_some_run();
  void learn(const Clock& clock);
  bool host_knows(int stream, uint64_t position) const;

  std::recursive_mutex mutex_;
  std::vector<Stream> streams_;
  std::mt19937_64 random_;
  Order order_ = Order::kAtOnce;
  bool real_host_ = false;
  int pauses_ = 0;
  int64_t left_ns_ = 0;  // when the last pause ended
  double host_s_ = 0, bus_free_s_ = 0;
  Clock host_;  // what the host has waited for
  std::vector<OpenCopy> open_;
  Counts counts_;
};

Timeline& timeline();

}  // namespace sim
