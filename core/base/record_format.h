/* SPDX-License-Identifier: MIT */
/* record_format.h: the binary record of allocations and frees, which the `recording` adaptor writes and the commands read.
 *
 * A file is blocks of RECORD_BLOCK_BYTES, in the byte order of the machine that wrote it. The first holds a `struct
 * record_head`. Each other block holds a `struct record_block` and then the events of one thread, in order of time; it can
 * be read without the others. A block whose magic is 0 is unused. A block that a thread still writes into is mapped memory;
 * when it is full, it is copied to the end of the file and begun anew. So of two blocks with one sequence number, one is a
 * copy. The events of a block end at a byte 0 in place of a head, or with the block.
 *
 * An event is a head of two bytes, lower byte first, then as many bytes of each number as the head says, lowest byte first:
 *
 * A number may have more bytes than it needs.
 *
 *     time         ticks since the event before, or since the block's first tick
 *     pointer      minus the pointer before (0 at first), zigzag; in units of 256 bytes if bit RECORD_UNIT is set
 *     size         bytes
 *     stream       if RECORD_STREAM is set: a byte I. I < 16: the block's stream I. Else 16 + I: stream I is defined by the
 *                  next 8 bytes. Without the bit: the stream of the event before, or the null stream
 *     stack        if RECORD_STACK is set: 4 bytes, the number of a stack trace
 *
 * A head with RECORD_META is no event: bits 1 to 3 are an enum record_meta, which says what follows.
 *
 * The writer stores a byte 0 behind an event, and then the lower byte of its head. So a reader of a file whose writer was
 * killed, or runs, finds whole events only, also in a block whose older contents were not cleared. */
#ifndef HIPMM_CORE_BASE_RECORD_FORMAT_H
#define HIPMM_CORE_BASE_RECORD_FORMAT_H

#include <stdint.h>
#include <string.h>

#define RECORD_MAGIC   "hipmm record 4\n"
#define RECORD_MAGIC_3 "hipmm record 3\n" /* without places, else the same */
#define RECORD_MAGIC_2 "hipmm record 2\n" /* also without tags */
#define RECORD_MAGIC_1 "hipmm record 1\n" /* also without held memory */

enum {
  RECORD_BLOCK_BYTES = 1 << 16,
  RECORD_BLOCK_MAGIC = 0x4b4c4252, /* "RBLK" */
  RECORD_BYTE_ORDER = 0x01020304,
  RECORD_STREAMS = 16,
  RECORD_MOST_EVENT_BYTES = 2 + 3 * 8 + 9 + 4,
  RECORD_PUT_BYTES = RECORD_MOST_EVENT_BYTES + 8, /* the room that record_put() needs */
  RECORD_MOST_TAG_BYTES = 255,
  RECORD_MOST_NAME_BYTES = 255,
  RECORD_MOST_TEXT_BYTES = 1 << 14
};

struct record_head {
  char magic[16];
  uint32_t byte_order, block_bytes;
  uint64_t ticks, nanoseconds;         /* the same moment: of the events' clock, and of the monotonic clock */
  uint64_t end_ticks, end_nanoseconds; /* a later moment; 0 if the writer was killed */
  uint64_t ticks_per_second;           /* measured for a millisecond; two moments far apart tell better */
  int64_t wall_offset;                 /* nanoseconds since 1970 minus `nanoseconds` */
  uint32_t process;
  int32_t device;
  char host[64];
  uint64_t stack_sample; /* what a stack stands for: see stack_sample.h. 0: for its own event */
};

struct record_block {
  uint32_t magic; /* written last */
  uint32_t thread;
  uint64_t ticks, nanoseconds; /* of its beginning */
  uint64_t lost_events;        /* of its thread before it, since the file could not grow */
  uint64_t sequence;           /* counts the blocks that were begun, in this file and those before it, from 1 */
  uint64_t held_bytes;         /* 1 + what the sources of the device held when the block was begun; 0: not known */
  uint64_t unused[2];
};

