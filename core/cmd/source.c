/* SPDX-License-Identifier: MIT */
/* source.c: the graph file of a sub-command, searched for as hipmm_init() does, and the text of its diagnostics. */
#include "cmd.h"

#include "../base/environment.h"
#include <string.h>

void source_choose(struct source *source, const char *given)
{
  source->file = given ? given : environment_find_config(source->buffer, sizeof source->buffer);
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
}

static void source_print_diagnostics(const char *file, const struct diagnostics *diagnostics)
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
  enum hipmm_status status =
      source->file ? graph_from_file(source->file, &diagnostics, graph_out) : graph_built_in(&diagnostics, graph_out);
  if (status != HIPMM_OK) source_print_diagnostics(source_name(source), &diagnostics);
  diagnostics_clear(&diagnostics);
  return status == HIPMM_OK;
}

enum hipmm_status source_initialise(const struct source *source)
{
  return source->file ? hipmm_init_from_file(source->file) : hipmm_init();
}

bool source_plugin_path(const char *file, struct graph **graph_out, struct plugin_path *path_out)
{
  struct source source;
  struct diagnostics diagnostics = {0};
  source_choose(&source, file);
  *graph_out = NULL;
  *path_out = (struct plugin_path){0};
  if (file && !source_read(&source, graph_out)) return false;
  if (!file && source.file && graph_from_file(source.file, &diagnostics, graph_out) != HIPMM_OK)
    say("%s is not a valid graph, so its \"plugin_path\" is not used (`hipmm check` prints the errors)", source.file);
  diagnostics_clear(&diagnostics);
  if (*graph_out) *path_out = (*graph_out)->plugin_path;
  return true;
}
