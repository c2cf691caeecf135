/* SPDX-License-Identifier: MIT */
/* descriptor.h: whether a plugin's descriptor can be trusted, and a copy of it in this hipmm's layout. */
#ifndef HIPMM_CORE_PLUGIN_DESCRIPTOR_H
#define HIPMM_CORE_PLUGIN_DESCRIPTOR_H

#include <hipmm/plugin.h>

/* Checks `foreign`, as found in `file`, which must describe `type`, and fills `descriptor_out`: tables with our
 * strides, optional ops filled in. The copies live for the process's life, as the plugin does. */
enum hipmm_status descriptor_adopt(const void *foreign, const char *file, const char *type,
                                   struct hipmm_plugin *descriptor_out);

/* Frees the tables of a descriptor that is not kept after all. */
void descriptor_release(const struct hipmm_plugin *descriptor);

#endif
