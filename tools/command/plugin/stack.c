/* SPDX-License-Identifier: MIT */
/* stack.c: the stack of a check: the tested resource over the probe over the resource that --over names, on the software
 * device; and the hooks in the plugin's create, which count its host memory. Called by checks, in a child. */
#include "../../../core/option/option.h"
#include "../../../core/plugin/plugin.h"
#include "../../../core/runtime/hip.h"
#include "kit.h"
#include "program.h"
#include "ranges.h"
#include "software.h"

#include <stdlib.h>
#include <string.h>

#define STACK_REGION_BYTES ((size_t)64 << 20)

/* Of host memory that is given back: large tables may have pages that were never touched. */
#define STACK_POISONED_BYTES ((size_t)16 << 10)

uint64_t kit_host_calls, kit_host_fails_at;

/* ---- The plugin ---- */

static enum hipmm_status (*stack_plugin_create)(const struct hipmm_services *, const void *,
                                                struct hipmm_resource *const *, size_t, void **);
static void *(*stack_host_allocate)(const struct hipmm_services *services, size_t bytes);
static void (*stack_host_free)(const struct hipmm_services *services, void *ptr, size_t bytes);
static struct ranges stack_host_memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *stack_count_allocate(const struct hipmm_services *services, size_t bytes)
{
  struct range other;
  bool fails = __atomic_add_fetch(&kit_host_calls, 1, __ATOMIC_RELAXED) == kit_host_fails_at;
  void *ptr = fails ? NULL : stack_host_allocate(services, bytes);
  if (ptr) ranges_add(&stack_host_memory, (uintptr_t)ptr, bytes, &other);
  return ptr;
}

static void stack_count_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  if (!ptr) return;
  if (!ranges_remove(&stack_host_memory, (uintptr_t)ptr, bytes))
    kit_fail("services->host_free() got %p with %zu bytes, which services->host_allocate() did not give", ptr, bytes);
  memset(ptr, 0xA5, bytes < STACK_POISONED_BYTES ? bytes : STACK_POISONED_BYTES); /* so that a later use of it shows */
  stack_host_free(services, ptr, bytes);
}

/* The table of services is the core's own, which is not constant memory. */
static enum hipmm_status stack_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  struct hipmm_services *table = (struct hipmm_services *)(uintptr_t)services;
  stack_host_allocate = services->host_allocate;
  stack_host_free = services->host_free;
  table->host_allocate = stack_count_allocate;
  table->host_free = stack_count_free;
  return stack_plugin_create(services, options, upstreams, n_upstreams, self_out);
}

/* The tested file's folder comes first on the path. */
static void stack_set_path(void)
{
  const char *before = getenv("HIPMM_PLUGIN_PATH");
  const char *slash = strrchr(kit->file, '/');
  char *path;
  if (asprintf(&path, "%.*s%s%s", (int)(slash - kit->file), kit->file, before ? ":" : "", before ? before : "") < 0)
    kit_fail("out of memory");
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  free(path);
}

const struct hipmm_plugin *kit_plugin(void)
{
  static const struct plugin *plugin;
  if (plugin) return &plugin->descriptor;
  stack_set_path();
  builtin_add(&kit_probe);
  if (plugin_get(NULL, kit->type, &plugin)) kit_fail("it is refused: %s", hipmm_last_error_message());
  struct hipmm_plugin *descriptor = (struct hipmm_plugin *)(uintptr_t)&plugin->descriptor; /* the core's copy */
  stack_plugin_create = descriptor->create;
  if (descriptor->role != HIPMM_ROLE_RUNTIME) descriptor->create = stack_create;
  return descriptor;
}

const struct hipmm_plugin *kit_resource_plugin(void)
{
  const struct hipmm_plugin *plugin = kit_plugin();
  if (plugin->role == HIPMM_ROLE_RUNTIME) kit_skip("a runtime allocates nothing for hipmm");
  return plugin;
}

/* ---- The graph ---- */

static const struct hipmm_plugin *stack_plugin_below(void)
{
  const struct plugin *below;
  kit_resource_plugin();
  if (plugin_get(NULL, kit->over, &below)) kit_fail("--over: %s", hipmm_last_error_message());
  if (below->descriptor.role == HIPMM_ROLE_RUNTIME) kit_fail("--over: %s is a runtime, not a resource", kit->over);
  return &below->descriptor;
}

/* A value for an option that must be given. */
static json_t *stack_required_value(const struct hipmm_option *row)
{
  bool is_region = row->unit && !strcmp(row->unit, "region");
  switch (row->type) {
  case HIPMM_OPTION_BOOL: return json_false();
  case HIPMM_OPTION_INTEGER: return json_integer(row->minimum ? strtoll(row->minimum, NULL, 10) : 1);
  case HIPMM_OPTION_BYTES: return json_string(row->minimum ? row->minimum : "64MiB");
  case HIPMM_OPTION_RATIO: return json_real(row->minimum ? strtod(row->minimum, NULL) : 0.5);
  case HIPMM_OPTION_DURATION: return json_string(row->minimum ? row->minimum : "1ms");
  case HIPMM_OPTION_ENUM: return json_string(row->choices[0]);
  case HIPMM_OPTION_STRING: return json_string("/dev/null");
  case HIPMM_OPTION_RESOURCE: return json_string("probe");
  case HIPMM_OPTION_OBJECT: return json_string(is_region ? "region" : "program"); /* what program.h registers */
  default: return json_array();
  }
}

