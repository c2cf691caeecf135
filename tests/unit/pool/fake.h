/* SPDX-License-Identifier: MIT */
/* fake.h: a make-believe world for the pool's files: services, streams that keep vector clocks in place of doing work,
 * and an upstream that hands out addresses in place of memory. Its one state is global and begins anew with
 * fake_begin(). Whatever the pool does that a real runtime would not survive is noted, and fake_end() tells. */
#ifndef HIPMM_TESTS_UNIT_POOL_FAKE_H
#define HIPMM_TESTS_UNIT_POOL_FAKE_H

#include <hipmm/plugin.h>

#include <stdbool.h>

const struct hipmm_services *fake_begin(void);

/* 0 if all is well and everything was given back; otherwise it says what is wrong, and returns -1: for a teardown. */
int fake_end(void);

/* Something happened that must not; the first counts. */
void fake_note_mistake(const char *mistake);

/* ---- Services ---- */

/* The `nth` allocation of host memory from now on fails, once. 0: none. */
void fake_fail_host_allocation(unsigned nth);

/* ---- Streams. Work on a stream has numbers from 1 on. ---- */

enum { FAKE_STREAMS = 8, FAKE_FIRST_STREAM = 1 };

/* The handle of stream `index`; 0 is the default stream's, NULL. */
hipStream_t fake_stream(unsigned index);

/* Submits work to the stream; returns its number. */
uint64_t fake_work(unsigned stream);

/* What was submitted to the stream so far is done, and so is all that it waited for. */
void fake_progress(unsigned stream);

/* Whether what is submitted to `later` from now on is ordered after the given work of stream `stream`. */
bool fake_is_ordered(unsigned later, unsigned stream, uint64_t work);

/* Orders what is submitted to `later` from now on after what was submitted to `earlier`: what a program does itself. */
void fake_order(unsigned later, unsigned earlier);

/* While a handle is dead, using it is a mistake. All are alive at first. */
void fake_set_alive(unsigned stream, bool alive);

/* Whether recording events fails; and waiting for the device. */
void fake_set_record_fails(bool fails);
void fake_set_device_wait_fails(bool fails);

/* How often they were called. */
struct fake_calls {
  unsigned event_create, event_record, event_query, event_synchronize, stream_wait_event, device_synchronize,
      stream_synchronize, last_error;
};

extern struct fake_calls fake_calls;

/* ---- An upstream ---- */

/* Of `capacity` bytes, for blocks and for chunks. With a granule of 0 bytes it cannot map. */
struct hipmm_resource *fake_upstream(uint64_t capacity_bytes, uint64_t granule_bytes);

/* Whether its chunks may be mapped at several addresses at once; at first they may not. */
void fake_let_upstream_alias(bool may_alias);

/* It says that mapping takes long; that it is better left alone. */
void fake_slow_upstream_down(void);
void fake_discourage_upstream(void);

/* The `nth` call of any function of the upstream fails from now on, once, with this status. 0: none. */
void fake_fail_upstream(unsigned nth, enum hipmm_status status);
bool fake_failure_is_due(void); /* it has not come yet */

/* What it has given out: blocks, or chunks. */
uint64_t fake_held_bytes(void);
uint64_t fake_free_bytes(void); /* and what it still has */

/* Whether chunks are mapped under all of [start, end), and under how much of it. */
bool fake_is_mapped(uint64_t start, uint64_t end);
uint64_t fake_mapped_bytes(uint64_t start, uint64_t end);

/* Whether the chunk of this handle is mapped at the address, as a part that begins `offset` bytes into it. */
bool fake_is_chunk(uint64_t address, const void *handle, uint64_t offset);

/* ---- For fake_begin() and fake_end() ---- */

extern struct hipmm_hip fake_hip;
void fake_hip_begin(void);
void fake_upstream_begin(void);
void fake_hip_end(void);
void fake_upstream_end(void);

#endif
