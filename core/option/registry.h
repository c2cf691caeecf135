/* SPDX-License-Identifier: MIT */
/* registry.h: the functions and memory that the program registered by name, for options of the type OBJECT. */
#ifndef HIPMM_CORE_OPTION_REGISTRY_H
#define HIPMM_CORE_OPTION_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `kind`, which the unit of an option names ("allocator", …), is one that programs can register; and the
 * function that does it, NULL for an unknown kind. */
bool registry_kind_exists(const char *kind);
const char *registry_function(const char *kind);

/* The registered struct of that kind and name, with a reference that registry_release gives back; NULL if there is none.
 * It stays as it is whatever is registered later. */
const void *registry_acquire(const char *kind, const char *name);
void registry_release(const void *registered);

/* The registered name of that kind nearest to `name`, copied to `buffer` and returned; NULL if none is near. */
const char *registry_nearest(const char *kind, const char *name, char *buffer, size_t buffer_bytes);

#endif
