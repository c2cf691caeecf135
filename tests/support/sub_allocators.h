/* SPDX-License-Identifier: MIT */
/* sub_allocators.h: the sub-allocators of device memory as rows of a table, and cases that run over each row: what a
 * case checks is promised by every type that it runs over. What one type does alone is tested in its own program;
 * behaviour.h has what sources and adaptors promise too. */
#ifndef HIPMM_TESTS_SUPPORT_SUB_ALLOCATORS_H
#define HIPMM_TESTS_SUPPORT_SUB_ALLOCATORS_H

#include "fixture.h"

#define LEGACY     ((hipmm_stream_t)1)
#define PER_THREAD ((hipmm_stream_t)2)

enum { KIB = 1024 };

/* What the option "record" may say. */
enum { AUTO, LAZY, ON_FREE, RECORDS };

/* What not every row can. */
enum {
  DIVIDES = 1,   /* gives out parts of any size and alignment, and has a maximum_size that may be set */
  REUSES = 2,    /* each block by itself: monotonic rewinds all at once */
  HAS_FREE = 4,  /* the value free_bytes, of whole units of 256 bytes */
  HAS_WAITS = 8, /* the value stream_waits */
  FORGETS = 16,  /* gives host memory of its records back when it is trimmed */
  GROWS = 32,    /* by hipMalloc, whose memory goes back by hipFree */
  SCALES = 64,   /* costs the same with thousands of streams: an arena has a superblock for each */
  WHOLE = 128,   /* not one more row of a type, for another way of one stream's memory to another */
};

/* Options begin with a comma. */
struct sub_allocator {
  const char *name, *type;
  const char *prefix; /* of the names of its values */
  unsigned can;
  const char *usual; /* for blocks of up to 1 MiB */
  size_t unit_bytes; /* a multiple of which a block then takes */
  size_t kept_bytes; /* the most that a trim may keep beyond what it is told to and what is live */
  const char *full;  /* a block of full_bytes takes all that there is, or all of the first chunk */
  size_t full_bytes;
  const char *many; /* for thousands of blocks, of many_bytes at most */
  size_t many_bytes;
  const char *random; /* for random programs, with most_live blocks of random_bytes at most */
  size_t random_bytes;
  unsigned most_live;
  const char *begins;                     /* takes memory when the stack is built */
  const char *begins_with_much, *refused; /* takes too much then: the error names this option */
};

/* Build the row's type over the device's memory, or over `upstream`: "'pool', 'device'". */
void begin(const char *runtime, const struct sub_allocator *row, const char *options, int record);
void begin_over(const char *runtime, const struct sub_allocator *row, const char *options, int record,
                const char *upstream);

/* Takes the stack down and looks whether anything was lost; for cases that build several. */
void finish(void);

struct hipmm_resource *resource_of(const struct sub_allocator *row);
int64_t value_of(const struct sub_allocator *row, const char *value);
void trim(const struct sub_allocator *row, size_t keep_bytes);

/* ---- Work on streams that notices when anybody else writes to its block ---- */

/* Has the stream fill the block, and later look whether it is as it was. */
void use(void *ptr, size_t bytes, hipmm_stream_t stream);

/* Allocates, uses and frees without waiting for anything. */
void *use_and_free(size_t bytes, hipmm_stream_t stream);

/* Waits for the device. No look has found anything else. */
void assert_undisturbed(void);

/* ---- Cases ---- */

struct sub_allocator_case {
  const char *name;
  void (*run)(const struct sub_allocator *row);
  unsigned needs; /* runs over the rows that can all of this */
};

#define EACH(test, needs) \
  {                       \
#test, test, needs    \
  }

/* For main(): runs each case over each row that it is for. */
int sub_allocators_run(const char *group, const struct sub_allocator_case *cases, size_t n_cases,
                       CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
