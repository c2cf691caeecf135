/* SPDX-License-Identifier: MIT */
/* registry.h: the objects that the program registered by name, for options of the type OBJECT. Thread-safe. */
#ifndef HIPMM_CORE_OPTION_REGISTRY_H
#define HIPMM_CORE_OPTION_REGISTRY_H

#include <hipmm/hipmm.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether programs can register objects of this kind ("allocator", …: the unit of the option), and the name of the
 * public function for it; NULL for an unknown kind. */
bool registry_kind_exists(const char *kind);
const char *registry_function(const char *kind);

/* The registered struct of this kind and name; NULL if there is none. The caller owns a reference, which
 * registry_release() releases (NULL is allowed). The struct is constant, whatever is registered later. */
const void *registry_acquire(const char *kind, const char *name);
void registry_release(const void *registered);

/* Registers an object without a name of the program's, for one resource: checks the struct, copies it, and writes the
 * name for the option, which begins with REGISTRY_PRIVATE and is never given twice. remove forgets it; an unknown name has
 * no effect. */
enum { REGISTRY_PRIVATE = '#', REGISTRY_PRIVATE_BYTES = 24 };
enum hipmm_status registry_add_private(const char *kind, const void *registered, char name_out[REGISTRY_PRIVATE_BYTES]);
void registry_remove_private(const char *kind, const char *name);

/* Copies the registered name of this kind that is nearest to `name` to `buffer` and returns it; NULL if none is
 * near. */
const char *registry_nearest(const char *kind, const char *name, char *buffer, size_t buffer_bytes);

#endif
