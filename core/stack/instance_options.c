/* SPDX-License-Identifier: MIT */
/* instance_options.c: reads the options of a live resource from JSON. Called by stack.c and by inspect/settings.c. */
#include "instance_options.h"
#include "../option/registry.h"
#include "../runtime/hip.h"
#include "stack.h"

#include <stdlib.h>
#include <string.h>

/* An option may name a resource below in the same stack, or one that the program gave to a resource made in code; never
 * the resource itself. */
static struct hipmm_resource *instance_options_resolve(void *closure, const char *name)
{
  struct instance *instance = closure;
  const struct stack *stack = instance->stack;
  for (size_t i = 0; i < stack->external.n; i++)
    if (!strcmp(instance_from(stack->external.resources[i])->node->name, name)) return stack->external.resources[i];
  int node = graph_find(stack->graph, name);
  return node < 0 || &stack->instances[node] == instance ? NULL : &stack->instances[node].resource;
}

void instance_options_free(const struct hipmm_plugin *plugin, struct instance_options *set)
{
  if (set->options) option_free(plugin->options, plugin->n_options, set->options);
  free(set->options);
  free(set->text);
  json_decref(set->object);
  free(set);
}

/* A copy of the object: JSON counts references without atomics, so one thread alone must use them. */
static struct instance_options *instance_options_allocate(const struct hipmm_plugin *plugin, const json_t *object)
{
  struct instance_options *set = calloc(1, sizeof *set);
  if (!set) return NULL;
  set->object = json_deep_copy(object);
  set->options = calloc(1, plugin->options_bytes + 1);
  set->text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
  if (set->object && set->options && set->text) return set;
  instance_options_free(plugin, set);
  return NULL;
}

struct instance_options *instance_options_new(struct instance *instance, const json_t *object, const char *path,
                                              struct diagnostics *report)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  struct instance_options *set = instance_options_allocate(plugin, object);
  if (!set) {
    diagnostics_add(report, HIPMM_E_OUT_OF_MEMORY, path, "no host memory for the options");
    return NULL;
  }
  struct option_context context = {.diagnostics = report,
                                   .path = path,
                                   .owner = plugin->type,
                                   .free_bytes = instance->free_bytes,
                                   .total_bytes = instance->stack->device_bytes,
                                   .n_devices = hip_device_count(),
                                   .keys = instance->stack->graph->resource_keys,
                                   .takes_objects = true,
                                   .resolve = instance_options_resolve,
                                   .closure = instance};
  if (option_fill_valid(plugin, set->object, &context, NULL, set->options)) return set;
  instance_options_free(plugin, set);
  return NULL;
}

static bool instance_options_names_objects(const struct hipmm_plugin *plugin, const json_t *object)
{
  for (uint32_t i = 0; i < plugin->n_options; i++) {
    const struct hipmm_option *row = &plugin->options[i];
    if ((row->initial || json_object_get(object, row->name)) && option_has_type(row, HIPMM_OPTION_OBJECT)) return true;
  }
  return false;
}

/* An earlier set with the same options. NULL where options name registered objects: a name may mean another object now. */
static struct instance_options *instance_options_find_equal(const struct instance *instance, const json_t *object)
{
  if (instance_options_names_objects(&instance->node->plugin->descriptor, object)) return NULL;
  char *text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
  struct key_tree_text *found = text ? key_tree_find_text(instance->options_by_text, text, strlen(text)) : NULL;
  free(text);
  return found ? (struct instance_options *)((char *)found - offsetof(struct instance_options, by_text)) : NULL;
}

/* The current object with one option changed; NULL after a report. */
static json_t *instance_options_change_object(const struct instance *instance, const struct hipmm_option *row,
                                              const char *text, struct diagnostics *report)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  json_t *object = json_deep_copy(atomic_load(&instance->options)->object);
  enum hipmm_status status = object ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
  if (object && !text) json_object_del(object, row->name);
  if (object && text) status = option_set_text(plugin->options, plugin->n_options, row->name, text, object);
  if (!status) return object;
  diagnostics_add(report, status, "",
                  status == HIPMM_E_ARGUMENT ? "%s is not valid UTF-8" : "no host memory for the new %s", row->name);
  json_decref(object);
  return NULL;
}

/* ---- Resources that an option names, once the instance is in use ---- */

/* A resource made in code may name another one, and holds a reference to it from then on. */
static bool instance_options_adopt(struct instance *instance, const char *name)
{
  struct stack *stack = instance->stack, *named = stack_named(name);
  struct external *external = &stack->external;
  bool fits = named && !named->external.is_whole && named->device == stack->device;
  if (fits && dependencies_include(&named->instances[0], instance)) fits = false;
  struct hipmm_resource **grown = NULL;
  if (fits)
    grown = realloc((void *)(uintptr_t)external->resources, (external->n + 2) * sizeof(struct hipmm_resource *));
  if (grown) {
    grown[external->n++] = &named->instances[0].resource;
    external->resources = grown;
  } else if (named) {
    stack_release(named);
  }
  return grown != NULL;
}

