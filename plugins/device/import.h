/* SPDX-License-Identifier: MIT */
/* import.h: mapped memory of other processes as blocks of this resource. */
#ifndef HIPMM_PLUGINS_DEVICE_IMPORT_H
#define HIPMM_PLUGINS_DEVICE_IMPORT_H

#include "peers.h"

/* Its `self` is a struct device. */
extern const struct hipmm_sharing device_sharing;

/* Unmaps an imported block, and forgets it. False, and nothing is done, for a block that is not imported. No work uses the
 * block. The device is current. */
bool import_release(struct device *device, const void *ptr, enum hipmm_status *status_out);

#endif
