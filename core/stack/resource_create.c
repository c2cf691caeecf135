/* SPDX-License-Identifier: MIT */
/* resource_create.c: resources made in code: checks the arguments, turns them into a graph of one node, and builds the graph
 * over the resources that the program gave. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"
#include "../option/option.h"
#include "../option/registry.h"
#include "device_table.h"
#include "instance_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A resource that is being created. */
struct creation {
  const struct hipmm_recipe *recipe;
  int device;
  const struct plugin *plugin;
  json_t *options;
  struct hipmm_resource **resources; /* upstreams, then named resources */
  bool *is_named;                    /* of each: by an option */
  size_t n;
  struct diagnostics report; /* of the options */
};

/* ---- Resources below ---- */

static enum hipmm_status resource_create_check_resources(const struct creation *creation, const char *what,
                                                         struct hipmm_resource *const *resources, size_t n)
{
  if (n && !resources) return error_set(HIPMM_E_ARGUMENT, "%s is NULL, but there should be %zu", what, n);
  for (size_t i = 0; i < n; i++) {
    if (!resources[i]) return error_set(HIPMM_E_ARGUMENT, "%s[%zu] is NULL", what, i);
    if (!instance_is_live(resources[i])) return error_set(HIPMM_E_ARGUMENT, "%s[%zu] is not a live resource", what, i);
    int device = hipmm_resource_device(resources[i]);
    if (device != creation->device)
      return error_set(HIPMM_E_ARGUMENT, "%s[%zu], %s, serves device %d; a resource of device %d stands on its own",
                       what, i, hipmm_resource_name(resources[i]), device, creation->device);
  }
  return HIPMM_OK;
}

static enum hipmm_status resource_create_check_count(const struct creation *creation)
{
  const struct hipmm_plugin *descriptor = &creation->plugin->descriptor;
  unsigned least = descriptor->min_upstreams, most = descriptor->max_upstreams;
  size_t n = creation->recipe->n_upstreams;
  if (n >= least && n <= most) return HIPMM_OK;
  if (!most) return error_set(HIPMM_E_ARGUMENT, "%s takes no upstream, not %zu", descriptor->type, n);
  if (least == most)
    return error_set(HIPMM_E_ARGUMENT, "%s takes %u upstream%s, not %zu", descriptor->type, most, text_plural(most), n);
  return error_set(HIPMM_E_ARGUMENT, "%s takes %u to %u upstreams, not %zu", descriptor->type, least, most, n);
}

static enum hipmm_status resource_create_gather(struct creation *creation)
{
  const struct hipmm_recipe *recipe = creation->recipe;
  enum hipmm_status status =
      resource_create_check_resources(creation, "upstreams", recipe->upstreams, recipe->n_upstreams);
  if (!status)
    status = resource_create_check_resources(creation, "named_resources", recipe->named_resources,
                                             recipe->n_named_resources);
  if (!status) status = resource_create_check_count(creation);
  if (status) return status;
  creation->n = recipe->n_upstreams + recipe->n_named_resources;
  creation->resources = calloc(creation->n + 1, sizeof *creation->resources);
  creation->is_named = calloc(creation->n + 1, sizeof *creation->is_named);
  if (!creation->resources || !creation->is_named) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (recipe->n_upstreams)
    memcpy(creation->resources, recipe->upstreams, recipe->n_upstreams * sizeof *creation->resources);
  if (recipe->n_named_resources)
    memcpy(creation->resources + recipe->n_upstreams, recipe->named_resources,
           recipe->n_named_resources * sizeof *creation->resources);
  return HIPMM_OK;
}

/* ---- Options ---- */

static void resource_create_refuse_name(struct creation *creation, const char *name, const char *path)
{
  char shown[TEXT_QUOTE_BYTES];
  struct text_near near = text_near(name);
  for (size_t i = 0; i < creation->n; i++) text_near_try(&near, hipmm_resource_name(creation->resources[i]));
  text_quote(name, shown, sizeof shown);
  if (near.name)
    diagnostics_add(&creation->report, HIPMM_E_CONFIG, path, "no resource is called %s; did you mean \"%s\"?", shown,
                    near.name);
  else
    diagnostics_add(&creation->report, HIPMM_E_CONFIG, path,
                    "no resource is called %s among those given as upstreams and named_resources", shown);
}

