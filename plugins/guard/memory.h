/* SPDX-License-Identifier: MIT */
/* memory.h: fills and compares memory of any kind: device, managed, pinned or pageable. It uses its own stream, which no
 * work of the application waits for; work of the application on the memory must have ended. Only fills may run on a
 * stream of the application. The device is current in all calls. */
#ifndef HIPMM_PLUGINS_GUARD_MEMORY_H
#define HIPMM_PLUGINS_GUARD_MEMORY_H

#include <hipmm/plugin.h>

#include <stdbool.h>

/* Fill patterns. Programs seldom write these values. As floating-point numbers both are huge or tiny, which shows in
 * results. */
enum memory_pattern { MEMORY_ZONE = 0xB5, MEMORY_POISON = 0xFB };

/* Pinned memory: copies from and to it do not wait for a stream. */
struct memory_buffers {
  unsigned char zone[16384], poison[16384]; /* patterns, for memory that a device cannot fill */
  unsigned char read[65536];
};

struct memory {
  const struct hipmm_services *services;
  hipmm_stream_t stream;
  struct memory_buffers *buffers;
};

/* The bytes that differ from the pattern: offsets of the first and the last one, and their number. */
struct memory_damage {
  size_t first, last, count; /* count 0: none */
};

enum hipmm_status memory_open(struct memory *memory, const struct hipmm_services *services);
void memory_close(struct memory *memory);

enum hipmm_status memory_fill(struct memory *memory, void *ptr, size_t bytes, enum memory_pattern pattern,
                              hipmm_stream_t stream);

/* One thread at a time. */
enum hipmm_status memory_compare(struct memory *memory, const void *ptr, size_t bytes, enum memory_pattern pattern,
                                 struct memory_damage *damage_out);

/* Waits for fills on the memory's own stream. */
enum hipmm_status memory_wait(struct memory *memory);

/* Waits for a stream of the application, or for the whole device if that stream is gone. */
enum hipmm_status memory_wait_for_stream(struct memory *memory, hipmm_stream_t stream);

/* An event that is recorded on a stream of the application now; a wait for it, which needs no stream; its end. NULL: none. */
enum hipmm_status memory_mark(struct memory *memory, hipmm_stream_t stream, hipmm_hip_event_t *event_out);
enum hipmm_status memory_wait_for_mark(struct memory *memory, hipmm_hip_event_t event);
void memory_drop_mark(struct memory *memory, hipmm_hip_event_t event);
enum hipmm_status memory_wait_for_device(struct memory *memory);

#endif