/* The resource's object: what was given, what must be given, and its type. */
static json_t *stack_object(const struct hipmm_plugin *plugin, json_t *given)
{
  json_t *object = given ? json_deep_copy(given) : json_object();
  for (uint32_t i = 0; i < plugin->n_options; i++)
    if (plugin->options[i].flags & HIPMM_OPTION_REQUIRED && !json_object_get(object, plugin->options[i].name))
      json_object_set_new(object, plugin->options[i].name, stack_required_value(&plugin->options[i]));
  json_object_set_new(object, "type", json_string(plugin->type));
  return object;
}

/* A type with several upstreams gets as many probes as it needs, all over the same resource. */
static json_t *stack_probes(const struct hipmm_plugin *plugin, json_t *resources)
{
  uint32_t n = plugin->min_upstreams ? plugin->min_upstreams : 1;
  json_t *names = json_array();
  for (uint32_t i = 0; i < n && plugin->max_upstreams; i++) {
    char name[32] = "probe";
    if (i) snprintf(name, sizeof name, "probe%u", i + 1);
    json_array_append_new(names, json_string(name));
    json_object_set_new(resources, name, json_pack("{s:s, s:s}", "type", kit_probe.type, "upstream", "below"));
  }
  json_t *first = json_array_get(names, 0);
  if (n > 1) return names;
  json_incref(first);
  json_decref(names);
  return first;
}

char *kit_resources(void)
{
  const struct hipmm_plugin *plugin = kit_resource_plugin(), *below = stack_plugin_below();
  json_t *resources = json_object(), *tested = stack_object(plugin, kit->options);
  json_t *upstream = stack_probes(plugin, resources);
  if (upstream) json_object_set_new(tested, "upstream", upstream);
  json_object_set_new(resources, "tested", tested);
  if (plugin->max_upstreams) {
    json_t *object = stack_object(below, NULL);
    bool is_over_device = below->role != HIPMM_ROLE_SOURCE;
    if (is_over_device) json_object_set_new(object, "upstream", json_string("bottom"));
    if (is_over_device) json_object_set_new(resources, "bottom", json_pack("{s:s}", "type", "device"));
    json_object_set_new(resources, "below", object);
  }
  char *text = json_dumps(resources, 0);
  json_decref(resources);
  if (!text) kit_fail("out of memory");
  return text;
}

bool kit_is_host_memory(void)
{
  const struct hipmm_plugin *plugin = kit_resource_plugin();
  const struct hipmm_plugin *source = plugin->max_upstreams ? stack_plugin_below() : plugin;
  return source->flags & HIPMM_PLUGIN_HOST_MEMORY;
}

/* ---- Up and down ---- */

bool kit_ignores_events;
static int64_t stack_events_before;

/* Of HIP that were created and not destroyed. */
static int64_t stack_count_events(void)
{
  return (int64_t)(software()->calls("hipEventCreateWithFlags") - software()->calls("hipEventDestroy"));
}

void kit_start(const char *scheduler)
{
  char *resources = kit_resources(), *graph;
  if (asprintf(&graph,
               "{\"runtime\": {\"type\": \"software\", \"memory\": \"256MiB\", \"host_memory\": \"256MiB\", "
               "\"scheduler\": \"%s\", \"seed\": 7, \"pageable_memory_access\": true}, \"resources\": %s, \"devices\": "
               "{\"default\": \"tested\"}}",
               scheduler, resources) < 0)
    kit_fail("out of memory");
  free(resources);
  kit_expect_ok(hipmm_init_from_string(graph), "reading a graph with it");
  free(graph);
  program_begin(STACK_REGION_BYTES);
  stack_events_before = stack_count_events();
}

enum hipmm_status kit_build(void)
{
  return hipmm_resource_get_for_device(0, &kit_resource);
}

void kit_open(const char *scheduler)
{
  kit_start(scheduler);
  kit_expect_ok(kit_build(), "create");
}

/* The region of the program is not the plugin's. */
void kit_close(size_t left)
{
  hip_table()->DeviceSynchronize();
  kit_close_busy(left);
}

void kit_close_busy(size_t left)
{
  static const char give_back[] =
      "free in destroy every block of the upstream and every handle of HIP, and all memory of "
      "services->host_allocate with its size; undo what was done for a request that fails";
  uint64_t calls = 0;
  hipmm_resource_release(kit_resource);
  kit_resource = NULL;
  kit_expect_ok(hipmm_finalize(), "hipmm_finalize");
  program_end();
  if (kit_probe_breach)
    kit_fail_with_mend("pass the alignment on as it is; it is a power of two, and at least HIPMM_ALIGNMENT",
                       "it asked its upstream for %s", kit_probe_breach);
  if (kit_probe_live() > left)
    kit_fail_with_mend(give_back, "after destroy, %zu of the upstream's blocks were not given back",
                       kit_probe_live() - left);
  if (!kit_ignores_events && stack_count_events() > stack_events_before)
    kit_fail_with_mend(give_back, "after destroy, %lld events of HIP were not destroyed",
                       (long long)(stack_count_events() - stack_events_before));
  if ((calls = software_live()))
    kit_fail_with_mend(give_back, "after destroy, the device has %llu blocks or handles that were not given back",
                       (unsigned long long)calls);
  if ((calls = software_faults()))
    kit_fail_with_mend("give memory back, in trim and destroy too, only after the work on it is over",
                       "%llu times work ran on memory that was given back already", (unsigned long long)calls);
  if (stack_host_memory.count)
    kit_fail_with_mend(give_back,
                       "after destroy, %zu blocks of services->host_allocate() (%llu bytes) were not given back",
                       stack_host_memory.count, (unsigned long long)stack_host_memory.bytes);
}
