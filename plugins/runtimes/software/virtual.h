/* SPDX-License-Identifier: MIT */
/* virtual.h: reservations of addresses (virtual.c), physical memory behind handles (physical.c), and the mappings of
 * the one in the other (mapping.c has the tables of both). The lock is held throughout. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_VIRTUAL_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_VIRTUAL_H

#include "../../../core/base/hip_layout.h"
#include "internal.h"

struct software_physical {
  struct software_handle handle; /* live while handle_references > 0 */
  unsigned handle_references, mappings;
  int device;   /* whose memory it is */
  bool is_host; /* of the host; then the device that was current at its creation */
  bool is_imported, is_shareable;
  struct software_file file; /* of its own; none if it is a part of that of the heap */
  uint64_t offset;
  size_t bytes;
  union hip_layout_prop properties;
};

struct software_reservation {
  struct key_tree_node by_address;
  unsigned busy; /* operations that touch it right now */
};

struct software_mapping {
  struct key_tree_node by_address;
  struct software_physical *physical;
  uint64_t sequence; /* the last operation before it was mapped */
  uint8_t access[SOFTWARE_MAX_DEVICES], host_access;
};

extern struct software_handles software_physicals;

/* ---- mapping.c ------------------------------------------------------------------------------------------------- */

/* The reservation or the mapping that holds the address; NULL for none. */
struct software_reservation *software_reservation_at(uintptr_t address);
struct software_mapping *software_mapping_at(uintptr_t address);
/* The heap that has the memory, if the memory has no file of its own. */
struct software_heap *software_physical_heap(const struct software_physical *physical);
/* The descriptor of the file that holds the memory; -1 if the program has closed it. */
int software_physical_file(const struct software_physical *physical);

/* ---- physical.c ------------------------------------------------------------------------------------------------ */

/* begin, for functions that this device may not have. */
hipError_t software_virtual_begin(enum software_call call);
bool software_virtual_is_granular(size_t bytes);
/* The memory behind a handle, which may be any value; NULL if it is not live. */
struct software_physical *software_physical_of(hipMemGenericAllocationHandle_t handle);
/* Drops one reference of the handle. */
void software_physical_release(struct software_physical *physical);
/* Frees the memory once neither a handle nor a mapping is left. */
void software_physical_free_if_unused(struct software_physical *physical);

#endif
