/* SPDX-License-Identifier: MIT */
/* peers.h: the device resource itself, and the other devices that may use its memory: mapped memory all that can reach
 * it, and memory of hipMalloc those that the option "peers" names. */
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
};

struct device {
  struct source source;
  bool is_in_reach;           /* of all devices of the process */
  atomic_uint_fast64_t peers; /* a bit for each device that mapped memory is given access for */
};

/* For create: lets each peer reach the memory that hipMalloc gives on this device, now and later. Refuses devices
 * that do not exist and those that cannot. */
enum hipmm_status peers_enable(const struct hipmm_services *services, const struct device_options *options);

/* For create: notes who reaches the memory. */
void peers_open(struct device *device, const struct device_reach *reach);

/* Gives every device that reaches it access to mapped memory; the resource's own is current and has access already. A
 * runtime that cannot give a device access is not asked again for that device, which is logged as a warning; any other
 * failure, such as want of memory for page tables, is the mapping's own, and is reported. */
enum hipmm_status peers_give_access(struct device *device, void *address, size_t bytes);

#endif
