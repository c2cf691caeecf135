/* SPDX-License-Identifier: MIT */
/* resource_calls.h: a call of the program on a resource. */
#ifndef HIPMM_CORE_CALL_RESOURCE_CALLS_H
#define HIPMM_CORE_CALL_RESOURCE_CALLS_H

#include "device_table.h"

struct resource_call {
  struct instance *instance;
  struct caller_thread *thread; /* that entered a call; NULL: none did, since the caller holds the resource */
};

/* Begins a call on `resource`, NULL for the current device's current resource. HIPMM_E_STATE where every call is
 * refused, and for NULL while hipmm is not initialised; HIPMM_E_ARGUMENT if the resource is not live, or if `argument`, a
 * required pointer called `name`, is NULL. */
enum hipmm_status resource_call_begin(struct hipmm_resource *resource, const void *argument, const char *name,
                                      struct resource_call *call_out);

/* The same; `is_free`: for frees, which build no stack: HIPMM_E_POINTER if the current device has none. */
enum hipmm_status resource_call_begin_as(struct hipmm_resource *resource, const void *argument, const char *name,
                                         bool is_free, struct resource_call *call_out);

/* Ends it, and returns `status`. */
enum hipmm_status resource_call_end(const struct resource_call *call, enum hipmm_status status);

/* Performs an action of the nearest resource, from this one down, that has it. `values_out`, if not NULL, gets up to
 * `n_values` values of that resource as they were before. */
enum hipmm_status resource_perform(const struct instance *instance, const char *action, int64_t *values_out,
                                   uint32_t n_values);

/* The same for the action of that row of the instance itself. */
enum hipmm_status resource_perform_row(const struct instance *owner, size_t row, int64_t *values_out,
                                       uint32_t n_values);

#endif
