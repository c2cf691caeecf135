/* SPDX-License-Identifier: MIT */
/* show_tree.c: draws a resource and all below it. The graph limits its depth, which bounds the recursion here. */
#include "show.h"

#include "../../core/option/option.h"
#include "cmd.h"
#include <stdlib.h>
#include <string.h>

/* "│  " takes five bytes; a stack is at most 100 deep. */
enum { TREE_PREFIX = 1024, TREE_LABEL = 512, TREE_GAP = 2, TREE_RAIL = 3, TREE_LEAST_DOC = 20 };

/* The children of a node: its upstreams, then the resources that its options name. */
struct tree_children {
  const struct graph *graph;
  struct {
    int node;
    char *role; /* "" for the upstream; otherwise the option that names it */
  } * items;
  size_t n;
};

struct show_tree {
  const struct graph *graph;
  bool *shown;
  char prefix[TREE_PREFIX];
};

static void show_tree_add_child(struct tree_children *children, int node, const char *role)
{
  void *larger = reallocarray(children->items, children->n + 1, sizeof *children->items);
  char *copy = strdup(role);
  if (larger) children->items = larger;
  if (larger && copy && node >= 0) {
    children->items[children->n].node = node;
    children->items[children->n++].role = copy;
  } else {
    free(copy);
  }
}

static void show_tree_add_reference(void *closure, const char *name, const char *relative_path)
{
  struct tree_children *children = closure;
  show_tree_add_child(children, graph_find(children->graph, name),
                      relative_path[0] == '/' ? relative_path + 1 : relative_path);
}

static struct tree_children show_tree_children(const struct graph *graph, const struct graph_node *node)
{
  struct tree_children children = {.graph = graph};
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  for (size_t i = 0; i < node->n_upstreams; i++) show_tree_add_child(&children, node->upstreams[i], "");
  option_references(descriptor->options, descriptor->n_options, node->object, show_tree_add_reference, &children);
  return children;
}

