/* SPDX-License-Identifier: MIT */
/* stream_program.h: a random program on several streams, for sub-allocators: whatever it does, no two blocks overlap, and no
 * work of one owner of a block meets that of the next. Every block is filled on its stream and looked at on the
 * stream that frees it, as late as the scheduler likes. One thread, one resource at the top, inside a test's fixture:
 * what fails can be stepped through. tests/model runs whole programs, in threads and over any stack, against a naive model
 * of the memory. */
#ifndef HIPMM_TESTS_SUPPORT_STREAM_PROGRAM_H
#define HIPMM_TESTS_SUPPORT_STREAM_PROGRAM_H

#include "fixture.h"

struct stream_program {
  uint64_t seed; /* printed when something goes wrong */
  unsigned steps;
  unsigned n_streams; /* the default stream included */
  unsigned most_live;
  size_t most_bytes;      /* of a block; half of them are much smaller */
  bool destroys_streams;  /* some without a word to hipmm, which "record": "lazy" does not forgive */
  bool ends_with_no_live; /* frees everything; otherwise the stack is taken down with blocks in it */
};

/* Runs on the top resource of device 0. Asserts. */
void stream_program_run(const struct stream_program *program);

/* For adaptors over a resource "pool": builds the stack and runs a program over it, under either scheduler. In the end
 * nothing is live in the pool; `look` is called then, on the stack as it is. */
void stream_program_run_over_pool(const char *graph, unsigned steps, void (*look)(void));

#endif
