/* SPDX-License-Identifier: MIT */
/* show_tree.c: draws a resource and all below it. Depth is bounded by the graph's own limit, so recursion is too. */
#include "show.h"

#include "../option.h"
#include "cmd.h"
#include "value.h"
#include <stdlib.h>
#include <string.h>

/* "│  " takes five bytes; a stack is at most 100 deep. */
enum { TREE_PREFIX = 1024, TREE_GAP = 2 };

/* What is below a node: its upstreams, then the resources that its options name. */
struct tree_children {
  const struct graph *graph;
  struct {
    int node;
    char *role; /* "" for the upstream; otherwise the option that names it */
  } * items;
  size_t n;
};

struct tree {
  const struct graph *graph;
  bool *shown;
  char prefix[TREE_PREFIX];
};

static void tree_add_child(struct tree_children *children, int node, const char *role)
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

static void tree_add_reference(void *closure, const char *name, const char *relative_path)
{
  struct tree_children *children = closure;
  tree_add_child(children, graph_find(children->graph, name),
                 relative_path[0] == '/' ? relative_path + 1 : relative_path);
}

static struct tree_children tree_children(const struct graph *graph, const struct graph_node *node)
{
  struct tree_children children = {.graph = graph};
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  for (size_t i = 0; i < node->n_upstreams; i++) tree_add_child(&children, node->upstreams[i], "");
  option_references(descriptor->options, descriptor->n_options, node->object, tree_add_reference, &children);
  return children;
}

static void tree_children_clear(struct tree_children *children)
{
  for (size_t i = 0; i < children->n; i++) free(children->items[i].role);
  free(children->items);
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static void tree_print_option(struct wrap *wrap, const struct hipmm_option *row, json_t *value, enum style kind)
{
  char *text = strdup(row->name), *shown = value_text(row, value);
  value_append(&text, "=");
  value_append(&text, shown);
  wrap_item(wrap, TREE_GAP, kind, text ? text : row->name);
  free(shown);
  free(text);
}

/* The options that the file gives, or those that are defaults, on lines of their own. */
static void tree_print_options(const struct tree *tree, const struct graph_node *node, const char *rail, bool given)
{
  char prefix[TREE_PREFIX + 8];
  snprintf(prefix, sizeof prefix, "%s%s", tree->prefix, rail);
  struct wrap wrap = {.prefix = prefix, .column = 0};
  for (uint32_t i = 0; i < node->plugin->descriptor.n_options; i++) {
    const struct hipmm_option *row = &node->plugin->descriptor.options[i];
    bool is_given;
    json_t *value = option_in_force(row, node->object, &is_given);
    if (is_given == given) {
      if (wrap.column == 0) {
        fputs(prefix, stdout);
        wrap.column = text_width(prefix);
        if (!given) wrap_item(&wrap, 0, STYLE_FAINT, "defaults:");
      }
      tree_print_option(&wrap, row, value, given ? STYLE_OFF : STYLE_FAINT);
    }
    json_decref(value);
  }
  if (wrap.column > 0) wrap_end(&wrap);
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

static void tree_print_title(const struct graph_node *node, const char *role, bool again)
{
  const char *type = node->plugin->descriptor.type;
  print_padded(STYLE_NAME, node->name, 0);
  if (strcmp(node->name, type) != 0) {
    printf("  ");
    print_padded(STYLE_TYPE, type, 0);
  }
  if (*role) printf("  %sfor %s%s", style(STYLE_FAINT), role, style(STYLE_OFF));
  if (again) printf("  %s(shown above)%s", style(STYLE_FAINT), style(STYLE_OFF));
  putchar('\n');
}

static void tree_print_node(struct tree *tree, int index, const char *role)
{
  const struct graph_node *node = &tree->graph->nodes[index];
  bool again = tree->shown[index];
  tree_print_title(node, role, again);
  if (again) return;
  tree->shown[index] = true;

  struct tree_children children = tree_children(tree->graph, node);
  const char *rail = children.n > 0 ? "│  " : "   ";
  tree_print_options(tree, node, rail, true);
  tree_print_options(tree, node, rail, false);
  size_t length = strlen(tree->prefix);
  for (size_t i = 0; i < children.n; i++) {
    bool last = i + 1 == children.n;
    printf("%s%s", tree->prefix, last ? "└─ " : "├─ ");
    snprintf(tree->prefix + length, sizeof tree->prefix - length, "%s", last ? "   " : "│  ");
    tree_print_node(tree, children.items[i].node, children.items[i].role);
    tree->prefix[length] = '\0';
  }
  tree_children_clear(&children);
}

void show_print_tree(const struct graph *graph, int node, bool *shown)
{
  struct tree tree = {.graph = graph, .shown = shown};
  tree_print_node(&tree, node, "");
}

json_t *show_json_node(const struct graph *graph, const struct graph_node *node)
{
  json_t *upstreams = json_array(), *options = json_object();
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  for (size_t i = 0; i < node->n_upstreams; i++)
    json_array_append_new(upstreams, json_string(graph->nodes[node->upstreams[i]].name));
  for (uint32_t i = 0; i < descriptor->n_options; i++) {
    bool given;
    json_t *value = option_in_force(&descriptor->options[i], node->object, &given);
    json_object_set_new(options, descriptor->options[i].name,
                        json_pack("{s:o, s:b}", "value", value, "default", !given));
  }
  return json_pack("{s:s, s:s, s:s, s:o, s:o}", "type", descriptor->type, "role", role_name(descriptor->role), "path",
                   node->path, "upstreams", upstreams, "options", options);
}
