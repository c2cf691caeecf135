/* SPDX-License-Identifier: MIT */
/* refusals.h: what a resource that knows its blocks says about a pointer, or a size, that it cannot free. */
#ifndef HIPMM_PLUGINS_COMMON_REFUSALS_H
#define HIPMM_PLUGINS_COMMON_REFUSALS_H

#include <hipmm/plugin.h>

static __attribute__((noinline, unused)) enum hipmm_status refuse_pointer(const struct hipmm_services *services,
                                                                          const void *ptr)
{
  return services->refuse(services, HIPMM_E_POINTER,
                          "{0:hex} is not allocated here: it is foreign, or was freed before", (uintptr_t)ptr, 0, 0);
}

static __attribute__((noinline, unused)) enum hipmm_status refuse_size(const struct hipmm_services *services,
                                                                       const void *ptr, size_t bytes,
                                                                       uint64_t requested)
{
  return services->refuse(services, HIPMM_E_SIZE, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                          (uintptr_t)ptr, requested, bytes);
}

#endif
