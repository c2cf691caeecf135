/* SPDX-License-Identifier: MIT */
/* describe.c: `hipmm describe`: what a type does and which options it takes, or all types by role. */
#include "describe.h"

#include "../../../core/base/text.h"
#include "../../../core/graph/graph.h"
#include "../../../core/option/option.h"
#include "../cmd.h"
#include <stdlib.h>
#include <string.h>

enum describe_form { DESCRIBE_PAGE, DESCRIBE_JSON, DESCRIBE_MAN };

static const struct {
  uint32_t role;
  const char *heading;
} describe_roles[] = {{HIPMM_ROLE_SOURCE, "Sources: take memory from the runtime"},
                      {HIPMM_ROLE_SUB_ALLOCATOR, "Sub-allocators: divide memory of their upstream"},
                      {HIPMM_ROLE_ADAPTOR, "Adaptors: forward to their upstream, and add something"},
                      {HIPMM_ROLE_RUNTIME, "Runtimes: implement HIP"}};

enum { DESCRIBE_ROLES = sizeof describe_roles / sizeof *describe_roles };

/* ---- JSON: for programs that make forms and reference pages of it ------------------------------------------------- */

static json_t *describe_json_words(const char *const *words)
{
  json_t *list = words ? json_array() : json_null();
  for (; words && *words; words++) json_array_append_new(list, json_string(*words));
  return list;
}

static json_t *describe_json_options(const struct hipmm_option *options, uint32_t n);

static json_t *describe_json_option(const struct hipmm_option *row)
{
  json_t *option =
      json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:o, s:b, s:b, s:b}", "name", row->name, "type",
                option_type_name(row->type), "default", row->initial, "unit", row->unit, "doc", row->doc, "minimum",
                row->minimum, "maximum", row->maximum, "at_least", row->at_least, "choices",
                describe_json_words(row->choices), "required", (row->flags & HIPMM_OPTION_REQUIRED) != 0, "percent",
                (row->flags & HIPMM_OPTION_PERCENT) != 0, "reloadable", (row->flags & HIPMM_OPTION_RELOADABLE) != 0);
  if (row->n_fields > 0) json_object_set_new(option, "fields", describe_json_options(row->fields, row->n_fields));
  return option;
}

static json_t *describe_json_options(const struct hipmm_option *options, uint32_t n)
{
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) json_array_append_new(list, describe_json_option(&options[i]));
  return list;
}

static json_t *describe_json_features(const struct hipmm_feature *features, uint32_t n)
{
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:s?, s:s?}", "name", features[i].name, "unit", features[i].unit,
                                          "doc", features[i].doc));
  return list;
}

static json_t *describe_json_plugin(const struct plugin *plugin)
{
  const struct hipmm_plugin *descriptor = &plugin->descriptor;
  return json_pack("{s:s, s:s, s:o, s:s, s:s, s:{s:I, s:I}, s:o, s:o, s:o}", "type", descriptor->type, "version",
                   descriptor->version, "file", output_json_string(plugin->file), "role", role_name(descriptor->role),
                   "doc", descriptor->doc, "upstreams", "min", (json_int_t)descriptor->min_upstreams, "max",
                   (json_int_t)descriptor->max_upstreams, "options",
                   describe_json_options(descriptor->options, descriptor->n_options), "values",
                   describe_json_features(descriptor->values, descriptor->n_values), "actions",
                   describe_json_features(descriptor->actions, descriptor->n_actions));
}

/* ---- Types ----------------------------------------------------------------------------------------------------- */

/* Every type that can be loaded. `hipmm plugins` lists the others. */
struct describe_types {
  const struct plugin **items;
  size_t n;
  size_t width;
};

static struct describe_types describe_load_types(const struct plugin_path *path)
{
  struct describe_types types = {0};
  types.items = plugin_all(path, &types.n);
  for (size_t i = 0; i < types.n; i++) {
    size_t width = text_width(types.items[i]->descriptor.type);
    if (width > types.width) types.width = width;
  }
  return types;
}

