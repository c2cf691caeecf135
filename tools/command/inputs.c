/* SPDX-License-Identifier: MIT */
/* inputs.c: see inputs.h. Files are compared by device and number, whatever their names. */
#include "inputs.h"

#include "../../core/base/environment.h"
#include "../../core/base/output_file.h"
#include "../../core/base/text.h"
#include "../../core/graph/graph_build.h"
#include "../../core/option/option_value.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a file is read, of which stat() tells. */
static bool inputs_have(const struct inputs *inputs, const struct stat *written)
{
  struct stat read;
  if (!S_ISREG(written->st_mode)) return false;
  for (size_t i = 0; i < inputs->n; i++) {
    const char *file = inputs->files[i];
    bool is_there = !(strcmp(file, "-") ? stat(file, &read) : fstat(STDIN_FILENO, &read));
    if (is_there && read.st_dev == written->st_dev && read.st_ino == written->st_ino) return true;
  }
  return false;
}

/* The same for a name. */
static bool inputs_have_name(const struct inputs *inputs, const char *name)
{
  struct stat written;
  return !stat(name, &written) && inputs_have(inputs, &written);
}

/* ---- Results --------------------------------------------------------------------------------------------------- */

bool inputs_check_output(const struct inputs *inputs, const char *name)
{
  struct stat written;
  if (name ? stat(name, &written) : fstat(STDOUT_FILENO, &written)) return true;
  if (!inputs_have(inputs, &written)) return true;
  if (name)
    say("%s: \"%s\" is an input too; write another file", inputs->command, name);
  else
    say("%s: standard output is an input too; write another file", inputs->command);
  return false;
}

/* ---- The debug log --------------------------------------------------------------------------------------------- */

bool inputs_check_log(const struct inputs *inputs)
{
  char name[OUTPUT_FILE_NAME_BYTES];
  const char *wanted = environment_get("HIPMM_LOG"), *pattern = wanted ? strchr(wanted, ':') : NULL;
  if (!pattern || !output_file_expand(pattern + 1, -1, name) || !inputs_have_name(inputs, name)) return true;
  say("HIPMM_LOG: %s is the log that is read, and would get lines of hipmm's own; name another file there", name);
  return false;
}

/* ---- Resources of a graph -------------------------------------------------------------------------------------- */

enum { INPUTS_MOST_ROTATED = 1000 }; /* the most that hipmm's own types allow */

struct inputs_search {
  const struct inputs *inputs;
  const struct source *source;
  int device;
  int rotated_files; /* of the node that is looked at: so many old files are renamed; 0: none */
};

/* False if the pattern at `path` names an input; the error was printed. */
static bool inputs_check_pattern(const struct inputs_search *search, const char *path, const char *pattern)
{
  char name[OUTPUT_FILE_NAME_BYTES], old[OUTPUT_FILE_NAME_BYTES + 32];
  if (!output_file_expand(pattern, search->device, name)) return true;
  if (inputs_have_name(search->inputs, name)) {
    say("%s: %s: %s is the log that is read, and would be overwritten; choose another graph (--config) or another file "
        "there",
        source_name(search->source), path, name);
    return false;
  }
  for (int i = 1; i <= search->rotated_files; i++) {
    snprintf(old, sizeof old, "%s.%d", name, i);
    if (!inputs_have_name(search->inputs, old)) continue;
    say("%s: %s: %s is the log that is read, and would be renamed or overwritten when %s is full (\"rotate_size\"); "
        "choose another graph (--config) or another file there",
        source_name(search->source), path, old, name);
    return false;
  }
  return true;
}

/* Any option of a plugin may be a file's name: all that are text are looked at, those in lists too. */
static bool inputs_check_value(const struct inputs_search *search, const char *path, json_t *value)
{
  char inner[1024];
  const char *key;
  json_t *item;
  size_t i;
  bool is_good = true;
  if (json_is_string(value)) return inputs_check_pattern(search, path, json_string_value(value));
  json_object_foreach(value, key, item)
  {
    snprintf(inner, sizeof inner, "%s/%s", path, key);
    is_good = is_good && (text_is_listed(graph_resource_keys, key) || inputs_check_value(search, inner, item));
  }
  json_array_foreach(value, i, item)
  {
    snprintf(inner, sizeof inner, "%s/%zu", path, i);
    is_good = is_good && inputs_check_value(search, inner, item);
  }
  return is_good;
}

/* A numeric option of a node, as given or by default; 0 if its type has no such option. */
static long double inputs_node_number(const struct graph_node *node, const char *name)
{
  const struct hipmm_plugin *plugin = &node->plugin->descriptor;
  const struct hipmm_option *row = option_find(plugin->options, plugin->n_options, name);
  struct option_number number;
  return row && option_current_number(row, node->object, &number) ? number.value : 0;
}

/* Where an option is not given, a variable of the environment may name the file. */
static bool inputs_check_variables(const struct inputs_search *search, const struct graph_node *node)
{
  const struct hipmm_plugin *plugin = &node->plugin->descriptor;
  bool is_good = true;
  for (uint32_t i = 0; is_good && i < plugin->n_options; i++) {
    const struct hipmm_option *row = &plugin->options[i];
    const char *pattern = row->variable ? environment_get(row->variable) : NULL;
    is_good =
        !pattern || json_object_get(node->object, row->name) || inputs_check_pattern(search, row->variable, pattern);
  }
  return is_good;
}

static bool inputs_check_node(struct inputs_search *search, const struct graph_node *node)
{
  long double files = inputs_node_number(node, "rotate_size") > 0 ? inputs_node_number(node, "rotate_files") : 0;
  search->rotated_files = files < INPUTS_MOST_ROTATED ? (int)files : INPUTS_MOST_ROTATED;
  bool is_good = inputs_check_variables(search, node) && inputs_check_value(search, node->path, node->object);
  search->rotated_files = 0;
  return is_good;
}

bool inputs_check_graph(const struct inputs *inputs, const struct source *source, int device)
{
  struct inputs_search search = {.inputs = inputs, .source = source, .device = device};
  struct diagnostics diagnostics = {.source = source_name(source)};
  struct graph *graph = NULL;
  if (!inputs_check_log(inputs)) return false;
  if (source->text)
    graph_from_string(source->text, source->file, &diagnostics, &graph);
  else if (source->file)
    graph_from_file(source->file, &diagnostics, &graph);
  diagnostics_clear(&diagnostics); /* who builds the stack prints them */
  if (!graph) return true;
  bool is_good = (!graph->report || inputs_check_pattern(&search, "/report", graph->report)) &&
                 inputs_check_value(&search, "/runtime", graph->runtime_object);
  for (size_t i = 0; is_good && i < graph->n_nodes; i++) is_good = inputs_check_node(&search, &graph->nodes[i]);
  graph_release(graph);
  return is_good;
}
