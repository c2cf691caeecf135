/* SPDX-License-Identifier: MIT */
/* holders.c: the holders of a device's memory, for the message of an allocation that failed. A holder is a resource
 * that divides memory of a source, or a source whose memory no resource divides. The figures are not of one moment,
 * since other threads go on. */
#include "../base/error.h"
#include "../base/host_memory.h"
#include "../base/text.h"
#include "../base/units.h"
#include "../runtime/hip.h"
#include "neighbours.h"
#include "stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHOWN = 8, TEXT_BYTES = 1500, UNITS_BYTES = 32 };

struct holder {
  char name[TEXT_LONGEST_NAME + 1];
  const struct instance *source; /* that the memory is from; only compared */
  int64_t held, used;
};

struct holders {
  struct holder *items;
  size_t n, capacity;
  int64_t held, idle; /* of all */
};

/* A value of the instance by itself; `otherwise` if it has none of that name, or fails. */
static int64_t holders_value(const struct instance *instance, const char *name, int64_t otherwise)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  int64_t value;
  for (uint32_t row = 0; row < plugin->n_values; row++)
    if (!strcmp(plugin->values[row].name, name))
      return instance->resource.ops->query(instance->resource.self, row, &value) ? otherwise : value;
  return otherwise;
}

/* Whether the instance divides what it holds, and says how much that is. */
static bool holders_divides(const struct instance *instance)
{
  return instance->node->plugin->descriptor.role == HIPMM_ROLE_SUB_ALLOCATOR &&
         holders_value(instance, "reserved_bytes", -1) >= 0;
}

/* Whether it has its memory from a source as it is, perhaps through adaptors. */
static bool holders_is_lowest(const struct instance *instance)
{
  const struct instance_links *links = links_of(instance);
  for (size_t i = 1; i < links->n_closure; i++)
    if (holders_divides(links->closure[i])) return false;
  return true;
}

/* The first source of the kind that it stands on; NULL if there is none. */
static const struct instance *holders_source_of(const struct instance *instance, const struct exhausted *exhausted)
{
  const struct instance_links *links = links_of(instance);
  for (size_t i = 0; i < links->n_closure; i++)
    if (exhausted_is_same_memory(exhausted, links->closure[i])) return links->closure[i];
  return NULL;
}

/* Without host memory the holder is missing. */
static void holders_add(struct holders *holders, const struct instance *instance, const struct instance *source,
                        int64_t held, int64_t used)
{
  if (held <= 0) return;
  if (holders->n == holders->capacity) {
    size_t capacity = 2 * holders->capacity + 8;
    struct holder *items = realloc(holders->items, capacity * sizeof *items);
    if (!items) return;
    holders->items = items;
    holders->capacity = capacity;
  }
  struct holder *holder = &holders->items[holders->n++];
  *holder = (struct holder){.source = source, .held = held, .used = used < 0 ? 0 : used < held ? used : held};
  snprintf(holder->name, sizeof holder->name, "%s", instance->node->name);
  holders->held += held;
  holders->idle += held - holder->used;
}

static void holders_add_divider(struct holders *holders, const struct instance *instance,
                                const struct exhausted *exhausted)
{
  const struct instance *source = holders_source_of(instance, exhausted);
  if (!source || !holders_divides(instance) || !holders_is_lowest(instance)) return;
  int64_t held = holders_value(instance, "reserved_bytes", 0);
  int64_t idle = holders_value(instance, "free_bytes", held - holders_value(instance, "live_bytes", held));
  holders_add(holders, instance, source, held, held - idle);
}

/* What no divider has of the source; of a driver's pool also what is idle in it. */
static void holders_add_source(struct holders *holders, const struct instance *source,
                               const struct exhausted *exhausted)
{
  if (!exhausted_is_same_memory(exhausted, source)) return;
  int64_t divided = 0, held = instance_held_bytes(source);
  for (size_t i = 0; i < holders->n; i++)
    if (holders->items[i].source == source) divided += holders->items[i].held;
  holders_add(holders, source, source, held - divided, holders_value(source, "used_bytes", held) - divided);
}

static void holders_find(struct holders *holders, const struct exhausted *exhausted,
                         void (*add)(struct holders *, const struct instance *, const struct exhausted *))
{
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    for (size_t i = 0; stack->device == exhausted->device && i < stack->graph->n_nodes; i++)
      if (atomic_load(&stack->instances[i].created)) add(holders, &stack->instances[i], exhausted);
}

/* ---- The message ---- */

static int holders_compare(const void *left, const void *right)
{
  const struct holder *a = left, *b = right;
  return a->held != b->held ? (a->held < b->held ? 1 : -1) : strcmp(a->name, b->name);
}

