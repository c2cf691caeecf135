/* SPDX-License-Identifier: MIT */
/* library.c: a library that uses hipmm inside a program. The tests build it twice, as two libraries, which know nothing of
 * each other: each either shares the table of devices or builds a stack from a graph of its own. */
#include "library.h"

#include <stdio.h>

static struct hipmm_resource *own; /* NULL: the table's */
static void *block;

static enum hipmm_status library_open(int has_own_graph)
{
  char json[200];
  if (!has_own_graph) return hipmm_init_if_needed();
  snprintf(json, sizeof json,
           "{\"runtime\": \"software\", \"stack\": [\"statistics\", {\"type\": \"limiting\", \"limit\": \"%dMiB\"}, "
           "\"pool\", \"device\"]}",
           LIBRARY_LIMIT);
  return hipmm_stack_build_from_string(0, LIBRARY_NAME, json, &own);
}

/* Allocates and writes to a block, which stays allocated. */
static enum hipmm_status library_use(void)
{
  enum hipmm_status status = hipmm_allocate(own, LIBRARY_BYTES, NULL, &block);
  if (!status) *(volatile int *)block = LIBRARY_LIMIT;
  return status;
}

static enum hipmm_status library_end_use(void)
{
  if (*(volatile int *)block != LIBRARY_LIMIT) return HIPMM_E_INTERNAL;
  return hipmm_deallocate(own, block, LIBRARY_BYTES, NULL);
}

static enum hipmm_status library_close(void)
{
  if (!own) return hipmm_finalize();
  hipmm_resource_release(own);
  own = NULL;
  return HIPMM_OK;
}

static struct hipmm_resource *library_resource(void)
{
  return own;
}

extern const struct library library;
const struct library library = {LIBRARY_NAME,    library_open,  library_use,
                                library_end_use, library_close, library_resource};
