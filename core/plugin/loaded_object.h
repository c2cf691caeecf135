/* SPDX-License-Identifier: MIT */
/* loaded_object.h: which objects the process has loaded, and how much readable memory one has behind an address, so that a
 * plugin's tables can be checked before they are read. Memory of the heap belongs to no object. Nothing is loaded here. */
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

/* Whether the file's name is `stem` up to a "." or, as in wheels, to a "-" and a checksum. */
bool loaded_has_stem(const char *file, const char *stem);

enum { LOADED_FILE_BYTES = 4096 };

/* The file of the first loaded object with that stem; of any but the program itself where `stem` is NULL. `skip`: the first
 * ones are passed over. False if there is none. */
bool loaded_find(const char *stem, unsigned skip, char file_out[LOADED_FILE_BYTES]);

#endif
