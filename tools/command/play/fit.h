/* SPDX-License-Identifier: MIT */
/* fit.h: the least budget of a log: the smallest maximum_size with which the whole log runs without a failure. Used by `hipmm
 * replay --fit` and `hipmm plan`. */
#ifndef HIPMM_TOOLS_COMMAND_PLAY_FIT_H
#define HIPMM_TOOLS_COMMAND_PLAY_FIT_H

#include "../cmd.h"
#include "../trace/trace.h"

/* A resource of the graph that has a maximum_size. */
struct fit_pool {
  const struct graph_node *node;
  uint64_t maximum_bytes; /* 0: none is set */
};

struct fit_graph {
  struct graph *graph;
  struct fit_pool *pools; /* in the order from the top of the stack down */
  size_t n_pools;
};

/* What is asked. All of it stays the caller's. */
struct fit_request {
  const char *command; /* as messages begin: "plan" */
  const struct trace *trace;
  const struct source *source;
  int device;
  long passes;
};

struct fit {
  struct fit_request request;
  struct fit_graph graph; /* with the least maxima */
  uint64_t peak_requested_bytes;
  uint64_t held_bytes; /* by the device's stack at most: the least budget */
  uint64_t replays;
  char runtime[PATH_MAX];

  struct progress progress;
  uint64_t done_events, planned_events;
};

/* Finds the least budget, with a progress bar. False: the error was printed, and nothing is to be cleared. */
bool fit_find(struct fit *fit, const struct fit_request *request);
void fit_clear(struct fit *fit);

/* The memory of the smallest card that has so much; 0: there is none. */
uint64_t fit_smallest_card(uint64_t bytes);

/* ---- fit_graph.c ----------------------------------------------------------------------------------------------- */

/* The resources with a maximum_size of a device's stack. False: the error was printed. */
bool fit_graph_open(const struct fit_request *request, struct fit_graph *fit_graph);
void fit_graph_close(struct fit_graph *fit_graph);

/* The graph as text, in which these resources have the sizes that are set, and take no memory at once. The caller frees it;
 * NULL when there is no memory. */
char *fit_graph_text(const struct fit_graph *fit_graph);

#endif
