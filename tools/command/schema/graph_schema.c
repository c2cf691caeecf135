/* SPDX-License-Identifier: MIT */
/* graph_schema.c: the JSON Schema of a graph file, from the option tables of all plugins found. The graph reader refuses
 * whatever the schema refuses. Names, cycles and depths cannot be written in a schema; only the reader checks them. */
#include "../../../core/base/text.h"
#include "../../../core/graph/graph_build.h"
#include "schema.h"

#include <stdlib.h>
#include <string.h>

/* All plugins found, sorted by type. */
struct schema_plugins {
  const struct plugin **items;
  size_t count;
};

static bool graph_schema_is_runtime(const struct plugin *plugin)
{
  return plugin->descriptor.role == HIPMM_ROLE_RUNTIME;
}

static json_t *graph_schema_text(const char *description, const char *type)
{
  return json_pack("{s:s, s:s}", "type", type, "description", description);
}

#define GRAPH_SCHEMA_STACK "[\"statistics\", {\"type\": \"pool\", \"maximum_size\": \"90%\"}, \"device\"]"

/* Adds a title, and an example in JSON, or as a text that is no JSON. Returns `schema`. */
static json_t *graph_schema_title(json_t *schema, const char *title, const char *example)
{
  json_t *value = json_loads(example, JSON_DECODE_ANY, NULL);
  json_object_set_new(schema, "title", json_string(title));
  json_object_set_new(schema, "examples", json_pack("[o]", value ? value : json_string(example)));
  return schema;
}

static json_t *graph_schema_reference(const char *name)
{
  return json_pack("{s:s+}", "$ref", "#/$defs/", name);
}

/* ---- One plugin ------------------------------------------------------------------------------------------------ */

static json_t *graph_schema_upstream(const struct hipmm_plugin *descriptor)
{
  json_t *name = json_pack("{s:s, s:s, s:s, s:[s]}", "type", "string", "title", "Upstream", "description",
                           "The resource below", "examples", "memory");
  if (descriptor->max_upstreams == 1) return name;
  json_t *list = json_pack("{s:s, s:{s:s}, s:i, s:I}", "type", "array", "items", "type", "string", "minItems",
                           descriptor->min_upstreams, "maxItems", (json_int_t)descriptor->max_upstreams);
  if (descriptor->min_upstreams <= 1) return json_pack("{s:[o, o]}", "anyOf", name, list);
  json_decref(name);
  json_object_set_new(list, "title", json_string("Upstreams"));
  json_object_set_new(list, "description", json_string("The resources below, in their order"));
  json_object_set_new(list, "examples", json_pack("[[s, s]]", "first", "second"));
  return list;
}

/* The object of a resource of this type, in "resources" and in "stack", or of a runtime. */
static json_t *graph_schema_object(const struct hipmm_plugin *descriptor)
{
  json_t *properties = json_pack("{s:{s:s}}", "type", "const", descriptor->type);
  json_t *required = json_pack("[s]", "type");
  if (descriptor->max_upstreams > 0) json_object_set_new(properties, "upstream", graph_schema_upstream(descriptor));
  for (uint32_t i = 0; i < descriptor->n_options; i++) {
    const struct hipmm_option *row = &descriptor->options[i];
    json_object_set_new(properties, row->name, option_schema(row));
    if (row->flags & HIPMM_OPTION_REQUIRED) json_array_append_new(required, json_string(row->name));
  }
  return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b}", "title", descriptor->type, "description",
                   descriptor->doc ? descriptor->doc : "", "type", "object", "properties", properties, "required",
                   required, "additionalProperties", 0);
}

static bool graph_schema_needs_options(const struct hipmm_plugin *descriptor)
{
  for (uint32_t i = 0; i < descriptor->n_options; i++)
    if (descriptor->options[i].flags & HIPMM_OPTION_REQUIRED) return true;
  return false;
}

/* ---- All types ------------------------------------------------------------------------------------------------- */

/* "if" the object is of this type, "then" it must match its plugin's definition. */
static json_t *graph_schema_choice(const struct hipmm_plugin *descriptor)
{
  return json_pack("{s:{s:{s:{s:s}}}, s:o}", "if", "properties", "type", "const", descriptor->type, "then",
                   graph_schema_reference(descriptor->type));
}

/* In "resources" an object of this type must name its upstream. */
static json_t *graph_schema_upstream_rule(const struct hipmm_plugin *descriptor)
{
  return json_pack("{s:{s:{s:{s:s}}}, s:{s:[s]}}", "if", "properties", "type", "const", descriptor->type, "then",
                   "required", "upstream");
}

