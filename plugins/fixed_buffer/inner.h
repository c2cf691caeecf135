/* SPDX-License-Identifier: MIT */
/* inner.h: the type `pool`, linked into this plugin and used through its descriptor, as the core would. */
#ifndef HIPMM_FIXED_BUFFER_INNER_H
#define HIPMM_FIXED_BUFFER_INNER_H

#include <hipmm/plugin.h>

extern const struct hipmm_plugin pool_LTX_hipmm_plugin;

/* Makes a pool that takes all of `upstream`, `bytes` of it, at once, and records as option `record` of pool says.
 * `options_out` must be freed after the pool is destroyed, with inner_free_options. */
enum hipmm_status inner_create(const struct hipmm_services *services, struct hipmm_resource *upstream, uint64_t bytes,
                               uint32_t record, void **options_out, void **pool_out);
void inner_free_options(const struct hipmm_services *services, void *options);

/* The pool's value called `name`. */
enum hipmm_status inner_query(void *pool, const char *name, int64_t *value_out);

#endif
