/* SPDX-License-Identifier: MIT */
/* show.h: a resource of a graph and all below it, drawn as a tree or written as JSON. */
#ifndef HIPMM_CMD_SHOW_H
#define HIPMM_CMD_SHOW_H

#include "../graph/graph.h"
#include <jansson.h>

/* Draws the node and what is below it. `shown` tells for each node whether it was drawn before; it is kept up. */
void show_print_tree(const struct graph *graph, int node, bool *shown);

/* The node's type, upstreams and options. A new reference. */
json_t *show_json_node(const struct graph *graph, const struct graph_node *node);

#endif
