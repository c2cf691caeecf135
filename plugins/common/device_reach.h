/* SPDX-License-Identifier: MIT */
/* device_reach.h: the other devices of the process that can access the memory of a source's device. With memory of
 * hipMalloc, a program may copy and compute with any device current. Memory of the virtual memory API and of driver pools
 * needs access rights for each device first, and a library cannot know which device the program uses next: so all devices
 * always get access, unless devices are announced (struct hipmm_services). Access for a device that is not used creates
 * no context there. Compiled into each source of such memory. */
#ifndef HIPMM_PLUGINS_COMMON_DEVICE_REACH_H
#define HIPMM_PLUGINS_COMMON_DEVICE_REACH_H

#include <hipmm/plugin.h>
#include <stdbool.h>

enum { DEVICE_REACH_MOST_DEVICES = 64 };

struct device_reach {
  uint64_t devices; /* bit d: device d; without the source's own device */
  uint64_t others;  /* the same of all other devices, which reach the host's memory */
  bool is_whole;    /* every device of the process is in `devices` */
};

/* Called on creation. With one device in the process it makes one HIP call, hipGetDeviceCount. */
enum hipmm_status device_reach_find(const struct hipmm_services *services, struct device_reach *reach_out);

/* Whether `code` says that the runtime cannot give a device access at all, although hipDeviceCanAccessPeer said that the
 * device reaches the memory. Then the memory is used without access, and device_reach_report() logs it once. Any other
 * code is a failure. */
bool device_reach_is_refused(int code);
void device_reach_report(const struct hipmm_services *services, enum hipmm_log_level level, const char *call, int code,
                         int device);

/* The first of `devices`, which is not 0. */
static inline int device_reach_first(uint64_t devices)
{
  return __builtin_ctzll(devices);
}

static inline uint64_t device_reach_bit(int64_t device)
{
  return device >= 0 && device < DEVICE_REACH_MOST_DEVICES ? UINT64_C(1) << device : 0;
}

#endif