/* The values of two bits of the head. */
enum record_action {
  RECORD_ALLOCATE,
  RECORD_ALLOCATE_FAILURE,
  RECORD_FREE,
  RECORD_FREE_FAILURE, /* the upstream refused the free of the event before it, of the same thread and pointer */
  RECORD_HELD,         /* this and the next: of meta events, in no head */
  RECORD_PLACE
};

enum record_head_bits {
  RECORD_PRESENT = 1 << 0,
  RECORD_ACTION_SHIFT = 1, /* 2 bits */
  RECORD_UNIT = 1 << 3,
  RECORD_TIME_SHIFT = 4, /* 3 bits each: how many bytes; 7 stands for 8 */
  RECORD_POINTER_SHIFT = 7,
  RECORD_SIZE_SHIFT = 10,
  RECORD_STREAM = 1 << 13,
  RECORD_STACK = 1 << 14,
  RECORD_META = 1 << 15
};

enum record_meta {
  RECORD_META_THREAD, /* 4 bytes: the thread of the events that follow */
  RECORD_META_STACK, /* 4 bytes: the number of a stack trace; 4 bytes: the length of its text; the text, a line a frame */
  RECORD_META_HELD, /* a struct record_held */
  RECORD_META_TAGS, /* of the block's events that follow; a block begins without: a byte, the length of their text; the
                       text, which has a line for each tag, the outermost first */
  RECORD_META_PLACE /* a struct record_place; a byte, the length of a name; the name of the resource that has it there */
};

/* What the sources of the device hold; the next event is the first for which that is so. */
struct record_held {
  uint64_t ticks;
  uint64_t bytes;
  uint64_t device_free_bytes; /* of the device; UINT64_MAX: not known */
};

/* What is held is at these addresses for the events that follow; with negative `bytes` no longer. */
struct record_place {
  uint64_t ticks, address;
  int64_t bytes;
};

/* As `bytes`, of address 0: all places before it are forgotten, and those that there are follow. */
#define RECORD_NOWHERE INT64_MIN

struct record_event {
  enum record_action action;
  uint64_t ticks, ptr, bytes,
      stream;     /* of RECORD_HELD `ptr` is device_free_bytes; of RECORD_PLACE `bytes` has a sign */
  uint32_t stack; /* 0: not recorded */
};

/* What the next event of a block refers to. A block begins with {.ticks = those of its head}. */
struct record_context {
  uint64_t ticks, ptr, stream;
  uint32_t n_streams; /* of the table that were defined, modulo 2^32 */
  uint64_t streams[RECORD_STREAMS];
};

/* The code of the bytes that a number needs. */
static inline unsigned record_length_code(uint64_t number)
{
  unsigned length = number ? (71u - (unsigned)__builtin_clzll(number)) / 8 : 0;
  return length < 7 ? length : 7;
}

static inline unsigned record_length(unsigned code)
{
  return code + (code == 7);
}

/* Stores a number whole; the bytes above its length are 0 and belong to what follows. */
static inline char *record_put_number(char *at, uint64_t number, unsigned code)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  number = __builtin_bswap64(number);
#endif
  memcpy(at, &number, sizeof number);
  return at + record_length(code);
}

/* The byte of the stream, and its handle where the table lacks it. */
static inline char *record_put_stream(char *at, struct record_context *context, uint64_t stream)
{
  uint32_t defined = context->n_streams < RECORD_STREAMS ? context->n_streams : RECORD_STREAMS;
  context->stream = stream;
  for (uint32_t i = 0; i < defined; i++)
    if (context->streams[i] == stream) {
      *at = (char)i;
      return at + 1;
    }
  uint32_t index = context->n_streams++ % RECORD_STREAMS;
  context->streams[index] = stream;
  *at = (char)(RECORD_STREAMS + index);
  return record_put_number(at + 1, stream, 7);
}

static inline void record_put_head(char *at, unsigned head)
{
  at[1] = (char)(head >> 8);
  __atomic_store_n(at, (char)head, __ATOMIC_RELEASE);
}

