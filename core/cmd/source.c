/* SPDX-License-Identifier: MIT */
/* source.c: the graph file of a sub-command, searched for as hipmm_init() does, and the text of its diagnostics. */
#include "cmd.h"

#include "../base/environment.h"
#include "../base/output_file.h"
#include "../graph/graph_build.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool source_read_standard_input(struct source *source)
{
  struct diagnostics diagnostics = {.source = source->file};
  size_t bytes = 0;
  if (!graph_file_read(NULL, &diagnostics, &source->text, &bytes)) {
    source_print_errors(source->file, &diagnostics);
    diagnostics_clear(&diagnostics);
    return false;
  }
  char *ended = memchr(source->text, '\0', bytes) ? NULL : realloc(source->text, bytes + 1);
  if (ended) {
    ended[bytes] = '\0';
    source->text = ended;
    return true;
  }
  say("%s has a zero byte; a graph is UTF-8 text", source->file);
  source_close(source);
  return false;
}

void source_choose(struct source *source, const char *given)
{
  source->text = NULL;
  source->file = given ? given : environment_find_config(source->buffer, sizeof source->buffer);
}

bool source_choose_operand(struct source *source, const char *given)
{
  source_choose(source, given);
  if (!given || strcmp(given, "-") != 0) return true;
  source->file = "<stdin>";
  return source_read_standard_input(source);
}

void source_close(struct source *source)
{
  free(source->text);
  source->text = NULL;
}

const char *source_name(const struct source *source)
{
  return source->file ? source->file : "built in";
}

void diagnostic_print(FILE *stream, const char *file, const struct diagnostic *diagnostic)
{
  output_text(stream, file);
  if (diagnostic->line > 0) fprintf(stream, ":%d:%d", diagnostic->line, diagnostic->column);
  fputs(": ", stream);
  if (diagnostic->path && *diagnostic->path) {
    output_text(stream, diagnostic->path);
    fputs(": ", stream);
  }
  if (diagnostic->status == HIPMM_OK) fputs("warning: ", stream);
  output_text(stream, diagnostic->message);
  const char *variable = environment_get("HIPMM_CONFIG");
  bool is_named = variable && file && !strcmp(variable, file);
  if (is_named && diagnostic->status == HIPMM_E_IO && !(diagnostic->path && *diagnostic->path))
    fputs("; HIPMM_CONFIG names this file", stream);
}

void source_print_errors(const char *file, const struct diagnostics *diagnostics)
{
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) {
    if (diagnostic->status == HIPMM_OK) continue;
    fputs("hipmm: ", stderr);
    diagnostic_print(stderr, file, diagnostic);
    fputc('\n', stderr);
  }
}

bool source_read(const struct source *source, struct graph **graph_out)
{
  struct diagnostics diagnostics = {.source = source_name(source)};
  enum hipmm_status status = source->text   ? graph_from_string(source->text, source->file, &diagnostics, graph_out)
                             : source->file ? graph_from_file(source->file, &diagnostics, graph_out)
                                            : graph_built_in(&diagnostics, graph_out);
  if (status != HIPMM_OK) source_print_errors(source_name(source), &diagnostics);
  diagnostics_clear(&diagnostics);
  return status == HIPMM_OK;
}

enum hipmm_status source_initialise(const struct source *source)
{
  if (source->text) return hipmm_init_from_string(source->text);
  bool is_found = source->file == source->buffer; /* by the search of hipmm_init(), whose errors name HIPMM_CONFIG */
  return source->file && !is_found ? hipmm_init_from_file(source->file) : hipmm_init();
}

/* ---- Logs that are read ---- */

struct source_search {
  const struct source *source;
  char *const *logs;
  size_t n_logs;
  int device;
};

/* False if the pattern at `path` names a log; the error was printed. A terminal or a pipe cannot be overwritten. */
static bool source_spares(const struct source_search *search, const char *path, const char *pattern)
{
  char name[OUTPUT_FILE_NAME_BYTES];
  struct stat written, read;
  if (!output_file_expand(pattern, search->device, name) || stat(name, &written) || !S_ISREG(written.st_mode))
    return true;
  for (size_t i = 0; i < search->n_logs; i++) {
    const char *log = search->logs[i];
    bool is_there = !(strcmp(log, "-") ? stat(log, &read) : fstat(STDIN_FILENO, &read));
    if (!is_there || read.st_dev != written.st_dev || read.st_ino != written.st_ino) continue;
    say("%s: %s: %s is the log that is read, and would be overwritten; choose another graph (--config) or another file "
        "there",
        source_name(search->source), path, name);
    return false;
  }
  return true;
}

static bool source_is_resource_key(const char *key)
{
  for (size_t i = 0; graph_resource_keys[i]; i++)
    if (!strcmp(graph_resource_keys[i], key)) return true;
  return false;
}

/* Any option of a plugin may be a file's name: all that are text are looked at, those in lists too. */
static bool source_value_spares(const struct source_search *search, const char *path, json_t *value)
{
  char inner[1024];
  const char *key;
  json_t *item;
  size_t i;
  bool is_good = true;
  if (json_is_string(value)) return source_spares(search, path, json_string_value(value));
  json_object_foreach(value, key, item)
  {
    snprintf(inner, sizeof inner, "%s/%s", path, key);
    is_good = is_good && (source_is_resource_key(key) || source_value_spares(search, inner, item));
  }
  json_array_foreach(value, i, item)
  {
    snprintf(inner, sizeof inner, "%s/%zu", path, i);
    is_good = is_good && source_value_spares(search, inner, item);
  }
  return is_good;
}

/* RMM's variable is the default of the logging adaptor, as in RMM. */
static bool source_node_spares(const struct source_search *search, const struct graph_node *node)
{
  const char *variable = environment_get("RMM_LOG_FILE");
  bool is_default = !strcmp(node->plugin->descriptor.type, "logging") && !json_object_get(node->object, "file");
  if (is_default && variable && !source_spares(search, "RMM_LOG_FILE", variable)) return false;
  return source_value_spares(search, node->path, node->object);
}

bool source_spares_logs(const struct source *source, char *const *logs, size_t n_logs, int device)
{
  const struct source_search search = {source, logs, n_logs, device};
  struct diagnostics diagnostics = {.source = source_name(source)};
  struct graph *graph = NULL;
  if (source->text)
    graph_from_string(source->text, source->file, &diagnostics, &graph);
  else if (source->file)
    graph_from_file(source->file, &diagnostics, &graph);
  diagnostics_clear(&diagnostics); /* who builds the stack prints them */
  if (!graph) return true;
  bool is_good = (!graph->report || source_spares(&search, "/report", graph->report)) &&
                 source_value_spares(&search, "/runtime", graph->runtime_object);
  for (size_t i = 0; is_good && i < graph->n_nodes; i++) is_good = source_node_spares(&search, &graph->nodes[i]);
  graph_release(graph);
  return is_good;
}

/* ---- Plugin folders ---- */

bool source_plugin_path(const char *file, struct graph **graph_out, struct plugin_path *path_out)
{
  struct source source;
  struct diagnostics diagnostics = {0};
  *graph_out = NULL;
  *path_out = (struct plugin_path){0};
  source_choose(&source, file);
  if (file && !source_read(&source, graph_out)) return false;
  if (!file && source.file && graph_from_file(source.file, &diagnostics, graph_out) != HIPMM_OK)
    note("%s is not a valid graph, so its \"plugin_path\" is not used (`hipmm check` prints the errors)", source.file);
  diagnostics_clear(&diagnostics);
  if (*graph_out) *path_out = (*graph_out)->plugin_path;
  return true;
}
