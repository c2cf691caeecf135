/* SPDX-License-Identifier: MIT */
/* statistics.c: the public functions on statistics. Called by applications. Reads the values of the type `statistics` by
 * name, in the order of struct hipmm_statistics. */
#include "../base/error.h"
#include "../call/resource_calls.h"
#include "inspect.h"

#include <string.h>

static const char *const statistics_values[] = {"current_bytes", "current_count", "peak_bytes",
                                                "peak_count",    "total_bytes",   "total_count"};

enum { STATISTICS_VALUES = sizeof statistics_values / sizeof *statistics_values };

_Static_assert(sizeof(struct hipmm_statistics) == STATISTICS_VALUES * sizeof(int64_t), "struct hipmm_statistics");

bool statistics_need_no_lock(const struct instance *instance)
{
  size_t row;
  for (size_t i = 0; i < STATISTICS_VALUES; i++)
    if (instance_with_value(instance, statistics_values[i], &row) != instance) return false;
  return !(instance->node->plugin->descriptor.flags & HIPMM_PLUGIN_NOT_THREAD_SAFE);
}

/* Other types have values of some of these names, so the first that is missing would be a riddle. */
static enum hipmm_status statistics_check(const struct instance *instance)
{
  size_t row;
  for (size_t i = 0; i < STATISTICS_VALUES; i++)
    if (!instance_with_value(instance, statistics_values[i], &row))
      return error_set(HIPMM_E_ARGUMENT,
                       "%s: neither it nor a resource below it is a statistics resource, which counts allocations; put "
                       "one on top of it, as in {\"stack\": [\"statistics\", \"pool\", \"device\"]}",
                       instance->node->name);
  return HIPMM_OK;
}

enum hipmm_status hipmm_statistics_get(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out)
{
  int64_t values[STATISTICS_VALUES];
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, statistics_out, "statistics_out", &call);
  if (status) return status;
  status = statistics_check(call.instance);
  for (size_t i = 0; !status && i < STATISTICS_VALUES; i++)
    status = hipmm_resource_query(&call.instance->resource, statistics_values[i], &values[i]);
  if (!status) memcpy(statistics_out, values, sizeof values);
  return resource_call_end(&call, status);
}

static enum hipmm_status statistics_perform(struct hipmm_resource *resource, const char *action,
                                            struct hipmm_statistics *statistics_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, action, "action", &call);
  if (status) return status;
  status = statistics_check(call.instance);
  if (!status) status = resource_perform(call.instance, action, (int64_t *)statistics_out, STATISTICS_VALUES);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_statistics_push(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out)
{
  return statistics_perform(resource, "push", statistics_out);
}

enum hipmm_status hipmm_statistics_pop(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out)
{
  return statistics_perform(resource, "pop", statistics_out);
}