/* A name must stand for one resource. */
static void resource_create_check_name(void *closure, const char *name, const char *path)
{
  struct creation *creation = closure;
  const struct hipmm_resource *found = NULL;
  for (size_t i = 0; i < creation->n; i++) {
    const struct hipmm_resource *resource = creation->resources[i];
    if (strcmp(hipmm_resource_name(resource), name)) continue;
    if (found && found != resource)
      diagnostics_add(&creation->report, HIPMM_E_CONFIG, path, "two of the resources given are called \"%s\"", name);
    found = resource;
    creation->is_named[i] = true;
  }
  if (!found) resource_create_refuse_name(creation, name, path);
}

static enum hipmm_status resource_create_add_settings(struct creation *creation)
{
  const struct hipmm_recipe *recipe = creation->recipe;
  const struct hipmm_plugin *descriptor = &creation->plugin->descriptor;
  if (recipe->n_settings && !recipe->settings)
    return error_set(HIPMM_E_ARGUMENT, "settings is NULL, but there should be %zu", recipe->n_settings);
  for (size_t i = 0; i < recipe->n_settings; i++) {
    const struct hipmm_setting *setting = &recipe->settings[i];
    if (!setting->name || !setting->value)
      return error_set(HIPMM_E_ARGUMENT, "settings[%zu] has no %s", i, setting->name ? "value" : "name");
    enum hipmm_status status =
        option_set_text(descriptor->options, descriptor->n_options, setting->name, setting->value, creation->options);
    if (status)
      return error_set(
          status, status == HIPMM_E_ARGUMENT ? "settings[%zu] is not valid UTF-8" : "no host memory for settings[%zu]",
          i);
  }
  return HIPMM_OK;
}

/* Recipes of older programs end before the objects. */
static bool resource_create_has_objects(const struct hipmm_recipe *recipe)
{
  return recipe->struct_size >= offsetof(struct hipmm_recipe, n_objects) + sizeof recipe->n_objects;
}

static enum hipmm_status resource_create_add_object(struct creation *creation, size_t index)
{
  char name[REGISTRY_PRIVATE_BYTES];
  const struct hipmm_plugin *descriptor = &creation->plugin->descriptor;
  const struct hipmm_object *object = &creation->recipe->objects[index];
  if (!object->option || !object->object)
    return error_set(HIPMM_E_ARGUMENT, "objects[%zu] has no %s", index, object->option ? "object" : "option");
  const struct hipmm_option *row = option_find(descriptor->options, descriptor->n_options, object->option);
  if (!row || row->type != HIPMM_OPTION_OBJECT)
    return error_set(HIPMM_E_ARGUMENT, "objects[%zu]: %s has no option %.100s that takes an object", index,
                     descriptor->type, object->option);
  if (json_object_get(creation->options, row->name))
    return error_set(HIPMM_E_ARGUMENT, "objects[%zu]: the option %s is given twice", index, row->name);
  enum hipmm_status status = registry_add_private(row->unit, object->object, name);
  if (!status && json_object_set_new(creation->options, row->name, json_string(name))) {
    registry_remove_private(row->unit, name);
    status = error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  }
  return status;
}

static enum hipmm_status resource_create_add_objects(struct creation *creation)
{
  const struct hipmm_recipe *recipe = creation->recipe;
  size_t n = resource_create_has_objects(recipe) ? recipe->n_objects : 0;
  enum hipmm_status status = HIPMM_OK;
  if (n && !recipe->objects) return error_set(HIPMM_E_ARGUMENT, "objects is NULL, but there should be %zu", n);
  for (size_t i = 0; i < n && !status; i++) status = resource_create_add_object(creation, i);
  return status;
}

static enum hipmm_status resource_create_check_all_named(const struct creation *creation)
{
  for (size_t i = creation->recipe->n_upstreams; i < creation->n; i++)
    if (!creation->is_named[i])
      return error_set(HIPMM_E_ARGUMENT, "named_resources[%zu], %s, is named by no option",
                       i - creation->recipe->n_upstreams, hipmm_resource_name(creation->resources[i]));
  return HIPMM_OK;
}

static enum hipmm_status resource_create_read_options(struct creation *creation)
{
  const struct hipmm_plugin *descriptor = &creation->plugin->descriptor;
  creation->options = graph_parse_options(creation->recipe->options, &creation->report);
  if (!creation->options && creation->report.n_errors) return diagnostics_raise(&creation->report);
  if (!creation->options) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  enum hipmm_status status = resource_create_add_settings(creation);
  if (!status) status = resource_create_add_objects(creation);
  if (status) return status;
  option_references(descriptor->options, descriptor->n_options, creation->options, resource_create_check_name,
                    creation);
  status = diagnostics_raise(&creation->report);
  return status ? status : resource_create_check_all_named(creation);
}

