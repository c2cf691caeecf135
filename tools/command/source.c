/* SPDX-License-Identifier: MIT */
/* source.c: the graph file of a sub-command, searched for as hipmm_init() does, and the text of its diagnostics. */
#include "cmd.h"

#include "../../core/base/environment.h"
#include "../../core/base/trust.h"
#include "../../core/graph/graph_build.h"
#include <stdlib.h>
#include <string.h>

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

/* Prints the errors of a graph on standard error. */
static void source_print_errors(const char *file, const struct diagnostics *diagnostics)
{
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) {
    if (diagnostic->status == HIPMM_OK) continue;
    fputs("hipmm: ", stderr);
    diagnostic_print(stderr, file, diagnostic);
    fputc('\n', stderr);
  }
}

static bool source_read_standard_input(struct source *source)
{
  struct diagnostics diagnostics = {.source = source->file};
  size_t bytes = 0;
  if (!graph_file_read(NULL, &diagnostics, &source->owned, &bytes)) {
    source_print_errors(source->file, &diagnostics);
    diagnostics_clear(&diagnostics);
    return false;
  }
  char *ended = memchr(source->owned, '\0', bytes) ? NULL : realloc(source->owned, bytes + 1);
  if (ended) {
    ended[bytes] = '\0';
    source->text = source->owned = ended;
    return true;
  }
  say("%s has a zero byte; a graph is UTF-8 text", source->file);
  source_close(source);
  return false;
}

void source_choose(struct source *source, const char *given)
{
  const char *named = given ? given : environment_get("HIPMM_CONFIG");
  source->text = named && graph_is_text(named) ? named : NULL;
  source->owned = NULL;
  source->file = given ? "<string>" : "HIPMM_CONFIG";
  if (source->text) return;
  source->file = given ? given : trust_find_config(source->buffer, sizeof source->buffer);
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
  free(source->owned);
  source->text = source->owned = NULL;
}

const char *source_name(const struct source *source)
{
  return source->file ? source->file : "built in";
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

/* ---- Plugin folders ---- */

bool source_plugin_path(const char *file, struct graph **graph_out, struct plugin_path *path_out)
{
  struct source source;
  struct diagnostics diagnostics = {0};
  *graph_out = NULL;
  *path_out = (struct plugin_path){0};
  source_choose(&source, file);
  if (file && !source_read(&source, graph_out)) return false;
  enum hipmm_status status = file || !source.file ? HIPMM_OK
                             : source.text        ? graph_from_string(source.text, source.file, &diagnostics, graph_out)
                                                  : graph_from_file(source.file, &diagnostics, graph_out);
  if (status != HIPMM_OK)
    note("%s is not a valid graph, so its \"plugin_path\" is not used (`hipmm check` prints the errors)", source.file);
  diagnostics_clear(&diagnostics);
  if (*graph_out) *path_out = (*graph_out)->plugin_path;
  return true;
}
