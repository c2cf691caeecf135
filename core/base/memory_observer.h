/* SPDX-License-Identifier: MIT */
/* memory_observer.h: how the core reports blocks to a race detector outside of it. The detector is in a runtime, which
 * exports hipmm_software_observer(), or in the preload object of `hipmm run`, which exports hipmm_run_observer().
 * Either function returns NULL while nothing is to be observed. Plugins include this header too. */
#ifndef HIPMM_CORE_BASE_MEMORY_OBSERVER_H
#define HIPMM_CORE_BASE_MEMORY_OBSERVER_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* A call of a program: a block that a resource gives or gets back. */
struct memory_event {
  const void *owner; /* the resource, as a key */
  const char *resource;
  int device;
  void *ptr;
  size_t bytes; /* of a free: 0 if the caller does not say */
  hipmm_stream_t stream;
  bool is_host_accessible;
};

struct memory_observer {
  size_t struct_size;
  /* Around each call of a resource. enter returns whether the program itself made the call, and not another
   * resource. */
  bool (*enter)(void);
  void (*leave)(void);
  void (*allocated)(const struct memory_event *event);
  /* Before the free, since another thread may get the memory before it returns. What it returns is for `freed`. */
  void *(*freeing)(const struct memory_event *event);
  void (*freed)(void *token, bool is_refused);
  /* The resource is destroyed. */
  void (*destroyed)(const void *owner);
  /* Puts functions that tell the detector into the table of HIP functions; NULL if the runtime itself tells it. */
  void (*observe_hip)(struct hipmm_hip *hip);
};

typedef const struct memory_observer *memory_observer_get(void);

#endif
