/* SPDX-License-Identifier: MIT */
/* model.h: random work over a stack, checked against the naive model and by patterns that streams write into every
 * block and read back, in order, when it is freed. For `hipmm plugin test`, and for the tests of the types that come with
 * hipmm. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_MODEL_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_MODEL_H

#include "software.h"

enum { MODEL_MOST_STREAMS = 8, MODEL_MOST_THREADS = 8, MODEL_DEFAULT_STREAMS = 2 };

struct model {
  const char *name;
  const char *stack;     /* JSON array */
  const char *resources; /* JSON object, in place of `stack` */
  const char *runtime;   /* further options of the software runtime: "\"key\": value, "; NULL: none */
  const char *scheduler; /* of the software runtime: "threads" or "stepped" */
  int threads, streams;
  unsigned operations; /* of each thread */
  size_t most_bytes;   /* of an allocation */
  bool aligns;         /* alignments above HIPMM_ALIGNMENT are possible */
  bool may_align;      /* they may be refused with HIPMM_E_ARGUMENT, but must be right where they are not */
  size_t region_bytes; /* of the region that the program brings; 0: none */
  bool may_fail;       /* out of memory is to be expected */
  bool retires;        /* streams must be retired before they are destroyed, by the configuration's contract */
  bool no_streams;     /* streams are not destroyed and made anew */
  bool is_plain;       /* nothing is freed wrongly or without its size, and nothing has 0 bytes */
  bool keeps_memory;   /* what is free may stay with the stack when it is trimmed, until it is destroyed */
  bool has_defaults;   /* the first two streams are the default stream and the thread's own, and some others block */
  bool has_no_data;    /* no work is done on the memory, for many calls in little time */
  bool checks_streams; /* the software device's race detector looks on, and what it finds is a failure */
  int device;          /* whose stack it is; the calls of the resource are made while device 0 is current */
  bool by_host;        /* streams use memory by host functions: copies of pageable memory do not wait for their turn */
};

/* What kind of failure it was. */
enum model_fault {
  MODEL_CALL,  /* a call did not come out as it must */
  MODEL_PLACE, /* two live blocks share memory, or a block is not aligned */
  MODEL_ORDER, /* streams use memory without order */
  MODEL_REST   /* something is left when all has been freed */
};

/* What came of a run. */
struct model_result {
  char failure[512]; /* empty: all was well */
  enum model_fault fault;
  enum hipmm_status status; /* of building the stack */
  unsigned long long allocations, refusals, waits_of_streams;
};

/* Runs all of it, from initialisation to the balance after hipmm_finalize(). Asserts nothing. */
struct model_result model_run(const struct model *model, uint64_t seed);

#endif
