// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <new>
#include <vector>

#include "base/check.h"

/// Several processes of one program that measure together.
namespace tw::bench {

/// A T that processes forked from now on share with this one, until they end.
template <class T>
T& shared_with_forks() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TW_CHECK(memory != MAP_FAILED);
  return *new (memory) T();
}

/// Lies in shared memory. A waiting process sleeps.
class Barrier {
 public:
  void set(int ranks) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    TW_CHECK(pthread_barrier_init(&barrier_, &attributes, static_cast<unsigned>(ranks)) == 0);
  }

  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_{};
};

/// Calls body(rank) in `ranks` processes; this one is rank 0. Returns whether all returned true in time. Call
/// it before there is a second thread.
inline bool in_processes(int ranks, unsigned limit_seconds, const std::function<bool(int rank)>& body) {
  std::vector<pid_t> children;
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    TW_CHECK(child >= 0);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(limit_seconds);
      _exit(body(rank) ? 0 : 1);
    }
    children.push_back(child);
  }
  alarm(limit_seconds);
  bool well = body(0);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return well;
}

}  // namespace tw::bench
