// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::host {

/// The segments of a round are allocated and freed all the time. By default glibc gives each back to the
/// kernel, which clears the pages of the next one again: a third of the time of an all-reduce over loopback.
/// From now on freed memory stays with the process. To be called once, at the start of a program.
void keep_freed_memory();

/// Gives freed memory back to the kernel now, whatever keep_freed_memory() says: a long-running program
/// should call it now and then, or it keeps the memory of its largest burst for ever. Thread-safe;
/// allocations wait meanwhile, about 0.1 s for each GiB.
void return_freed_memory();

}  // namespace tw::host
