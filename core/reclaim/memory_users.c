/* SPDX-License-Identifier: MIT */
/* memory_users.c: the users of a device's memory, for the message of an allocation that failed. A user is a resource
 * that divides memory of a source, or a source whose memory no resource divides. The figures are not of one moment,
 * since other threads go on. */
#include "../base/error.h"
#include "../base/host_memory.h"
#include "../base/text.h"
#include "../base/units.h"
#include "../runtime/hip.h"
#include "../stack/physical.h"
#include "../stack/stack.h"
#include "reclaim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHOWN = 8, TEXT_BYTES = 1500, UNITS_BYTES = 32 };

struct memory_user {
  char name[TEXT_LONGEST_NAME + 1];
  const struct instance *source; /* that the memory is from; only compared */
  int64_t held, used;
};

struct memory_users {
  struct memory_user *items;
  size_t n, capacity;
  int64_t held, idle; /* of all */
};

/* A value of the instance by itself; `otherwise` if it has none of that name, or fails. */
static int64_t memory_users_value(const struct instance *instance, const char *name, int64_t otherwise)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  uint32_t row = descriptor_row(plugin->values, plugin->n_values, name);
  int64_t value;
  bool is_known = row < plugin->n_values && !instance->resource.ops->query(instance->resource.self, row, &value);
  return is_known ? value : otherwise;
}

/* Whether the instance divides what it holds, and says how much that is. */
static bool memory_users_divides(const struct instance *instance)
{
  return instance->node->plugin->descriptor.role == HIPMM_ROLE_SUB_ALLOCATOR &&
         memory_users_value(instance, "reserved_bytes", -1) >= 0;
}

/* Whether it has its memory from a source as it is, perhaps through adaptors. */
static bool memory_users_is_lowest(const struct instance *instance)
{
  CLOSURE_EACH_BELOW(one, instance)
    if (memory_users_divides(one)) return false;
  return true;
}

/* Without host memory the user is missing. */
static void memory_users_add(struct memory_users *users, const struct instance *instance, const struct instance *source,
                             int64_t held, int64_t used)
{
  if (held <= 0) return;
  if (users->n == users->capacity) {
    size_t capacity = 2 * users->capacity + 8;
    struct memory_user *items = realloc(users->items, capacity * sizeof *items);
    if (!items) return;
    users->items = items;
    users->capacity = capacity;
  }
  struct memory_user *user = &users->items[users->n++];
  *user = (struct memory_user){.source = source, .held = held, .used = used < 0 ? 0 : used < held ? used : held};
  snprintf(user->name, sizeof user->name, "%s", instance->node->name);
  users->held += held;
  users->idle += held - user->used;
}

static void memory_users_add_divider(struct memory_users *users, const struct instance *instance,
                                     const struct oom_source *oom_source)
{
  const struct instance *source = oom_source_find(oom_source, instance);
  if (!source || !memory_users_divides(instance) || !memory_users_is_lowest(instance)) return;
  int64_t held = memory_users_value(instance, "reserved_bytes", 0);
  int64_t idle = memory_users_value(instance, "free_bytes", held - memory_users_value(instance, "live_bytes", held));
  memory_users_add(users, instance, source, held, held - idle);
}

/* What no divider has of the source; of a driver's pool also what is idle in it. */
static void memory_users_add_source(struct memory_users *users, const struct instance *source,
                                    const struct oom_source *oom_source)
{
  if (!oom_source_is_same_memory(oom_source, source)) return;
  int64_t divided = 0, held = instance_held_bytes(source);
  for (size_t i = 0; i < users->n; i++)
    if (users->items[i].source == source) divided += users->items[i].held;
  memory_users_add(users, source, source, held - divided, memory_users_value(source, "used_bytes", held) - divided);
}

static void memory_users_find(struct memory_users *users, const struct oom_source *oom_source,
                              void (*add)(struct memory_users *, const struct instance *, const struct oom_source *))
{
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (stack->device == oom_source->device)
      STACK_EACH(instance, stack) add(users, instance, oom_source);
}

/* ---- The message ---- */

static int memory_users_compare(const void *left, const void *right)
{
  const struct memory_user *a = left, *b = right;
  return a->held != b->held ? (a->held < b->held ? 1 : -1) : strcmp(a->name, b->name);
}

struct message {
  char text[TEXT_BYTES];
  size_t length;
};

