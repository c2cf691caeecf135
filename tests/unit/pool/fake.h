/* SPDX-License-Identifier: MIT */
/* fake.h: fake services, streams and upstream for the pool's files. A fake stream keeps a vector clock and does no work; the
 * fake upstream provides addresses and no memory. The state is global, and fake_begin() resets it. What a real runtime
 * would not survive is recorded as a mistake, and fake_end() reports it. */
#ifndef HIPMM_TESTS_UNIT_POOL_FAKE_H
#define HIPMM_TESTS_UNIT_POOL_FAKE_H

#include <hipmm/plugin.h>

#include <stdbool.h>

const struct hipmm_services *fake_begin(void);

/* For a teardown: 0 if there was no mistake and everything was released; otherwise prints the mistake and returns -1. */
int fake_end(void);

/* Records a mistake. Only the first is reported. */
void fake_note_mistake(const char *mistake);

/* A value of the resource; -1 if it has none of that name. To fail is a mistake. */
int64_t fake_query(const struct hipmm_plugin *plugin, void *resource, const char *name);

/* ---- Services ---- */

/* The `nth` allocation of host memory from now on fails, once. 0: none. */
void fake_fail_host_allocation(unsigned nth);

/* ---- Streams. Work on a stream has numbers from 1 on. ---- */

enum { FAKE_STREAMS = 8, FAKE_FIRST_STREAM = 1 };

/* The handle of stream `index`; 0 is the default stream's, NULL. */
hipmm_stream_t fake_stream(unsigned index);

/* Submits work to the stream, and returns its number. */
uint64_t fake_work(unsigned stream);

/* Completes all work submitted to the stream so far, and all work that it waited for. */
void fake_progress(unsigned stream);

/* Whether work submitted to `later` from now on is ordered after that work of `stream`. */
bool fake_is_ordered(unsigned later, unsigned stream, uint64_t work);

/* Orders work submitted to `later` from now on after the work of `earlier`, as a program does itself. */
void fake_order(unsigned later, unsigned earlier);

/* To use a dead handle is a mistake. All handles are alive at first. */
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

/* An upstream with `capacity` bytes for blocks and chunks. With a granule of 0 bytes it cannot map. */
struct hipmm_resource *fake_upstream(uint64_t capacity_bytes, uint64_t granule_bytes);

/* Whether its chunks may be mapped at several addresses at once; at first they may not. */
void fake_let_upstream_alias(bool may_alias);

/* Makes it report that `auto` should not use its mapping. */
void fake_discourage_upstream(void);

/* The `nth` call of any function of the upstream fails from now on, once, with this status. 0: none. */
void fake_fail_upstream(unsigned nth, enum hipmm_status status);
bool fake_failure_is_due(void); /* it has not happened yet */

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
