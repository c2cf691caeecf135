/* SPDX-License-Identifier: MIT */
/* virtual.h: what physical.c (memory behind handles) and virtual.c (addresses and mappings) share. The lock is held
 * throughout. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_VIRTUAL_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_VIRTUAL_H

#include "internal.h"

struct software_physical {
  struct software_handle handle; /* live while handle_references > 0 */
  unsigned handle_references, mappings;
  int device;
  bool is_imported;
  int fd; /* of its own; 0 if it is a part of the device's */
  uint64_t offset;
  size_t bytes;
  hipMemAllocationProp properties;
};

extern struct software_handles software_physicals;

/* begin, for functions that this device may not have. */
hipError_t software_virtual_begin(enum software_call call);
bool software_virtual_is_granular(size_t bytes);
/* The memory behind a handle, which may be any value; NULL if it is not live. */
struct software_physical *software_physical_of(hipMemGenericAllocationHandle_t handle);
/* Gives one of the handle's references back. */
void software_physical_release(struct software_physical *physical);
/* Gives the memory back once neither a handle nor a mapping is left. */
void software_physical_settle(struct software_physical *physical);

#endif
