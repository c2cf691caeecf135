/* SPDX-License-Identifier: MIT */
/* loaded_object.h: how much readable memory a loaded object has behind an address, so that a plugin's tables can be
 * checked before they are read. Memory of the heap belongs to no object. */
#ifndef HIPMM_CORE_PLUGIN_LOADED_OBJECT_H
#define HIPMM_CORE_PLUGIN_LOADED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

/* A cache of segments. Start from zero; for one thread, and for objects that stay loaded. */
struct loaded {
  struct loaded_segment {
    const char *start, *end;
  } recent[4];
  unsigned next;
};

/* The number of readable bytes from `address` to the end of its segment; 0 if it is in no loaded object. */
size_t loaded_bytes(struct loaded *loaded, const void *address);

/* Whether `text` is a terminated text in a loaded object. */
bool loaded_has_text(struct loaded *loaded, const char *text);

/* Whether `texts` is a list of such texts, ended by NULL, in a loaded object. `n_out` gets the number of texts. */
bool loaded_has_texts(struct loaded *loaded, const char *const *texts, size_t *n_out);

#endif
