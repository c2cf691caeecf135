/* SPDX-License-Identifier: MIT */
/* loaded_object.h: how much memory lies behind an address of a loaded object, so that a plugin's tables can be checked before
 * they are read. Memory of the heap belongs to no object. */
#ifndef HIPMM_CORE_PLUGIN_LOADED_OBJECT_H
#define HIPMM_CORE_PLUGIN_LOADED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

/* The segments found lately. Zero to begin with; for one thread, and for objects that stay loaded. */
struct loaded {
  struct loaded_segment {
    const char *start, *end;
  } recent[4];
  unsigned next;
};

/* Bytes that can be read from `address` to the end of the segment that it lies in; 0 if no loaded object has it. */
size_t loaded_bytes(struct loaded *loaded, const void *address);

/* Whether a text that ends lies there. */
bool loaded_has_text(struct loaded *loaded, const char *text);

/* Whether a list of pointers to texts, ended by NULL, lies there. `n_out` gets the number of texts. */
bool loaded_has_texts(struct loaded *loaded, const char *const *texts, size_t *n_out);

#endif
