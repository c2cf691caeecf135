/* SPDX-License-Identifier: MIT */
/* device.h: the device resource itself, and the other devices that may access its memory: all devices that can reach it
 * access mapped memory (where devices are announced: from when they are), and the devices of the option "peers" access
 * memory of hipMalloc. */
#ifndef HIPMM_PLUGINS_DEVICE_DEVICE_H
#define HIPMM_PLUGINS_DEVICE_DEVICE_H

#include "../../core/base/key_tree.h"
#include "../common/device_reach.h"
#include "../common/source.h"

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A row of the option. */
struct peer {
  int64_t device;
};

struct device_options {
  struct hipmm_list peers;
  uint32_t handle_type; /* HIP's numbers are the indices of device_handle_types */
};

struct device_import; /* import.c */

struct device {
  struct source source;
  bool is_in_reach;           /* of all devices of the process */
  bool is_shared;             /* chunks are created for other processes too */
  atomic_bool has_shared;     /* and some may be (mapping_create_shared) */
  atomic_int descriptors;     /* whether each chunk takes a file descriptor (mapping.c) */
  bool is_own_last;           /* of the devices, this one gets access to a chunk last */
  atomic_uint_fast64_t peers; /* one bit for each device that gets access to mapped memory, now or later */
  struct device_import *_Atomic imports;

  /* For access that is given later; not used where no device is announced. */
  bool is_announced;
  pthread_mutex_t lock;           /* of the rest; held around calls of HIP that give access and unmap */
  uint64_t granted;               /* devices */
  struct key_tree_node *mappings; /* by address: major is the address, minor the bytes */
  struct key_tree_node *unused;   /* linked by `right` */
  struct peers_block *blocks;     /* of nodes */
};

/* ---- Other devices (peers.c) ---- */

/* For create: lets each peer reach the memory that hipMalloc gives on this device, now and later. Refuses devices
 * that do not exist or cannot access the memory. */
enum hipmm_status peers_enable(const struct hipmm_services *services, const struct device_options *options);

/* For create: stores which devices reach the memory. */
void peers_open(struct device *device, const struct device_reach *reach);
void peers_close(struct device *device);

/* Gives the resource's own device, which is current, access to mapped memory, and every device that reaches it, and is announced
 * where devices are. A runtime that cannot give a device access is not asked again for that device, which is
 * logged as a warning; any other failure, such as want of memory for page tables, is the mapping's own, and is reported. */
enum hipmm_status peers_give_access(struct device *device, void *address, size_t bytes);

/* Unmaps memory that was given access to. Returns HIP's code. */
int peers_unmap(struct device *device, void *address, size_t bytes);

/* The op grant_access. */
enum hipmm_status peers_grant_access(void *self, int peer);

/* ---- Virtual memory, for a pool above (mapping.c) ---- */

/* Its `self` is the device resource's own, a struct device (device.h). */
extern const struct hipmm_mapping device_mapping;

/* ---- Mapped memory of other processes as blocks of this resource (import.c) ---- */

/* Its `self` is a struct device. */
extern const struct hipmm_sharing device_sharing;

/* Unmaps an imported block, and forgets it. False, and nothing is done, for a block that is not imported. No work uses the
 * block. The device is current. */
bool import_release(struct device *device, const void *ptr, enum hipmm_status *status_out);

#endif
