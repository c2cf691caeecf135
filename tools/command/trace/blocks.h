/* SPDX-License-Identifier: MIT */
/* blocks.h: the blocks of an allocation log: each with the events that allocate and free it. Events are numbered from 0 in the
 * order of the log; rows of failures are events too. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_BLOCKS_H
#define HIPMM_TOOLS_COMMAND_TRACE_BLOCKS_H

#include "logs.h"
#include "segments.h"
#include "stack_texts.h"

/* In place of the event of a free. */
#define BLOCK_IS_LIVE UINT32_MAX

struct block {
  uint64_t address, bytes;
  uint32_t from, to;       /* events */
  uint16_t stream, thread; /* indices of their values; or BLOCKS_OTHERS */
  uint32_t stack;          /* its number in `stacks`; 0: not recorded */
};

/* No memory is larger, so that the sums of blocks are numbers of JSON. */
#define BLOCKS_MOST_BYTES (UINT64_C(1) << 48)

/* The index of the streams, threads or tags for which there is no index left. */
enum { BLOCKS_OTHERS = UINT16_MAX };

/* Values that blocks refer to by index, in the order of their first use; at most BLOCKS_OTHERS. */
struct block_names {
  uint64_t *values;
  size_t n, capacity;
};

struct block_failure {
  uint64_t bytes;
  uint32_t event;
};

/* What an allocator holds, or a device has left, from an event on. */
struct block_level {
  uint64_t bytes;
  uint32_t event;
};

struct block_levels {
  struct block_level *items; /* in order; several can be of one event */
  size_t n, capacity;
};

/* What the program said of its work, such as a step. */
struct block_mark {
  uint32_t from, to; /* events; BLOCK_IS_LIVE: it did not say when it ended */
  uint32_t name;     /* its number in mark_names */
};

struct blocks {
  struct block *items; /* in the order of their allocation */
  size_t n, capacity;
  int64_t *times; /* of each event: nanoseconds since the first, not decreasing */
  size_t n_events, event_capacity;
  struct block_names streams, threads;
  struct stack_texts stacks;
  uint64_t stack_sample;        /* of the log */
  struct stack_texts tag_names; /* of innermost tags */
  uint16_t *tags;               /* of the first blocks, their numbers; the others have none */
  size_t n_tags;
  bool has_times;
  uint64_t unmatched_frees, failures, overlaid;
  uint64_t impossible;                   /* allocations of more than BLOCKS_MOST_BYTES, which have 0 bytes here */
  struct block_failure first_failure;    /* if there are failures */
  struct block_levels held, device_free; /* empty: the log does not tell */
  bool is_held_told;                     /* the log tells what is held; else `held` is the sum of the segments */
  struct segments segments; /* if the log names them; their pools are numbers in `holders` where what is held is told */
  struct stack_texts holders;
  uint64_t rounded_bytes;   /* that the blocks which are live at the end have more than was asked for */
  uint64_t waiting_peak;    /* bytes that the program has freed and the allocator cannot use yet, at most: */
  uint32_t waiting_event;   /* after this event */
  struct block_mark *marks; /* in order of their begin */
  size_t n_marks, marks_capacity;
  size_t more_marks; /* that were left out */
  struct stack_texts mark_names;
};

/* Of each space of some logs; of logs without rows one without blocks. */
struct blocks_list {
  struct blocks *items;
  size_t n;
  struct trace_spaces spaces; /* whose blocks they are, in the same order */
};

/* Reads logs that are open, with a progress bar, and closes them. False: the error was printed, and nothing is allocated. */
bool blocks_read(struct blocks_list *list, struct trace_logs *logs);
void blocks_list_clear(struct blocks_list *list);

/* What a block adds to its group by call stack. */
static inline uint64_t blocks_stack_bytes(const struct blocks *blocks, const struct block *block)
{
  return stack_sample_bytes(blocks->stack_sample, block->bytes, block->stack);
}

static inline uint64_t blocks_stack_blocks(const struct blocks *blocks, const struct block *block)
{
  return stack_sample_blocks(blocks->stack_sample, block->bytes, block->stack);
}

/* The event of what changes before an event: of what changes after the last, the last. There is an event. */
static inline uint32_t blocks_event(const struct blocks *blocks, uint32_t event)
{
  return event < blocks->n_events ? event : (uint32_t)blocks->n_events - 1;
}

/* The number of a block's tag in tag_names, or BLOCKS_OTHERS; 0: it has none. */
static inline uint32_t blocks_tag(const struct blocks *blocks, const struct block *block)
{
  const size_t i = (size_t)(block - blocks->items);
  return i < blocks->n_tags ? blocks->tags[i] : 0;
}

/* "(others)" for BLOCKS_OTHERS; NULL for 0. Valid until the next call. */
const char *blocks_tag_name(const struct blocks *blocks, uint32_t tag);

enum { BLOCKS_STACK_NAME_BYTES = 240, BLOCKS_POOL_NAME_BYTES = 256 };

/* What a stack is called, for people; see stack_frames_name(). */
void blocks_stack_name(const struct blocks *blocks, uint32_t stack, char *name, size_t name_bytes);

/* What a segment's pool is called, and what it is. */
void blocks_pool_name(const struct blocks *blocks, uint32_t pool, char name[BLOCKS_POOL_NAME_BYTES]);
const char *blocks_pool_word(const struct blocks *blocks);

#endif
