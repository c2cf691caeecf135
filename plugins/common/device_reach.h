/* SPDX-License-Identifier: MIT */
/* device_reach.h: the other devices of the process that can reach the memory of a source's device. A program may copy and use
 * memory of hipMalloc with any device current. Memory of the virtual memory API and of driver pools needs access for
 * each device first, and nobody tells a library which device the program uses next: so all of them get it, always.
 * Access for a device that is not used creates no context there. Compiled into each source that gives such memory. */
#ifndef HIPMM_PLUGINS_COMMON_DEVICE_REACH_H
#define HIPMM_PLUGINS_COMMON_DEVICE_REACH_H

#include <hipmm/plugin.h>
#include <stdbool.h>

enum { DEVICE_REACH_MOST_DEVICES = 64 };

struct reach {
  uint64_t devices; /* bit d: device d; never the source's own */
  bool is_whole;    /* no device of the process is missing */
};

/* For create. With one device in the process, one call of hipGetDeviceCount. */
enum hipmm_status device_reach_find(const struct hipmm_services *services, struct reach *reach_out);

/* Whether a runtime that returned `code` cannot give a device access at all, though hipDeviceCanAccessPeer said that the
 * device reaches the memory. Then the memory is used without, and device_reach_report says so once; any other code is a
 * failure. */
bool device_reach_is_refused(int code);
void device_reach_report(const struct hipmm_services *services, enum hipmm_log_level level, const char *call, int code,
                         int device);

/* The first of the devices, which are not none. */
static inline int device_reach_first(uint64_t devices)
{
  return __builtin_ctzll(devices);
}

static inline uint64_t device_reach_bit(int64_t device)
{
  return device >= 0 && device < DEVICE_REACH_MOST_DEVICES ? UINT64_C(1) << device : 0;
}

#endif
