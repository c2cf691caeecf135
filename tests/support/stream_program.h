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

/* ---- What every sub-allocator does with streams ---- */

/* A block that was freed on the stream comes again there, and HIP is not called, but for the device of a NULL
 * resource. */
void assert_reuses_without_a_call(size_t bytes, hipmm_stream_t stream);

/* A block that was freed on a stream which is gone, of which nobody said that it lasts, comes again on another when the
 * device has done its work; the stream is not used. */
void assert_outlives_a_stream(const char *graph, size_t bytes);

/* An allocation and a free, on each stream in turn, cost no more with thousands of streams than with a few. */
void assert_cost_is_independent_of_streams(const char *graph, size_t bytes);

#endif
