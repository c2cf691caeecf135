/* SPDX-License-Identifier: MIT */
/* show.c: `hipmm show`: the stack of each device as a tree, with the value of every option. Reads the graph and asks
 * which runtime would be used; creates nothing on a device. */
#include "cmd.h"

#include "../../core/base/text.h"
#include "../../core/runtime/hip.h"
#include "show.h"
#include <stdlib.h>
#include <string.h>

struct show {
  struct source source;
  struct graph *graph;
  char *runtime; /* in force; NULL: none */
  char *why_not; /* without a runtime: the reason */
  int n_devices;
};

static void show_ask_runtime(struct show *show)
{
  if (source_initialise(&show->source) != HIPMM_OK) {
    show->why_not = strdup(hipmm_last_error_message());
    return;
  }
  show->runtime = strdup(hipmm_runtime());
  if (hipmm_device_count(&show->n_devices) != HIPMM_OK) show->n_devices = 0;
  hipmm_finalize();
}

/* ---- As text --------------------------------------------------------------------------------------------------- */

/* The reason for this runtime, unless the graph names it. */
static void show_print_asked(struct wrap *wrap, const struct show *show)
{
  char why[PATH_MAX];
  if (strcmp(show->graph->runtime, show->runtime) == 0) return;
  bool is_auto = strcmp(show->graph->runtime, "auto") == 0 && !getenv("HIPMM_RUNTIME");
  snprintf(why, sizeof why, is_auto ? "(chosen by %s)" : "(HIPMM_RUNTIME overrides %s)", show->graph->runtime);
  wrap_words(wrap, STYLE_FAINT, why);
}

static void show_print_runtime(const struct show *show)
{
  struct wrap wrap = {.prefix = "         ", .column = 9};
  print_padded(STYLE_FAINT, "runtime", 9);
  if (!show->runtime) {
    wrap_item(&wrap, 0, STYLE_BAD, "none:");
    wrap_words(&wrap, STYLE_OFF, show->why_not ? show->why_not : "");
  } else {
    char devices[64];
    snprintf(devices, sizeof devices, "%d device%s", show->n_devices, text_plural((uint64_t)show->n_devices));
    wrap_item(&wrap, 0, STYLE_NAME, show->runtime);
    wrap_words(&wrap, STYLE_OFF, "with");
    wrap_words(&wrap, STYLE_OFF, devices);
    show_print_asked(&wrap, show);
  }
  wrap_end(&wrap);
}

static void show_print_head(const struct show *show)
{
  print_padded(STYLE_FAINT, "graph", 9);
  print_padded(STYLE_NAME, show->source.file ? show->source.file : "none found: a plain `device` for every device", 0);
  putchar('\n');
  show_print_runtime(show);
}

/* "device 0", "devices 0, 2", and the default's, which are all others. */
static void show_print_devices(const struct show *show, int node)
{
  const struct graph *graph = show->graph;
  bool is_default = node == graph->default_node, any = false;
  printf("\n%s", style(STYLE_FAINT));
  for (size_t i = 0; i < graph->n_devices; i++) {
    if (graph->devices[i].node != node) continue;
    printf(any ? ", device %d" : "device %d", graph->devices[i].device);
    if (show->runtime && graph->devices[i].device >= show->n_devices) printf(" (not there)");
    any = true;
  }
  if (is_default)
    printf("%s", any ? " and every other device" : graph->n_devices ? "every other device" : "every device");
  printf("%s\n", style(STYLE_OFF));
}

static bool show_is_first_device_of(const struct graph *graph, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (graph->devices[i].node == graph->devices[index].node) return false;
  return graph->devices[index].node != graph->default_node;
}

/* The resources that no device needs, each under the topmost that needs it. */
static void show_print_by_name(const struct graph *graph, bool *shown)
{
  bool is_first = true;
  for (size_t i = graph->n_nodes; i-- > 0;) {
    if (!graph->nodes[i].is_by_name || shown[i]) continue;
    if (is_first)
      printf("\n%sby name, on any device (hipmm_resource_get_by_name)%s\n", style(STYLE_FAINT), style(STYLE_OFF));
    is_first = false;
    show_print_tree(graph, (int)i, shown);
  }
}

static int show_print(const struct show *show)
{
  const struct graph *graph = show->graph;
  bool *shown = calloc(graph->n_nodes, sizeof *shown);
  if (!shown) {
    say("show: out of memory");
    return CMD_BAD;
  }
  show_print_head(show);
  for (size_t i = 0; i < graph->n_devices; i++) {
    if (!show_is_first_device_of(graph, i)) continue;
    show_print_devices(show, graph->devices[i].node);
    show_print_tree(graph, graph->devices[i].node, shown);
  }
  show_print_devices(show, graph->default_node);
  show_print_tree(graph, graph->default_node, shown);
  show_print_by_name(graph, shown);
  free(shown);
  return output_finish(CMD_GOOD);
}

/* ---- As JSON --------------------------------------------------------------------------------------------------- */

static json_t *show_json_runtime(const struct show *show)
{
  return json_pack("{s:o, s:o, s:i, s:o}", "asked", output_json_string(show->graph->runtime), "in_force",
                   output_json_string(show->runtime), "devices", show->n_devices, "reason",
                   output_json_string(show->why_not));
}

static json_t *show_json_devices(const struct graph *graph)
{
  json_t *devices = json_object();
  char ordinal[16];
  for (size_t i = 0; i < graph->n_devices; i++) {
    snprintf(ordinal, sizeof ordinal, "%d", graph->devices[i].device);
    json_object_set_new(devices, ordinal, json_string(graph->nodes[graph->devices[i].node].name));
  }
  json_object_set_new(devices, "default", json_string(graph->nodes[graph->default_node].name));
  return devices;
}

static int show_print_json(const struct show *show)
{
  json_t *resources = json_object(), *by_name = json_array();
  for (size_t i = show->graph->n_nodes; i-- > 0;) {
    const struct graph_node *node = &show->graph->nodes[i];
    json_object_set_new(resources, node->name, show_json_node(show->graph, node));
    if (node->is_by_name) json_array_append_new(by_name, json_string(node->name));
  }
  return output_json(json_pack("{s:o, s:o, s:o, s:o, s:o}", "file", output_json_string(show->source.file), "runtime",
                               show_json_runtime(show), "devices", show_json_devices(show->graph), "by_name", by_name,
                               "resources", resources),
                     CMD_GOOD);
}

static int show_run(int argc, char **argv)
{
  bool json = false;
  int status;
  struct show show = {0};
  const struct argument rows[] = {{"json", NULL, "print one JSON object", .flag = &json}};
  struct arguments arguments = {&show_command, rows, 1, 0, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;

  if (!source_choose_operand(&show.source, arguments_operand(&arguments, 0))) return CMD_BAD;
  if (!source_read(&show.source, &show.graph)) {
    source_close(&show.source);
    return CMD_BAD;
  }
  show_ask_runtime(&show);
  status = json ? show_print_json(&show) : show_print(&show);
  graph_release(show.graph);
  source_close(&show.source);
  free(show.runtime);
  free(show.why_not);
  return status;
}

const struct command show_command = {
    "show", "draw the stacks that a graph file describes", "[FILE]",
    "Draws the stack of each device from the top down, with the value of every option: first those from the file, "
    "then the defaults. A resource with several users is drawn once. Prints which runtime would be used here, too.\n"
    "\n"
    "FILE: by default the file that hipmm_init() would read: the one that HIPMM_CONFIG names, ./hipmm.json, then the "
    "system's; \"-\" for standard input.",
    show_run};
