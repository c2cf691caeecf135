/* SPDX-License-Identifier: MIT */
/* resource.c: resources as programs hold them: references, names, what is held at the end. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../base/text.h"
#include "../base/units.h"
#include "stack.h"

enum hipmm_status resource_check(const struct hipmm_resource *resource)
{
  return instance_is_live(resource) ? HIPMM_OK : error_refuse(HIPMM_E_ARGUMENT, NULL, INSTANCE_NOT_LIVE, 0, 0, 0);
}

/* For functions without a status. */
static bool resource_is_live(const struct hipmm_resource *resource, const char *function)
{
  if (!resource || lifecycle_is_forked()) return false;
  if (!resource_check(resource)) return true;
  log_line(HIPMM_LOG_ERROR, NULL, "%s: %s", function, hipmm_last_error_message());
  return false;
}

void hipmm_resource_retain(struct hipmm_resource *resource)
{
  if (!resource_is_live(resource, "hipmm_resource_retain")) return;
  atomic_fetch_add_explicit(&instance_from(resource)->references, 1, memory_order_relaxed);
  stack_retain(instance_from(resource)->stack);
}

/* In a fork's child the stack must not be destroyed: its threads and its driver are the parent's. A reference that the
 * program does not have would be one of the table's, or of a container. */
void hipmm_resource_release(struct hipmm_resource *resource)
{
  if (!resource_is_live(resource, "hipmm_resource_release")) return;
  struct instance *instance = instance_from(resource);
  unsigned references = atomic_load_explicit(&instance->references, memory_order_relaxed);
  do {
    if (references) continue;
    error_set(HIPMM_E_ARGUMENT, "resource %s was released as often as it was retained", instance->node->name);
    log_line(HIPMM_LOG_ERROR, NULL, "hipmm_resource_release: %s", hipmm_last_error_message());
    return;
  } while (!atomic_compare_exchange_weak_explicit(&instance->references, &references, references - 1,
                                                  memory_order_relaxed, memory_order_relaxed));
  stack_release(instance->stack);
}

/* "pool (2 references), device (1 reference)". Some of the `all` references may be those of containers and of resources
 * above. */
static void resource_list_held(const struct stack *stack, unsigned all, char *text, size_t bytes)
{
  STACK_EACH(instance, stack) {
    unsigned held = atomic_load_explicit(&instance->references, memory_order_relaxed);
    if (!held) continue;
    text_append(text, bytes, "%s%s (%u reference%s)", *text ? ", " : "", instance->node->name, held, text_plural(held));
    all -= held < all ? held : all;
  }
  if (all)
    text_append(text, bytes, "%s%s (by containers, resources above it or visitors)", *text ? ", " : "",
                stack->graph->nodes[stack->top].name);
}

void resource_warn_of_held(void)
{
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) {
    char list[1024] = "";
    if (stack->external.is_whole) continue; /* a library's own: it never was the table's */
    resource_list_held(stack, stack_references(stack), list, sizeof list);
    log_line(HIPMM_LOG_WARNING, "finalize",
             "device %d: still held: %s; %s of device memory stay with it until the last "
             "reference is released",
             stack->device, list, UNITS_BYTES((uint64_t)stack_held_bytes(stack)));
  }
}

const char *hipmm_resource_name(const struct hipmm_resource *resource)
{
  return instance_is_live(resource) ? instance_from(resource)->node->name : NULL;
}

const char *hipmm_resource_type(const struct hipmm_resource *resource)
{
  return instance_is_live(resource) ? instance_from(resource)->node->plugin->descriptor.type : NULL;
}

int hipmm_resource_device(const struct hipmm_resource *resource)
{
  return instance_is_live(resource) ? instance_from(resource)->stack->device : -1;
}
