/* SPDX-License-Identifier: MIT */
/* peers.h: the device resource itself, and the other devices that may use its memory, as its option "peers" names
 * them. */
#ifndef HIPMM_DEVICE_PEERS_H
#define HIPMM_DEVICE_PEERS_H

#include "../source.h"

/* A row of the option. */
struct peer {
  int64_t device;
};

struct device_options {
  struct hipmm_list peers;
};

struct device {
  struct source source;
  const struct device_options *options;
};

/* For create: lets each peer reach the memory that hipMalloc gives on this device, now and later. Refuses devices
 * that do not exist and those that cannot. */
enum hipmm_status peers_enable(const struct hipmm_services *services, const struct device_options *options);

/* Gives each peer access to mapped memory, which hipMalloc's does not cover. Returns HIP's code. */
int peers_give_access(const struct device *device, void *address, size_t bytes);

#endif
