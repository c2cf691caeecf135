/* SPDX-License-Identifier: MIT */
/* numa_node.h: the option numa_node of sources of host memory, and the placing of memory on a node. A node of the kernel's is
 * memory with the processors that are near it. Compiled into the sources; thread-safe. */
#ifndef HIPMM_PLUGINS_COMMON_NUMA_NODE_H
#define HIPMM_PLUGINS_COMMON_NUMA_NODE_H

#include <hipmm/plugin.h>
#include <sched.h>
#include <stdbool.h>

enum { NUMA_NODE_ANY = -1 };

/* For a descriptor's `validate`: reports a text other than "auto", "off" and the number of a node. */
void numa_node_validate(const struct hipmm_validation *validation, const char *text);

/* The node that the text stands for: with "auto" the device's, if the machine has several nodes and the runtime tells. Fails
 * if the node does not exist. */
enum hipmm_status numa_node_find(const struct hipmm_services *services, const char *text, int *node_out);

/* Called on creation by a source that places memory. Warns if the process may not choose a node. If it may not use this one,
 * the node becomes NUMA_NODE_ANY, or the call fails if the graph names the node. */
enum hipmm_status numa_node_try(const struct hipmm_services *services, bool is_given, int *node_inout);

/* Asks the kernel for memory of the node behind these addresses, which are whole pages and have none yet. Where that node has
 * none left, the kernel takes another. Returns an errno. */
int numa_node_place(void *ptr, size_t bytes, int node);

/* The processors that a thread near the node may run on: those of this thread that are the node's, or all of this thread if none
 * is, as for NUMA_NODE_ANY. False if they are unknown. */
bool numa_node_processors(int node, cpu_set_t *processors_out);

#endif
