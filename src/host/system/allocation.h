// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::host {

/// Segments of a round, and the tensors of a program that trains on the CPU, are allocated and freed all the
/// time. By default glibc gives each back to the kernel, which clears the pages of the next one again: a
/// third of the time of an all-reduce over loopback, and of a convolutional net's step. From now on freed
/// memory stays with the process, unless its environment chooses (MALLOC_TRIM_THRESHOLD_,
/// MALLOC_MMAP_THRESHOLD_, MALLOC_ARENA_MAX, GLIBC_TUNABLES). Threads that start later share one arena.
void keep_freed_memory();

/// Gives freed memory back to the kernel now, whatever keep_freed_memory() says: a long-running program
/// should call it now and then, or it keeps the memory of its largest burst for ever. Thread-safe;
/// allocations wait meanwhile, about 0.1 s for each GiB.
void return_freed_memory();

}  // namespace tw::host