static void describe_print_role(const struct describe_types *types, uint32_t role, const char *heading)
{
  char prefix[128];
  snprintf(prefix, sizeof prefix, "%*s", (int)(types->width + 4 < 60 ? types->width + 4 : 60), "");
  for (size_t i = 0, any = 0; i < types->n; i++) {
    const struct hipmm_plugin *descriptor = &types->items[i]->descriptor;
    if (descriptor->role != role) continue;
    if (!any++) printf("%s%s%s\n", style(STYLE_FAINT), heading, style(STYLE_OFF));
    printf("  ");
    print_padded(STYLE_NAME, descriptor->type, types->width + 2);
    struct wrap wrap = {.prefix = prefix, .column = types->width + 4};
    wrap_words(&wrap, STYLE_OFF, descriptor->doc);
    wrap_end(&wrap);
  }
}

static int describe_all(const struct plugin_path *path, enum describe_form form)
{
  struct describe_types types = describe_load_types(path);
  bool json = form == DESCRIBE_JSON, page = form == DESCRIBE_PAGE;
  json_t *list = json ? json_array() : NULL;
  for (size_t i = 0; json && i < types.n; i++) json_array_append_new(list, describe_json_plugin(types.items[i]));
  for (size_t i = 0; page && i < DESCRIBE_ROLES; i++)
    describe_print_role(&types, describe_roles[i].role, describe_roles[i].heading);
  for (size_t i = 0; form == DESCRIBE_MAN && i < types.n; i++) describe_man_plugin(types.items[i]);
  bool none = types.n == 0;
  free(types.items);
  if (none) say("no plugin was found; `hipmm plugins` says why");
  if (json) return output_json(json_pack("{s:o}", "types", list), none ? CMD_BAD : CMD_GOOD);
  if (page && !none) printf("\n`hipmm describe TYPE` lists the options of one\n");
  return output_finish(none ? CMD_BAD : CMD_GOOD);
}

static int describe_one(const struct plugin_path *path, const char *type, enum describe_form form)
{
  const struct plugin *plugin;
  if (plugin_get(path, type, &plugin) != HIPMM_OK) {
    say("%s", hipmm_last_error_message());
    return CMD_BAD;
  }
  if (form == DESCRIBE_JSON) return output_json(describe_json_plugin(plugin), CMD_GOOD);
  if (form == DESCRIBE_MAN)
    describe_man_plugin(plugin);
  else
    describe_print_plugin(plugin);
  return output_finish(CMD_GOOD);
}

/* No plugin file has the name: the user mistyped it, and no plugin is at fault. */
static bool describe_is_known(const struct plugin_path *path, const char *type)
{
  if (plugin_exists(path, type)) return true;
  struct describe_types types = describe_load_types(path);
  struct text_near near = text_near(type);
  for (size_t i = 0; i < types.n; i++) text_near_try(&near, types.items[i]->descriptor.type);
  if (near.name)
    say("describe: unknown type \"%s\"; did you mean \"%s\"?", type, near.name);
  else
    say("describe: unknown type \"%s\"; `hipmm describe` lists those found", type);
  free(types.items);
  return false;
}

static int describe_run(int argc, char **argv)
{
  bool json = false, man = false;
  const char *config = NULL;
  int status;
  const struct argument rows[] = {PLUGIN_PATH_ARGUMENT(&config),
                                  {"json", NULL, "print one JSON object", .flag = &json},
                                  {"man", NULL, "print a part of a manual page, for roff", .flag = &man}};
  struct arguments arguments = {&describe_command, rows, sizeof rows / sizeof *rows, 0, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (json && man) {
    say("describe: --json and --man exclude each other");
    return CMD_USAGE;
  }
  enum describe_form form = json ? DESCRIBE_JSON : man ? DESCRIBE_MAN : DESCRIBE_PAGE;

  struct graph *graph;
  struct plugin_path path;
  if (!source_plugin_path(config, &graph, &path)) return CMD_BAD;
  const char *type = arguments_operand(&arguments, 0);
  if (!type)
    status = describe_all(&path, form);
  else
    status = describe_is_known(&path, type) ? describe_one(&path, type, form) : CMD_USAGE;
  if (graph) graph_release(graph);
  return status;
}

const struct command describe_command = {
    "describe", "explain a type and its options, or list all types", "[TYPE]",
    "Prints what resources of a type do, the options that they take in the graph file, and the values and actions that "
    "they offer to a program. Without TYPE: all types found, by role.",
    describe_run};
