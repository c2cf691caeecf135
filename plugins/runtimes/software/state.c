/* SPDX-License-Identifier: MIT */
/* state.c: the state of the whole software device, and the current device of each thread. Read and written by every
 * file. It calls no other file. */
#include "internal.h"

const struct software_config software_defaults = {.devices = 1,
                                                  .memory_bytes = (size_t)16 << 30,
                                                  .host_memory_bytes = (size_t)64 << 30,
                                                  .scheduler = SOFTWARE_THREADS,
                                                  .virtual_memory = true,
                                                  .memory_pools = true,
                                                  .managed_memory = true,
                                                  .peer_group = SOFTWARE_MAX_DEVICES,
                                                  .granularity_bytes = (size_t)2 << 20};

struct software_state software = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .progress = PTHREAD_COND_INITIALIZER,
                                  .n_devices = 1,
                                  .host_heap = {.device = -1}};

static _Thread_local int state_current_device;
static _Thread_local hipStreamCaptureMode state_capture_mode; /* hipStreamCaptureModeGlobal at first */

void software_state_configure(const struct software_config *config)
{
  software.config = *config;
  software.random = config->seed;
  atomic_store(&software.n_devices, config->devices);
}

void software_state_reset_device(int index)
{
  struct software_device *device = &software.devices[index];
  device->heap.device = index;
  device->faults = 0;
  device->fault = hipSuccess;
  for (int peer = 0; peer < SOFTWARE_MAX_DEVICES; peer++)
    device->peers[peer] = software.devices[peer].peers[index] = false;
  device->flags = hipDeviceScheduleAuto;
  device->stack_bytes = (size_t)1 << 10;
  device->heap_bytes = (size_t)8 << 20;
}

int software_current_device(void)
{
  return software_device_exists(state_current_device) ? state_current_device : 0;
}

void software_set_current_device(int device)
{
  state_current_device = device;
}

hipStreamCaptureMode software_capture_mode(void)
{
  return state_capture_mode;
}

hipStreamCaptureMode software_exchange_capture_mode(hipStreamCaptureMode mode)
{
  hipStreamCaptureMode before = state_capture_mode;
  state_capture_mode = mode;
  return before;
}

bool software_device_exists(int device)
{
  return device >= 0 && device < atomic_load_explicit(&software.n_devices, memory_order_relaxed);
}

bool software_location_device(struct software_location location, int *device_out)
{
  bool is_device = location.type == SOFTWARE_LOCATION_DEVICE, is_node = location.type == SOFTWARE_LOCATION_HOST_NUMA;
  *device_out = is_device ? location.id : hipCpuDeviceId;
  if (is_device || is_node) return is_device ? location.id >= 0 : location.id == 0;
  return location.type == SOFTWARE_LOCATION_HOST || location.type == SOFTWARE_LOCATION_HOST_NEAR;
}

bool software_device_reaches(int device, int peer)
{
  return device / software.config.peer_group == peer / software.config.peer_group;
}