static json_t *graph_schema_types_of(const struct schema_plugins *plugins, bool only_plain)
{
  json_t *types = json_array();
  for (size_t i = 0; i < plugins->count; i++) {
    const struct hipmm_plugin *descriptor = &plugins->items[i]->descriptor;
    if (!graph_schema_is_runtime(plugins->items[i]) && !(only_plain && graph_schema_needs_options(descriptor)))
      json_array_append_new(types, json_string(descriptor->type));
  }
  return types;
}

/* The object of any resource; an upstream is neither required nor forbidden. */
static json_t *graph_schema_any_object(const struct schema_plugins *plugins)
{
  json_t *choices = json_array();
  for (size_t i = 0; i < plugins->count; i++)
    if (!graph_schema_is_runtime(plugins->items[i]))
      json_array_append_new(choices, graph_schema_choice(&plugins->items[i]->descriptor));
  return json_pack("{s:s, s:{s:{s:o}}, s:[s], s:o}", "type", "object", "properties", "type", "enum",
                   graph_schema_types_of(plugins, false), "required", "type", "allOf", choices);
}

static json_t *graph_schema_resource(const struct schema_plugins *plugins)
{
  json_t *rules = json_pack("[o]", graph_schema_reference(".object"));
  for (size_t i = 0; i < plugins->count; i++)
    if (plugins->items[i]->descriptor.min_upstreams > 0)
      json_array_append_new(rules, graph_schema_upstream_rule(&plugins->items[i]->descriptor));
  return json_pack("{s:o}", "allOf", rules);
}

static json_t *graph_schema_element(const struct schema_plugins *plugins)
{
  json_t *object =
      json_pack("{s:[o, {s:{s:[s]}}]}", "allOf", graph_schema_reference(".object"), "not", "required", "upstream");
  return json_pack("{s:[{s:o}, o]}", "anyOf", "enum", graph_schema_types_of(plugins, true), object);
}

/* The common definitions begin with a dot, which no type does. */
static json_t *graph_schema_definitions(const struct schema_plugins *plugins)
{
  json_t *all = json_object();
  for (size_t i = 0; i < plugins->count; i++)
    json_object_set_new(all, plugins->items[i]->descriptor.type, graph_schema_object(&plugins->items[i]->descriptor));
  json_object_set_new(all, ".object", graph_schema_any_object(plugins));
  json_object_set_new(all, ".resource", graph_schema_resource(plugins));
  json_object_set_new(all, ".element", graph_schema_element(plugins));
  return all;
}

/* ---- The top of the file --------------------------------------------------------------------------------------- */

/* The names of runtimes, on this and other machines. */
static json_t *graph_schema_runtime_words(const struct schema_plugins *plugins)
{
  json_t *words = json_pack("[s, s, s]", "auto", "amd", "nvidia");
  for (size_t i = 0; i < plugins->count; i++)
    if (graph_schema_is_runtime(plugins->items[i]) && strcmp(plugins->items[i]->descriptor.type, "nvidia"))
      json_array_append_new(words, json_string(plugins->items[i]->descriptor.type));
  return words;
}

static json_t *graph_schema_runtime(const struct schema_plugins *plugins)
{
  json_t *names = json_pack("{s:[{s:o}, {s:s, s:s}]}", "anyOf", "enum", graph_schema_runtime_words(plugins), "type",
                            "string", "pattern", "/");
  json_t *forms = json_pack("[O]", names);
  for (size_t i = 0; i < plugins->count; i++)
    if (graph_schema_is_runtime(plugins->items[i]))
      json_array_append_new(forms, graph_schema_reference(plugins->items[i]->descriptor.type));
  json_array_append_new(forms, json_pack("{s:s, s:{s:o}, s:[s], s:b}", "type", "object", "properties", "type", names,
                                         "required", "type", "additionalProperties", 0));
  return json_pack("{s:s, s:s, s:o}", "description",
                   "The library that implements HIP: auto, amd, nvidia, software, or the path of one", "default",
                   "auto", "anyOf", forms);
}

static json_t *graph_schema_plugin_path(void)
{
  return json_pack("{s:s, s:[{s:s, s:i}, {s:s, s:{s:s, s:i}}]}", "description",
                   "Folders that hold further plugins; relative ones start at this file's folder", "anyOf", "type",
                   "string", "minLength", 1, "type", "array", "items", "type", "string", "minLength", 1);
}

