/* SPDX-License-Identifier: Apache-2.0
 *
 * LD_PRELOAD: each write to a regular file takes SLOW_DISK_MS longer, as on a disk that is busy. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

ssize_t write(int file, const void* data, size_t bytes) {
  static ssize_t (*next)(int, const void*, size_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "write");
  struct stat about;
  const char* const ms = getenv("SLOW_DISK_MS");
  if (ms != NULL && fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
    const long pause_ms = atol(ms);
    const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
  }
  return next(file, data, bytes);
}
