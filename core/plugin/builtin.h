/* SPDX-License-Identifier: MIT */
/* builtin.h: plugins that are linked into the process, rather than loaded from files. */
#ifndef HIPMM_CORE_PLUGIN_BUILTIN_H
#define HIPMM_CORE_PLUGIN_BUILTIN_H

#include <hipmm/plugin.h>

/* The place of these plugins among the folders that are searched, and what the name of their file begins with. */
#define BUILTIN_FOLDER "(built in)"

/* The descriptor of a type; NULL if it is not linked in. */
const struct hipmm_plugin *builtin_find(const char *type);

/* The type at `index`, from 0; NULL past the last. */
const char *builtin_type(size_t index);

/* Adds a plugin, which must last for the process's life; for programs that bring one of their own. To be called before
 * any graph is read, by one thread; at most 4. */
void builtin_add(const struct hipmm_plugin *descriptor);

#endif
