/* SPDX-License-Identifier: MIT */
/* peers.h: the device resource itself, and the other devices that may access its memory: all devices that can reach it
 * access mapped memory, and the devices of the option "peers" access memory of hipMalloc. */
#ifndef HIPMM_DEVICE_PEERS_H
#define HIPMM_DEVICE_PEERS_H

#include "../common/device_reach.h"
#include "../common/source.h"

#include <stdatomic.h>

/* A row of the option. */
struct peer {
  int64_t device;
};

struct device_options {
  struct hipmm_list peers;
  uint32_t handle_type; /* HIP's numbers are the indices of device_handle_types */
};

struct device_import; /* import.h */

struct device {
  struct source source;
  bool is_in_reach;           /* of all devices of the process */
  bool is_shared;             /* chunks are created for other processes too */
  atomic_uint_fast64_t peers; /* one bit for each device that gets access to mapped memory */
  struct device_import *_Atomic imports;
};

/* For create: lets each peer reach the memory that hipMalloc gives on this device, now and later. Refuses devices
 * that do not exist or cannot access the memory. */
enum hipmm_status peers_enable(const struct hipmm_services *services, const struct device_options *options);

/* For create: stores which devices reach the memory. */
void peers_open(struct device *device, const struct device_reach *reach);

/* Gives every device that reaches it access to mapped memory; the resource's own is current and has access already. A
 * runtime that cannot give a device access is not asked again for that device, which is logged as a warning; any other
 * failure, such as want of memory for page tables, is the mapping's own, and is reported. */
enum hipmm_status peers_give_access(struct device *device, void *address, size_t bytes);

#endif
