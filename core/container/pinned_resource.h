/* SPDX-License-Identifier: MIT */
/* pinned_resource.h: the resource of pinned memory that every device has beside its stack, for host buffers. */
#ifndef HIPMM_CORE_CONTAINER_PINNED_RESOURCE_H
#define HIPMM_CORE_CONTAINER_PINNED_RESOURCE_H

#include "../stack/stack.h"

/* The device's, made at first use. The caller owns a reference. */
enum hipmm_status pinned_resource_get(int device, struct hipmm_resource **resource_out);

/* Lets go of them all. With device_table_close(), under its conditions. */
void pinned_resource_close(void);

/* Whether all memory of a resource comes from sources that the host can use. */
bool pinned_resource_is_one(const struct hipmm_resource *resource);

#endif
