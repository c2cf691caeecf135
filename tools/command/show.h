/* SPDX-License-Identifier: MIT */
/* show.h: a resource of a graph and all below it, drawn as a tree or written as JSON; and the values of options. */
#ifndef HIPMM_TOOLS_COMMAND_SHOW_H
#define HIPMM_TOOLS_COMMAND_SHOW_H

#include "../../core/graph/graph.h"
#include <hipmm/plugin.h>
#include <jansson.h>

/* ---- show_tree.c ----------------------------------------------------------------------------------------------- */

/* Draws the node and what is below it. `shown` tells for each node whether it was drawn before; it is kept up. */
void show_print_tree(const struct graph *graph, int node, bool *shown);

/* The node's type, upstreams and options. A new reference. */
json_t *show_json_node(const struct graph *graph, const struct graph_node *node);

/* ---- value.c --------------------------------------------------------------------------------------------------- */

/* An option's value on one line, for people: "64KiB", "[{size=64KiB, resource=small}]", "not set". To be freed; NULL
 * when memory is short. `row` may be NULL. */
char *value_text(const struct hipmm_option *row, const json_t *value);

/* Appends to a text on the heap. When memory is short *text becomes NULL, and stays so. */
void value_append(char **text, const char *more);

#endif