static HIPMM_PRINTF(2, 3) void memory_users_write(struct message *message, const char *format, ...)
{
  va_list arguments;
  size_t room = sizeof message->text - message->length;
  va_start(arguments, format);
  int length = vsnprintf(message->text + message->length, room, format, arguments);
  va_end(arguments);
  if (length > 0) message->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The largest first. */
static void memory_users_write_all(struct message *message, const struct memory_users *users)
{
  char held[UNITS_BYTES], used[UNITS_BYTES], idle[UNITS_BYTES];
  int64_t rest = users->held;
  for (size_t i = 0; i < users->n && i < MOST_SHOWN; i++) {
    const struct memory_user *user = &users->items[i];
    rest -= user->held;
    memory_users_write(message, "%s%s holds %s (%s used, %s idle)", i ? ", " : "; ", user->name,
                       units_format_bytes((uint64_t)user->held, held, sizeof held),
                       units_format_bytes((uint64_t)user->used, used, sizeof used),
                       units_format_bytes((uint64_t)(user->held - user->used), idle, sizeof idle));
  }
  if (users->n > MOST_SHOWN)
    memory_users_write(message, ", %zu other resources hold %s", users->n - MOST_SHOWN,
                       units_format_bytes((uint64_t)rest, held, sizeof held));
}

/* Why the allocation failed although the device has the memory. A part of what failed may be undone by now, so the process has
 * fewer mappings than it had. */
static void memory_users_write_obstacle(struct message *message, size_t bytes, size_t unused, size_t total)
{
  char more[UNITS_BYTES];
  struct host_limits limits;
  host_limits_read("", &limits);
  if (limits.mappings >= limits.most_mappings - limits.most_mappings / 16)
    memory_users_write(message,
                       "; this process has %" PRIu64 " of the %" PRIu64
                       " memory mappings that the kernel allows; raise "
                       "the limit with sysctl vm.max_map_count",
                       limits.mappings, limits.most_mappings);
  else if (bytes > limits.addresses_left)
    memory_users_write(message, "; this process may have only %s more of address space; raise the limit with ulimit -v",
                       units_format_bytes(limits.addresses_left, more, sizeof more));
  else if (limits.file_bytes < total && !strcmp(hip_name(), "software"))
    memory_users_write(message,
                       "; the software device has its memory in a file, and this process may have files of only %s; "
                       "raise the limit with ulimit -f",
                       units_format_bytes(limits.file_bytes, more, sizeof more));
  else if (bytes <= unused)
    memory_users_write(message,
                       "; what is free would be enough, but lies in pieces, or the runtime has reached another limit");
  else
    memory_users_write(message,
                       "; what is free and idle would be enough, but lies in pieces between used memory; a pool with "
                       "\"growth\": \"mapped\" can join them");
}

/* What the graph's "limit_physical" leaves of *unused. False: it forbids the allocation whatever is freed. */
static bool memory_users_apply_limit(struct message *message, int device, size_t bytes, size_t *unused)
{
  char first[UNITS_BYTES], second[UNITS_BYTES];
  uint64_t limit = physical_limit(device), held = physical_held_bytes(device);
  if (limit == HIPMM_UNLIMITED) return true;
  units_format_bytes(limit, first, sizeof first);
  if (bytes > limit) {
    memory_users_write(message, "; \"limit_physical\" lets this process hold only %s of device %d", first, device);
    return false;
  }
  if (*unused > limit - (held < limit ? held : limit)) {
    *unused = (size_t)(limit - (held < limit ? held : limit));
    memory_users_write(message, "; \"limit_physical\" lets this process hold %s, and %s are left", first,
                       units_format_bytes(*unused, second, sizeof second));
  }
  return true;
}

/* Other processes, the driver, and what the program has from the runtime itself hold the rest of the device. */
static void memory_users_write_device(struct message *message, const struct memory_users *users, int device,
                                      size_t bytes, bool is_captured)
{
  size_t unused = 0, total = 0;
  char first[UNITS_BYTES], second[UNITS_BYTES];
  int previous = hip_enter_device(device);
  int code = hip_table()->MemGetInfo(&unused, &total);
  if (code) hip_table()->GetLastError();
  hip_leave_device(device, previous);
  if (code) return;
  if (bytes > total) {
    memory_users_write(message, "; device %d has only %s", device, units_format_bytes(total, first, sizeof first));
    return;
  }
  memory_users_write(message, "; device %d has %s, %s of it free", device,
                     units_format_bytes(total, first, sizeof first), units_format_bytes(unused, second, sizeof second));
  const uint64_t past = physical_past(device).bytes, known = unused + (uint64_t)users->held + past;
  if (!memory_users_apply_limit(message, device, bytes, &unused)) return;
  memory_users_write_all(message, users);
  if (past)
    memory_users_write(message, "%s %s were created past hipmm", users->n ? "," : ";",
                       units_format_bytes(past, first, sizeof first));
  uint64_t available = unused + (uint64_t)users->idle;
  if (total > known)
    memory_users_write(message, "%s other users hold %s", users->n || past ? "," : ";",
                       units_format_bytes(total - known, first, sizeof first));
  if (bytes > available)
    memory_users_write(message, "; %s would fit if %s of what is used were freed",
                       units_format_bytes(bytes, first, sizeof first),
                       units_format_bytes(bytes - available, second, sizeof second));
  else if (is_captured && bytes > unused)
    memory_users_write(message,
                       "; what is free and idle would be enough, but the stream is being captured, and hipmm waits "
                       "for no work then: trim before the capture begins, or allocate after it");
  else
    memory_users_write_obstacle(message, bytes, unused, total);
}

void memory_users_explain(const struct oom_source *oom_source, size_t bytes, bool is_captured)
{
  struct memory_users users = {0};
  struct message message = {.length = 0};
  const struct error_record failure = error_mark(); /* a resource that is asked may write another */
  memory_users_find(&users, oom_source, memory_users_add_divider);
  memory_users_find(&users, oom_source, memory_users_add_source);
  if (users.n) qsort(users.items, users.n, sizeof *users.items, memory_users_compare);
  if (oom_source->source->flags & HIPMM_PLUGIN_HOST_MEMORY)
    memory_users_write_all(&message, &users);
  else
    memory_users_write_device(&message, &users, oom_source->device, bytes, is_captured);
  free(users.items);
  error_return_to_mark(&failure);
  error_add(message.text);
}
