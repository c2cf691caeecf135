/* SPDX-License-Identifier: MIT */
/* framework_owners.h: the resource of a block, for blocks that were allocated from another resource than the device's
 * first one. Frameworks free with only the address. The table of devices keeps every resource that was current, so the
 * records need no references. */
#ifndef HIPMM_CORE_FRAMEWORK_FRAMEWORK_OWNERS_H
#define HIPMM_CORE_FRAMEWORK_FRAMEWORK_OWNERS_H

#include <hipmm/hipmm.h>

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_size_t framework_owners_count; /* records: usually 0 */

/* Records the resource of a block. False without host memory. */
bool framework_owners_add(const void *ptr, struct hipmm_resource *resource);

/* The resource of a block; NULL without a record. framework_owners_extract() also removes the record. */
struct hipmm_resource *framework_owners_find(const void *ptr);
struct hipmm_resource *framework_owners_extract(const void *ptr);

#endif
