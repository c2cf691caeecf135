/* SPDX-License-Identifier: MIT */
/* pinned_resource.h: the pinned memory of each device for host buffers, a resource beside the device's stack. */
#ifndef HIPMM_CORE_CONTAINER_PINNED_RESOURCE_H
#define HIPMM_CORE_CONTAINER_PINNED_RESOURCE_H

#include "../stack/stack.h"

/* The pinned resource of a device, built at first use. The caller owns a reference. */
enum hipmm_status pinned_resource_get(int device, struct hipmm_resource **resource_out);

/* Releases all of them. Called with device_table_close(), under the same conditions. */
void pinned_resource_close(void);

/* Whether all memory of a resource comes from sources that the host can use. */
bool pinned_resource_is_one(const struct hipmm_resource *resource);

#endif
