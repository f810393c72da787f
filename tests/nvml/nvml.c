/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for NVIDIA's libnvidia-ml.so.1 on machines without a GPU: a card "GPU-whole", half busy, and a
 * slice "MIG-slice", whose use the driver does not count. TW_NVML_FAILS: there is no driver.
 */
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9 };

struct utilization {
  unsigned gpu, memory;
};

struct memory {
  unsigned long long total, free, used;
};

static char whole, slice;

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = index == 0 ? &whole : &slice;
  return kSuccess;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  strncpy(name, device == &whole ? "Whole" : "Slice", length);
  return kSuccess;
}

int nvmlInit_v2(void) { return getenv("TW_NVML_FAILS") != NULL ? kDriverNotLoaded : kSuccess; }

const char* nvmlErrorString(int result) {
  return result == kNotFound          ? "Not Found"
         : result == kDriverNotLoaded ? "Driver Not Loaded"
                                      : "Unknown Error";
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = strcmp(uuid, "GPU-whole") == 0 ? &whole : strcmp(uuid, "MIG-slice") == 0 ? &slice : NULL;
  return *device != NULL ? kSuccess : kNotFound;
}

int nvmlDeviceGetUtilizationRates(void* device, struct utilization* found) {
  if (device == &slice) return kNotSupported;
  *found = (struct utilization){50, 20};
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, struct memory* found) {
  *found = (struct memory){80000, 60000, 20000};
  (void)device;
  return kSuccess;
}
