/* SPDX-License-Identifier: MIT */
/* memory.h: fills memory and looks at it, wherever it is: on a device, managed, pinned or plain. On a stream of its
 * own, which no work of the application's waits for or holds up; what the application's streams have to do with the
 * memory must be over. Filling alone may be done on a stream of the application's. The device is current in all of
 * it. */
#ifndef HIPMM_GUARD_MEMORY_H
#define HIPMM_GUARD_MEMORY_H

#include <hipmm/plugin.h>

#include <stdbool.h>

/* What memory is filled with. Neither is a value that programs write much; as floating-point numbers both are huge or
 * tiny, which shows in results. */
enum memory_pattern { MEMORY_ZONE = 0xB5, MEMORY_POISON = 0xFB };

/* Pinned: copies from and to it do not wait for a stream. */
struct memory_buffers {
  unsigned char zone[16384], poison[16384]; /* patterns, for memory that a device cannot fill */
  unsigned char read[65536];
};

struct memory {
  const struct hipmm_services *services;
  hipStream_t stream;
  struct memory_buffers *buffers;
};

/* What is not as it was filled: offsets of the first and the last such byte, and how many there are. */
struct memory_damage {
  size_t first, last, count; /* count 0: none */
};

enum hipmm_status memory_open(struct memory *memory, const struct hipmm_services *services);
void memory_close(struct memory *memory);

enum hipmm_status memory_fill(struct memory *memory, void *ptr, size_t bytes, enum memory_pattern pattern,
                              hipStream_t stream);

/* One thread at a time. */
enum hipmm_status memory_compare(struct memory *memory, const void *ptr, size_t bytes, enum memory_pattern pattern,
                                 struct memory_damage *damage_out);

/* All that was filled on the memory's own stream is done. */
enum hipmm_status memory_wait(struct memory *memory);

/* All work on a stream of the application's is done; or, where that stream cannot be named any more, on the device. */
enum hipmm_status memory_wait_for_stream(struct memory *memory, hipStream_t stream);
enum hipmm_status memory_wait_for_device(struct memory *memory);

#endif
