/* SPDX-License-Identifier: MIT */
/* descriptor.h: checks a plugin's descriptor, and copies it into this hipmm's layout. */
#ifndef HIPMM_CORE_PLUGIN_DESCRIPTOR_H
#define HIPMM_CORE_PLUGIN_DESCRIPTOR_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* The flags that this hipmm knows. */
enum {
  DESCRIPTOR_FLAGS = HIPMM_PLUGIN_NOT_THREAD_SAFE | HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_HANDS_ON |
                     HIPMM_PLUGIN_KEEPS_MEMORY | HIPMM_PLUGIN_DEVICE_MEMORY | HIPMM_PLUGIN_HOST_ALONE |
                     HIPMM_PLUGIN_FREE_WAITS | HIPMM_PLUGIN_ACCESSES_MEMORY | HIPMM_PLUGIN_RECOUNTS
};

/* Checks `foreign`, the descriptor in `file`, which must describe `type`, and copies it to `descriptor_out`: tables
 * with this hipmm's strides, optional ops filled in. The tables are allocated; descriptor_release() frees them. */
enum hipmm_status descriptor_adopt(const void *foreign, const char *file, const char *type,
                                   struct hipmm_plugin *descriptor_out);

/* Whether the type implements trim. */
bool descriptor_trims(const struct hipmm_plugin *descriptor);

/* Frees the tables of a copied descriptor. */
void descriptor_release(const struct hipmm_plugin *descriptor);

#endif
