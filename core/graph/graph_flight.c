/* SPDX-License-Identifier: MIT */
/* graph_flight.c: HIPMM_FLIGHT: a `recording` at the top of each device's stack, which keeps the last events and writes them
 * when an allocation has failed. Called by init.c, before anybody else has the graph. */
#include "../base/environment.h"
#include "../base/log.h"
#include "../base/output_file.h"
#include "graph_build.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRAPH_FLIGHT_EVENTS = 1 << 16, GRAPH_FLIGHT_BYTES = 64 << 20 /* with the blocks of a thousand threads */ };

static void graph_flight_warn(const char *folder, const char *reason)
{
  log_line(HIPMM_LOG_WARNING, "init", "HIPMM_FLIGHT is \"%.500s\": %s; no events are kept", folder, reason);
}

/* The memory of the last events is a file to the system: with a smaller limit every allocation would fail, since the
 * recording could not be made. */
static bool graph_flight_fits(void)
{
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= GRAPH_FLIGHT_BYTES;
}

/* The options: the name of a file in the folder, whose percent signs are doubled. NULL: an errno has the reason. */
static json_t *graph_flight_options(const char *folder)
{
  char absolute[PATH_MAX], name[2 * PATH_MAX];
  struct stat status;
  size_t used = 0;
  if (!realpath(folder, absolute) || stat(absolute, &status)) return NULL;
  errno = ENOTDIR;
  if (!S_ISDIR(status.st_mode) || access(absolute, W_OK | X_OK)) return NULL;
  for (const char *at = absolute; *at; at++) {
    if (*at == '%') name[used++] = '%';
    name[used++] = *at;
  }
  snprintf(name + used, sizeof name - used, "/hipmm.%%p.dev%%d.record");
  errno = ENAMETOOLONG;
  if (used > OUTPUT_FILE_NAME_BYTES / 2) return NULL;
  errno = EILSEQ;
  return json_pack("{s:s, s:i}", "file", name, "keep_last", GRAPH_FLIGHT_EVENTS);
}

/* Adds the node above `top`, at the end, and returns its index. `top` without host memory. */
static int graph_flight_add(struct graph *graph, int top, const struct plugin *plugin, json_t *options)
{
  char name[32] = "flight";
  for (int n = 2; graph_find(graph, name) >= 0; n++) snprintf(name, sizeof name, "flight.%d", n);
  struct graph_node *nodes = realloc(graph->nodes, (graph->n_nodes + 1) * sizeof *nodes);
  if (nodes) graph->nodes = nodes;
  struct graph_node node = {.name = strdup(name),
                            .path = strdup(""),
                            .plugin = plugin,
                            .object = json_incref(options),
                            .upstreams = malloc(sizeof top),
                            .n_upstreams = 1,
                            .references = malloc(sizeof top),
                            .n_references = 1};
  if (nodes && node.name && node.path && node.upstreams && node.references) {
    *node.upstreams = *node.references = top;
    graph->nodes[graph->n_nodes] = node;
    return (int)graph->n_nodes++;
  }
  free((char *)node.name);
  free(node.path);
  free(node.upstreams);
  free(node.references);
  json_decref(options);
  return top;
}

void graph_add_flight(struct graph *graph)
{
  const char *folder = environment_get("HIPMM_FLIGHT");
  const struct plugin *plugin = NULL;
  struct diagnostics diagnostics = {.source = "HIPMM_FLIGHT"};
  int above[GRAPH_MAX_NODES] = {0};
  if (!folder || !*folder) return;
  json_t *options = graph_flight_options(folder);
  bool has_room = graph->n_nodes + graph->n_devices + 1 <= GRAPH_MAX_NODES;
  if (!options)
    graph_flight_warn(folder, strerror(errno));
  else if (!graph_flight_fits())
    graph_flight_warn(folder, "files may have fewer than 64 MiB here; raise the limit (ulimit -f)");
  else if (!has_room || graph_type(graph, "recording", &diagnostics, &plugin))
    graph_flight_warn(folder, has_room ? "the type recording is not installed" : "the graph has no room for more");
  for (size_t i = 0; plugin && i <= graph->n_devices; i++) {
    int *top = i ? &graph->devices[i - 1].node : &graph->default_node;
    if (!above[*top]) above[*top] = graph_flight_add(graph, *top, plugin, options);
    *top = above[*top];
  }
  diagnostics_clear(&diagnostics);
  json_decref(options);
}