/* ---- Creating ---- */

static enum hipmm_status resource_create_find_type(struct creation *creation, struct graph *graph)
{
  char shown[TEXT_QUOTE_BYTES];
  struct diagnostics report = {0};
  const struct hipmm_recipe *recipe = creation->recipe;
  if (!recipe->type) return error_set(HIPMM_E_ARGUMENT, "type is NULL; `hipmm plugins` lists the types");
  if (recipe->name && !text_is_name(recipe->name))
    return error_set(HIPMM_E_ARGUMENT, "%s is not a name; " TEXT_NAME_RULE,
                     text_quote(recipe->name, shown, sizeof shown), TEXT_LONGEST_NAME);
  enum hipmm_status status = graph_type(graph, recipe->type, &report, &creation->plugin);
  if (status) status = diagnostics_raise(&report);
  diagnostics_clear(&report);
  return status;
}

static enum hipmm_status resource_create_build(struct creation *creation, struct hipmm_resource **resource_out)
{
  struct stack *stack;
  const struct hipmm_recipe *recipe = creation->recipe;
  const struct external external = {.resources = creation->resources,
                                    .n = creation->n,
                                    .n_upstreams = recipe->n_upstreams,
                                    .name = recipe->name ? recipe->name : recipe->type,
                                    .is_named = recipe->name != NULL};
  struct graph *graph = graph_single(external.name, creation->plugin, creation->options);
  if (!graph) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  enum hipmm_status status = device_table_build_beside(graph, creation->device, &external, &stack);
  graph_release(graph);
  if (status) return status;
  atomic_store(&stack->instances[0].references, 1); /* the caller's, which is the stack's own */
  *resource_out = &stack->instances[0].resource;
  return HIPMM_OK;
}

/* The graph that finds plugins, with a reference: of the table of devices, or, for a library that has only stacks of its
 * own, of the first resource given. */
static enum hipmm_status resource_create_find_graph(int device, const struct hipmm_recipe *recipe,
                                                    struct graph **graph_out)
{
  const struct hipmm_resource *first = recipe->n_upstreams && recipe->upstreams ? recipe->upstreams[0] : NULL;
  if (!hipmm_is_initialized() && first) {
    enum hipmm_status status = device_table_check(device);
    if (!status) status = resource_check(first);
    if (status) return status;
    *graph_out = instance_from(first)->stack->graph;
    graph_retain(*graph_out);
    return HIPMM_OK;
  }
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_graph(device, graph_out);
  lifecycle_leave(); /* what follows needs the graph alone */
  return status;
}

static enum hipmm_status resource_create_from(int device, const struct hipmm_recipe *recipe,
                                              struct hipmm_resource **resource_out)
{
  struct graph *graph;
  struct creation creation = {.recipe = recipe, .device = device, .report = {.source = "<options>"}};
  enum hipmm_status status = resource_create_find_graph(device, recipe, &graph);
  if (status) return status;
  status = resource_create_find_type(&creation, graph);
  if (!status) status = resource_create_gather(&creation);
  if (!status) status = resource_create_read_options(&creation);
  if (!status) status = resource_create_build(&creation, resource_out);
  graph_release(graph);
  diagnostics_clear(&creation.report);
  if (status && creation.options) instance_options_forget_objects(&creation.plugin->descriptor, creation.options);
  json_decref(creation.options);
  free(creation.resources);
  free(creation.is_named);
  return status;
}

enum hipmm_status hipmm_resource_create_from(int device, const struct hipmm_recipe *recipe,
                                             struct hipmm_resource **resource_out)
{
  enum hipmm_status status = lifecycle_check_use(resource_out, "resource_out");
  if (!status) status = lifecycle_check_use(recipe, "recipe");
  if (status) return status;
  size_t least = offsetof(struct hipmm_recipe, n_named_resources) + sizeof recipe->n_named_resources;
  if (recipe->struct_size < least)
    return error_set(HIPMM_E_ARGUMENT, "struct_size of the recipe is %zu; set it to sizeof(struct hipmm_recipe), %zu",
                     recipe->struct_size, least);
  return resource_create_from(device, recipe, resource_out);
}

enum hipmm_status hipmm_resource_create(int device, const char *type, const char *options_json,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                        struct hipmm_resource **resource_out)
{
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = type,
                                      .options = options_json,
                                      .upstreams = upstreams,
                                      .n_upstreams = n_upstreams};
  return hipmm_resource_create_from(device, &recipe, resource_out);
}
