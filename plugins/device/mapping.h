/* SPDX-License-Identifier: MIT */
/* mapping.h: the virtual memory management of the device, for a pool above. */
#ifndef HIPMM_PLUGINS_DEVICE_MAPPING_H
#define HIPMM_PLUGINS_DEVICE_MAPPING_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Its `self` is the device resource's own, a struct device (peers.h). */
extern const struct hipmm_mapping device_mapping;

#endif
