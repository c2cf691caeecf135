/* SPDX-License-Identifier: MIT */
/* region.h: memory of the program as an upstream that allocates it once, as a whole. Called by fixed_buffer.c and by the
 * pool above it. Never frees the memory. */
#ifndef HIPMM_PLUGINS_FIXED_BUFFER_REGION_H
#define HIPMM_PLUGINS_FIXED_BUFFER_REGION_H

#include <hipmm/plugin.h>
#include <stdbool.h>

struct region {
  struct hipmm_resource resource; /* what the pool sees */
  const struct hipmm_services *services;
  char *start;
  size_t bytes; /* a multiple of HIPMM_ALIGNMENT */
  bool is_allocated;
  bool is_closing; /* the pool may free it now */
  struct region *next;
};

/* Checks what the program registered and claims it for this resource: no other resource of the process may use it until
 * region_close. On failure the reason has been reported, and region_close() must not be called. */
enum hipmm_status region_open(struct region *region, const struct hipmm_services *services,
                              const struct hipmm_region *registered);
void region_close(struct region *region);

#endif
