/* SPDX-License-Identifier: MIT */
/* mapped.h: pinned memory that hipmm maps itself. A driver maps, clears and pins page by page in one thread. Here several
 * threads commit the pages, near the device and as huge pages, and the runtime only pins what is there. Called by pinned.c. */
#ifndef HIPMM_PLUGINS_PINNED_MAPPED_H
#define HIPMM_PLUGINS_PINNED_MAPPED_H

#include <hipmm/plugin.h>
#include <stdbool.h>

struct mapped {
  int node;           /* on which memory lies, or NUMA_NODE_ANY */
  size_t huge_bytes;  /* of the huge pages that hold all memory; 0: pages of the system */
  bool is_encouraged; /* with pages of the system: the kernel may put huge pages in their places */
};

/* Refuses huge pages of a size of which the machine has none. Called on creation. */
enum hipmm_status mapped_check_huge_pages(const struct hipmm_services *services, size_t huge_bytes);

/* Committed, pinned memory, zeroed; a fork's child does not have it. Reports its failures, after which nothing is left. */
enum hipmm_status mapped_obtain(const struct hipmm_services *services, const struct mapped *mapped, size_t bytes,
                                void **ptr_out);

/* `bytes`: as obtained. After a failure the memory is as before. */
enum hipmm_status mapped_release(const struct hipmm_services *services, const struct mapped *mapped, void *ptr,
                                 size_t bytes);

#endif