static json_t *graph_schema_resources(void)
{
  return json_pack("{s:s, s:s, s:i, s:{s:s, s:i}, s:o}", "description", "The resources, by name", "type", "object",
                   "maxProperties", GRAPH_MAX_RESOURCES, "propertyNames", "pattern", TEXT_NAME_PATTERN, "maxLength",
                   TEXT_LONGEST_NAME, "additionalProperties", graph_schema_reference(".resource"));
}

static json_t *graph_schema_devices(void)
{
  return json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "description",
                   "The resource at the top of each device's stack: \"default\", or a device's number", "type",
                   "object", "propertyNames", "pattern", "^(default|0|[1-9][0-9]{0,8})$", "additionalProperties",
                   "type", "string");
}

static json_t *graph_schema_stack(void)
{
  return json_pack("{s:s, s:s, s:i, s:i, s:o}", "description", "A straight stack for all devices, top first", "type",
                   "array", "minItems", 1, "maxItems", GRAPH_MAX_DEPTH, "items", graph_schema_reference(".element"));
}

static json_t *graph_schema_top_properties(const struct schema_plugins *plugins)
{
  json_t *version = json_pack("{s:i, s:i, s:s}", "const", 1, "default", 1, "description", "Of the file's format");
  json_t *publish = json_pack("{s:s, s:b, s:s}", "type", "boolean", "default", 0, "description",
                              "Whether processes publish their counters, for `hipmm top` and `hipmm export`");
  json_t *control = json_pack("{s:s, s:b, s:s}", "type", "boolean", "default", 0, "description",
                              "Whether `hipmm ctl` of the same user may read and change the process's resources");
  json_t *report = graph_schema_text("File to which a report is written as JSON at the last hipmm_finalize(), or when "
                                     "the process exits; %p in its name is the process, %h the host, %r the rank",
                                     "string");
  json_t *current_device = json_pack("{s:s, s:s}", "const", "local_rank", "description",
                                     "Initialisation makes the device of the process's rank on its host current for "
                                     "the calling thread; by default the program chooses");
  json_t *address = graph_schema_text("The address of this schema", "string");
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "$schema",
                   graph_schema_title(address, "Schema", "/usr/share/hipmm/hipmm.schema.json"), "version",
                   graph_schema_title(version, "Version", "1"), "runtime",
                   graph_schema_title(graph_schema_runtime(plugins), "Runtime", "auto"), "plugin_path",
                   graph_schema_title(graph_schema_plugin_path(), "Folders of plugins", "plugins"), "publish",
                   graph_schema_title(publish, "Publish counters", "true"), "control",
                   graph_schema_title(control, "Control from outside", "true"), "report",
                   graph_schema_title(report, "Report", "report.%r.json"), "current_device",
                   graph_schema_title(current_device, "Current device", "local_rank"), graph_limit_physical.name,
                   graph_schema_title(option_schema(&graph_limit_physical), "Limit of physical memory", "16GiB"),
                   "resources",
                   graph_schema_title(graph_schema_resources(), "Resources",
                                      "{\"memory\": {\"type\": \"device\"}, \"pool\": {\"type\": \"pool\", "
                                      "\"upstream\": \"memory\", \"maximum_size\": \"90%\"}}"),
                   "devices", graph_schema_title(graph_schema_devices(), "Devices", "{\"default\": \"pool\"}"), "stack",
                   graph_schema_title(graph_schema_stack(), "Stack", GRAPH_SCHEMA_STACK));
}

json_t *graph_schema(const struct plugin_path *path)
{
  struct schema_plugins plugins;
  plugins.items = plugin_all(path, &plugins.count);
  json_t *one_form = json_pack("{s:[{s:[s, s]}, {s:[s, s]}]}", "anyOf", "required", "stack", "resources", "required",
                               "stack", "devices");
  json_t *schema = json_pack("{s:s, s:s, s:s, s:s, s:o, s:b, s:o, s:o}", "$schema",
                             "https://json-schema.org/draft/2020-12/schema", "title", "hipmm graph", "description",
                             "A graph of memory resources for the GPU memory runtime hipmm, as hipmm.json has it",
                             "type", "object", "properties", graph_schema_top_properties(&plugins),
                             "additionalProperties", 0, "not", one_form, "$defs", graph_schema_definitions(&plugins));
  json_object_set_new(schema, "examples", json_pack("[{s:o}]", "stack", json_loads(GRAPH_SCHEMA_STACK, 0, NULL)));
  free(plugins.items);
  return schema;
}
