/* SPDX-License-Identifier: MIT */
/* publish.h: publishes the counters of all live resources in shared memory, for `hipmm top` and other programs. */
#ifndef HIPMM_CORE_INSPECT_PUBLISH_H
#define HIPMM_CORE_INSPECT_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

/* Within a change (lifecycle.h), after the table of devices was opened, and before it is closed. A thread copies the
 * counters ten times a second. Without the file or the thread a warning says why, and nothing is published. */
void publish_begin(void);
void publish_end(void);

/* What a framework's private pools have of a device's memory. */
struct publish_private {
  uint64_t pools, blocks; /* allocated now */
  uint64_t idle_bytes;    /* kept for the pools alone */
};

/* From now on `count` is asked for a device's, by any thread. */
void publish_set_private(struct publish_private (*count)(int device));

/* Writes what the file of this process has, or would have, into memory of zeros. */
struct live_file;
void publish_fill(struct live_file *file);

/* A file in LIVE_FOLDER that hipmm made. */
struct publish_file {
  unsigned user;            /* its owner, whose name it bears */
  unsigned long long space; /* the namespace of its process's number; 0: that of this process */
  uint32_t process;
  bool is_left_over; /* no process holds its lock */
};

/* False if it is none, going by its name and its beginning: other programs keep files in the folder too, and a user may
 * write a file in the name of another. */
bool publish_identify(int file, const char *name, struct publish_file *file_out);

#endif
