/* SPDX-License-Identifier: MIT */
/* processes.h: the processes that publish the counters of their resources (base/live_format.h), as they are now. */
#ifndef HIPMM_TOOLS_COMMAND_TOP_PROCESSES_H
#define HIPMM_TOOLS_COMMAND_TOP_PROCESSES_H

#include "../../../core/base/live_format.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct processes_item {
  unsigned user;            /* the file's owner, whose process it is */
  unsigned long long space; /* the namespace of its number; 0: the reader's */
  struct live_file file;    /* a copy: whole, checked, with texts that end, each resource once */
};

struct processes {
  struct processes_item *items;
  size_t n, capacity;
  bool is_truncated; /* there was no host memory for all */
};

/* Reads all that the user may read; `only` is a process, or 0. A file that speaks of another user's process is left out. Removes files that killed processes of the user left
 * over. */
void processes_read(struct processes *processes, uint32_t only);
void processes_clear(struct processes *processes);

/* The device of a row, -1 if it has none, and the resource's name ("" for a device). */
int processes_device_of(const struct live_row *row);
const char *processes_resource_of(const struct live_row *row);

/* An array of processes with their rows. */
json_t *processes_json(const struct processes *processes);

#endif