struct message {
  char text[TEXT_BYTES];
  size_t length;
};

static HIPMM_PRINTF(2, 3) void holders_write(struct message *message, const char *format, ...)
{
  va_list arguments;
  size_t room = sizeof message->text - message->length;
  va_start(arguments, format);
  int length = vsnprintf(message->text + message->length, room, format, arguments);
  va_end(arguments);
  if (length > 0) message->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The largest first. */
static void holders_write_all(struct message *message, const struct holders *holders)
{
  char held[UNITS_BYTES], used[UNITS_BYTES], idle[UNITS_BYTES];
  int64_t rest = holders->held;
  for (size_t i = 0; i < holders->n && i < MOST_SHOWN; i++) {
    const struct holder *holder = &holders->items[i];
    rest -= holder->held;
    holders_write(message, "%s%s holds %s (%s used, %s idle)", i ? ", " : "; ", holder->name,
                  units_format_bytes((uint64_t)holder->held, held, sizeof held),
                  units_format_bytes((uint64_t)holder->used, used, sizeof used),
                  units_format_bytes((uint64_t)(holder->held - holder->used), idle, sizeof idle));
  }
  if (holders->n > MOST_SHOWN)
    holders_write(message, ", %zu other resources hold %s", holders->n - MOST_SHOWN,
                  units_format_bytes((uint64_t)rest, held, sizeof held));
}

/* Why the allocation failed although the device has the memory. A part of what failed may be undone by now, so the process has
 * fewer mappings than it had. */
static void holders_write_obstacle(struct message *message, size_t bytes, size_t unused)
{
  char more[UNITS_BYTES];
  struct host_limits limits;
  host_limits_read("", &limits);
  if (limits.mappings >= limits.most_mappings - limits.most_mappings / 16)
    holders_write(message,
                  "; this process has %" PRIu64 " of the %" PRIu64 " memory mappings that the kernel allows; raise "
                  "the limit with sysctl vm.max_map_count",
                  limits.mappings, limits.most_mappings);
  else if (bytes > limits.addresses_left)
    holders_write(message, "; this process may have only %s more of address space; raise the limit with ulimit -v",
                  units_format_bytes(limits.addresses_left, more, sizeof more));
  else if (bytes <= unused)
    holders_write(message,
                  "; what is free would be enough, but lies in pieces, or the runtime has reached another limit");
  else
    holders_write(message, "; what is free and idle would be enough, but lies in pieces between used memory");
}

/* Other processes, the driver, and what the program has from the runtime itself hold the rest of the device. */
static void holders_write_device(struct message *message, const struct holders *holders, int device, size_t bytes)
{
  size_t unused = 0, total = 0;
  char first[UNITS_BYTES], second[UNITS_BYTES];
  int previous = hip_enter_device(device);
  int code = hip_table()->MemGetInfo(&unused, &total);
  if (code) hip_table()->GetLastError();
  hip_leave_device(device, previous);
  if (code) return;
  if (bytes > total) {
    holders_write(message, "; device %d has only %s", device, units_format_bytes(total, first, sizeof first));
    return;
  }
  holders_write(message, "; device %d has %s, %s of it free", device, units_format_bytes(total, first, sizeof first),
                units_format_bytes(unused, second, sizeof second));
  holders_write_all(message, holders);
  uint64_t known = unused + (uint64_t)holders->held, available = unused + (uint64_t)holders->idle;
  if (total > known)
    holders_write(message, "%s other users hold %s", holders->n ? "," : ";",
                  units_format_bytes(total - known, first, sizeof first));
  if (bytes > available)
    holders_write(message, "; %s would fit if %s of what is used were freed",
                  units_format_bytes(bytes, first, sizeof first),
                  units_format_bytes(bytes - available, second, sizeof second));
  else
    holders_write_obstacle(message, bytes, unused);
}

void holders_explain(const struct exhausted *exhausted, size_t bytes)
{
  struct holders holders = {0};
  struct message message = {.length = 0};
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error); /* a resource that is asked may write another */
  holders_find(&holders, exhausted, holders_add_divider);
  holders_find(&holders, exhausted, holders_add_source);
  if (holders.n) qsort(holders.items, holders.n, sizeof *holders.items, holders_compare);
  if (exhausted->source->flags & HIPMM_PLUGIN_HOST_MEMORY)
    holders_write_all(&message, &holders);
  else
    holders_write_device(&message, &holders, exhausted->device, bytes);
  free(holders.items);
  error_set_located(&error);
  error_add(message.text);
}