/* Nothing has looked at those that were adopted last. */
static void instance_options_abandon(struct instance *instance, size_t n_before)
{
  struct external *external = &instance->stack->external;
  while (external->n > n_before) stack_release(instance_from(external->resources[--external->n])->stack);
}

struct naming {
  struct instance *instance;
  struct diagnostics *report;
};

static void instance_options_refuse_named(const struct naming *naming, const struct instance *named, const char *path)
{
  const struct instance *instance = naming->instance;
  const char *name = named->node->name;
  if (named == instance)
    diagnostics_add(naming->report, HIPMM_E_CONFIG, path, "%s is this resource itself", name);
  else if (!named->created)
    diagnostics_add(naming->report, HIPMM_E_CONFIG, path, "%s is not built yet; get it with %s()", name,
                    instance->stack->external.is_whole ? "hipmm_stack_get_by_name" : "hipmm_resource_get_by_name");
  else if (dependencies_include(named, instance))
    diagnostics_add(naming->report, HIPMM_E_CONFIG, path, "%s depends on %s, so that %s cannot depend on it", name,
                    instance->node->name, instance->node->name);
}

/* Names that nothing has are option_fill()'s to refuse. */
static void instance_options_check_named(void *closure, const char *name, const char *path)
{
  const struct naming *naming = closure;
  struct instance *instance = naming->instance;
  struct stack *stack = instance->stack;
  bool is_made_in_code = stack->entry.name && !stack->external.is_whole;
  const struct hipmm_resource *found = instance_options_resolve(instance, name);
  int node = found ? -1 : graph_find(stack->graph, name);
  if (node >= 0) {
    instance_options_refuse_named(naming, &stack->instances[node], path);
  } else if (found) {
    instance_options_refuse_named(naming, instance_from(found), path);
  } else if (is_made_in_code && !instance_options_adopt(instance, name)) {
    struct stack *above = stack_named(name);
    if (above && !above->external.is_whole) instance_options_refuse_named(naming, &above->instances[0], path);
    if (above) stack_release(above);
  }
}

struct linking {
  struct instance *instance;
  enum hipmm_status status;
};

static void instance_options_link_named(void *closure, const char *name, const char *path)
{
  struct linking *linking = closure;
  struct hipmm_resource *named = instance_options_resolve(linking->instance, name);
  (void)path;
  if (!linking->status && named) linking->status = dependencies_add(linking->instance, instance_from(named));
}

enum hipmm_status instance_options_link(struct instance *instance, const struct instance_options *set)
{
  struct linking linking = {.instance = instance};
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  option_references(plugin->options, plugin->n_options, set->object, instance_options_link_named, &linking);
  return linking.status;
}

bool instance_options_changed(struct instance *instance, const struct hipmm_option *row, const char *text,
                              struct diagnostics *report, struct instance_options **set_out, bool *is_known_out)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  json_t *object = instance_options_change_object(instance, row, text, report);
  struct naming naming = {.instance = instance, .report = report};
  size_t n_external = instance->stack->external.n;
  if (object && row->flags & HIPMM_OPTION_ADDS_RESOURCES)
    option_references(plugin->options, plugin->n_options, object, instance_options_check_named, &naming);
  bool is_good = object && !report->n_errors;
  *set_out = is_good ? instance_options_find_equal(instance, object) : NULL;
  *is_known_out = *set_out != NULL;
  if (is_good && !*set_out) *set_out = instance_options_new(instance, object, "", report);
  json_decref(object);
  if (!*set_out) instance_options_abandon(instance, n_external);
  return *set_out != NULL;
}

void instance_options_add(struct instance *instance, struct instance_options *set)
{
  set->older = instance->all_options;
  instance->all_options = set;
  key_tree_insert_text(&instance->options_by_text, &set->by_text, set->text, strlen(set->text));
}

void instance_options_forget_objects(const struct hipmm_plugin *plugin, const json_t *object)
{
  for (uint32_t i = 0; i < plugin->n_options; i++) {
    const struct hipmm_option *row = &plugin->options[i];
    const char *name = row->type == HIPMM_OPTION_OBJECT ? json_string_value(json_object_get(object, row->name)) : NULL;
    if (name && *name == REGISTRY_PRIVATE) registry_remove_private(row->unit, name);
  }
}

void instance_options_free_all(struct instance *instance)
{
  instance->options_by_text = NULL;
  while (instance->all_options) {
    struct instance_options *set = instance->all_options;
    instance->all_options = set->older;
    if (instance->stack->entry.is_ready)
      instance_options_forget_objects(&instance->node->plugin->descriptor, set->object);
    instance_options_free(&instance->node->plugin->descriptor, set);
  }
}