/* Writes an event; `at` has RECORD_PUT_BYTES. Returns its end, where a byte 0 is. Times of a block do not decrease. */
static inline __attribute__((always_inline)) char *record_put(char *at, struct record_context *context,
                                                              const struct record_event *event)
{
  uint64_t ticks = event->ticks > context->ticks ? event->ticks - context->ticks : 0;
  int64_t moved = (int64_t)(event->ptr - context->ptr);
  unsigned in_units = (moved & 255) == 0;
  int64_t steps = in_units ? moved / 256 : moved;
  uint64_t zigzag = (uint64_t)steps << 1 ^ (uint64_t)(steps >> 63);
  unsigned time = record_length_code(ticks), pointer = record_length_code(zigzag),
           size = record_length_code(event->bytes);
  unsigned head = RECORD_PRESENT | (unsigned)event->action << RECORD_ACTION_SHIFT | in_units * RECORD_UNIT |
                  time << RECORD_TIME_SHIFT | pointer << RECORD_POINTER_SHIFT | size << RECORD_SIZE_SHIFT;
  char *end = record_put_number(at + 2, ticks, time);
  end = record_put_number(end, zigzag, pointer);
  end = record_put_number(end, event->bytes, size);
  if (__builtin_expect(event->stream != context->stream, 0)) {
    head |= RECORD_STREAM;
    end = record_put_stream(end, context, event->stream);
  }
  if (__builtin_expect(event->stack != 0, 0)) {
    head |= RECORD_STACK;
    memcpy(end, &event->stack, sizeof event->stack);
    end += sizeof event->stack;
  }
  *end = 0;
  context->ticks += ticks;
  context->ptr = event->ptr;
  record_put_head(at, head);
  return end;
}

/* Writes an event whose numbers have these lengths, each at most 4, of the context's stream and without a stack. NULL: a
 * number does not fit, and nothing was written. Nothing is computed from the numbers: that would cost more than to write. */
static inline __attribute__((always_inline)) char *record_put_fixed(char *at, struct record_context *context,
                                                                    const struct record_event *event, unsigned time,
                                                                    unsigned pointer, unsigned size)
{
  uint64_t ticks = event->ticks - context->ticks, moved = event->ptr - context->ptr;
  int64_t steps = (int64_t)moved >> 8;
  uint64_t zigzag = (uint64_t)steps << 1 ^ (uint64_t)(steps >> 63);
  uint64_t beyond = ticks >> 8 * time | zigzag >> 8 * pointer | event->bytes >> 8 * size;
  if (__builtin_expect((beyond | (moved & 255)) != 0, 0)) return NULL;
  char *end = record_put_number(at + 2, ticks, time);
  end = record_put_number(end, zigzag, pointer);
  end = record_put_number(end, event->bytes, size); /* ends with zeros */
  context->ticks = event->ticks;
  context->ptr = event->ptr;
  record_put_head(at, RECORD_PRESENT | (unsigned)event->action << RECORD_ACTION_SHIFT | RECORD_UNIT |
                          time << RECORD_TIME_SHIFT | pointer << RECORD_POINTER_SHIFT | size << RECORD_SIZE_SHIFT);
  return end;
}

/* Writes a meta event; `at` has 2 + bytes + 1. Returns its end, where a byte 0 is. */
static inline char *record_put_meta(char *at, enum record_meta meta, const void *data, size_t bytes)
{
  memcpy(at + 2, data, bytes);
  at[2 + bytes] = 0;
  record_put_head(at, RECORD_META | RECORD_PRESENT | (unsigned)meta << RECORD_ACTION_SHIFT);
  return at + 2 + bytes;
}

/* Writes the tags; `at` has 2 + 1 + their bytes + 1. */
static inline char *record_put_tags(char *at, const char *tags)
{
  char data[1 + RECORD_MOST_TAG_BYTES];
  size_t bytes = strnlen(tags, RECORD_MOST_TAG_BYTES);
  data[0] = (char)bytes;
  memcpy(data + 1, tags, bytes);
  return record_put_meta(at, RECORD_META_TAGS, data, 1 + bytes);
}

#endif