static void show_tree_children_clear(struct tree_children *children)
{
  for (size_t i = 0; i < children->n; i++) free(children->items[i].role);
  free(children->items);
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static void show_tree_print_option(struct wrap *wrap, const struct hipmm_option *row, json_t *value, enum style kind)
{
  char *text = strdup(row->name), *shown = value_text(row, value);
  value_append(&text, "=");
  value_append(&text, shown);
  wrap_item(wrap, TREE_GAP, kind, text ? text : row->name);
  free(shown);
  free(text);
}

static void show_tree_begin_options(struct wrap *wrap, const char *label)
{
  fputs(wrap->prefix, stdout);
  wrap->column = text_width(wrap->prefix);
  if (*label) wrap_item(wrap, 0, STYLE_FAINT, label);
}

/* Options are printed in three groups, each on its own lines. */
enum tree_group { TREE_GIVEN, TREE_DEFAULT, TREE_NOT_SET };

static const char *const tree_group_labels[] = {
    [TREE_GIVEN] = "", [TREE_DEFAULT] = "defaults:", [TREE_NOT_SET] = "not set:"};

static void show_tree_print_group(const struct show_tree *tree, const struct graph_node *node, const char *rail,
                                  enum tree_group wanted)
{
  char prefix[TREE_PREFIX + 8];
  snprintf(prefix, sizeof prefix, "%s%s", tree->prefix, rail);
  struct wrap wrap = {.prefix = prefix, .column = 0};
  for (uint32_t i = 0; i < node->plugin->descriptor.n_options; i++) {
    const struct hipmm_option *row = &node->plugin->descriptor.options[i];
    bool given;
    json_t *value = option_current(row, node->object, &given);
    enum tree_group group = given ? TREE_GIVEN : json_is_null(value) ? TREE_NOT_SET : TREE_DEFAULT;
    if (group == wanted) {
      if (wrap.column == 0) show_tree_begin_options(&wrap, tree_group_labels[group]);
      if (group == TREE_NOT_SET)
        wrap_item(&wrap, TREE_GAP, STYLE_FAINT, row->name);
      else
        show_tree_print_option(&wrap, row, value, given ? STYLE_OFF : STYLE_FAINT);
    }
    json_decref(value);
  }
  if (wrap.column > 0) wrap_end(&wrap);
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

/* Prints the type's description; on a terminal, as far as the line has room. */
static void show_tree_print_doc(const char *doc, size_t column)
{
  size_t room = terminal_width() > column ? terminal_width() - column : 0;
  if (!terminal_is_output()) room = SIZE_MAX;
  if (room < TREE_LEAST_DOC) return;
  char *text = strdup(doc);
  if (text && text_width(text) > room) {
    text_cut(text, room - 1);
    value_append(&text, "…");
  }
  printf("  ");
  print_padded(STYLE_FAINT, text ? text : "", 0);
  free(text);
}

/* Whether a resource of this type, and so the type's description, was drawn before. */
static bool show_tree_type_is_known(const struct show_tree *tree, const struct graph_node *node)
{
  for (size_t i = 0; i < tree->graph->n_nodes; i++)
    if (tree->shown[i] && tree->graph->nodes[i].plugin == node->plugin) return true;
  return false;
}

static void show_tree_print_title(const struct show_tree *tree, const struct graph_node *node, const char *role,
                                  bool again)
{
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  char label[TREE_LABEL];
  bool is_named = strcmp(node->name, descriptor->type) != 0;
  print_padded(STYLE_NAME, node->name, 0);
  if (is_named) printf("  ");
  print_padded(STYLE_TYPE, is_named ? descriptor->type : "", 0);
  snprintf(label, sizeof label, "%s%s%s", *role ? "  for " : "", role, again ? "  (shown above)" : "");
  print_padded(STYLE_FAINT, label, 0);
  size_t column = text_width(tree->prefix) + TREE_RAIL + text_width(node->name) + text_width(label) + TREE_GAP;
  if (is_named) column += TREE_GAP + text_width(descriptor->type);
  if (!again && !show_tree_type_is_known(tree, node)) show_tree_print_doc(descriptor->doc, column);
  putchar('\n');
}

static void show_tree_print_node(struct show_tree *tree, int index, const char *role)
{
  const struct graph_node *node = &tree->graph->nodes[index];
  bool again = tree->shown[index];
  show_tree_print_title(tree, node, role, again);
  if (again) return;
  tree->shown[index] = true;

  struct tree_children children = show_tree_children(tree->graph, node);
  const char *rail = children.n > 0 ? "│  " : "   ";
  show_tree_print_group(tree, node, rail, TREE_GIVEN);
  show_tree_print_group(tree, node, rail, TREE_DEFAULT);
  show_tree_print_group(tree, node, rail, TREE_NOT_SET);
  size_t length = strlen(tree->prefix);
  for (size_t i = 0; i < children.n; i++) {
    bool last = i + 1 == children.n;
    printf("%s%s", tree->prefix, last ? "└─ " : "├─ ");
    snprintf(tree->prefix + length, sizeof tree->prefix - length, "%s", last ? "   " : "│  ");
    show_tree_print_node(tree, children.items[i].node, children.items[i].role);
    tree->prefix[length] = '\0';
  }
  show_tree_children_clear(&children);
}

void show_print_tree(const struct graph *graph, int node, bool *shown)
{
  struct show_tree tree = {.graph = graph, .shown = shown};
  show_tree_print_node(&tree, node, "");
}

json_t *show_json_node(const struct graph *graph, const struct graph_node *node)
{
  json_t *upstreams = json_array(), *options = json_object();
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  for (size_t i = 0; i < node->n_upstreams; i++)
    json_array_append_new(upstreams, json_string(graph->nodes[node->upstreams[i]].name));
  for (uint32_t i = 0; i < descriptor->n_options; i++) {
    bool given;
    json_t *value = option_current(&descriptor->options[i], node->object, &given);
    json_object_set_new(options, descriptor->options[i].name,
                        json_pack("{s:o, s:b}", "value", value, "default", !given));
  }
  return json_pack("{s:s, s:s, s:s, s:o, s:o}", "type", descriptor->type, "role", role_name(descriptor->role), "path",
                   node->path, "upstreams", upstreams, "options", options);
}
