// SPDX-License-Identifier: Apache-2.0
// The simulated devices as PyTorch's PrivateUse1: which is current, and its streams.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <atomic>

namespace sim {

// Those of the calling thread.
int current_device();
int current_stream(int device);

int number_of(const c10::Stream& stream);  // in the timeline
c10::Allocator* device_allocator();

// Whether sources of copies are summed up, to see that nobody changes them meanwhile: slow for large ones.
extern std::atomic<bool> checks_sources;

}  // namespace sim
