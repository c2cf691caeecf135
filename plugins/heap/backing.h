/* SPDX-License-Identifier: MIT */
/* backing.h: the memory behind the addresses of a pool or arena. Where the upstream can map, a pool has granules, which are
 * mapped under ranges of addresses. Otherwise, and in an arena, there are segments. struct backing_ops says what each function
 * does. The caller holds the pool's or arena's lock. */
#ifndef HIPMM_PLUGINS_HEAP_BACKING_H
#define HIPMM_PLUGINS_HEAP_BACKING_H

#include "../common/sizes.h"
#include "chunks.h"
#include "heap.h"

/* Chooses granules or segments, and logs the choice with its reason. Rounds the maximum down to what the backing can
 * hold. On failure services->fail() has reported why, and the caller still calls backing_close(). */
enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, const struct pool_options *options);

/* Chooses segments. `backing` is zeroed. False when host memory is short; backing_close() must be called all the same. */
bool backing_open_segments(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                           struct hipmm_resource *upstream, uint64_t maximum_bytes, uint64_t slack_bytes);

static inline void backing_close(const struct backing *backing)
{
  if (backing->ops) backing->ops->close(backing->self);
}

static inline enum hipmm_status backing_check_available(const struct backing *backing, const struct heap *heap,
                                                        const struct request *request)
{
  return backing->ops->check_available ? backing->ops->check_available(backing->self, heap, request) : HIPMM_OK;
}

/* Adds memory that is ready for every stream. */
static inline enum hipmm_status backing_fill(const struct backing *backing, struct heap *heap, uint64_t bytes)
{
  struct request request = {.bytes = bytes, .alignment = HIPMM_ALIGNMENT, .requested = bytes, .stream = STREAM_READY};
  uint32_t id;
  enum hipmm_status status = backing_check_available(backing, heap, &request);
  if (!status) status = backing->ops->allocate(backing->self, heap, &request, MEMORY_FROM_FILL, &id);
  if (!status) heap_free_later(heap, id, STREAM_READY, 0);
  return status;
}

static inline enum hipmm_status backing_use_slack(const struct backing *backing, struct heap *heap,
                                                  const struct request *request, uint32_t *id_out)
{
  return backing->ops->allocate(backing->self, heap, request, MEMORY_FROM_SLACK, id_out);
}

static inline enum hipmm_status backing_move(const struct backing *backing, struct heap *heap,
                                             const struct request *request, uint32_t *id_out)
{
  return backing->ops->allocate(backing->self, heap, request, MEMORY_FROM_MOVE, id_out);
}

static inline enum hipmm_status backing_grow(const struct backing *backing, struct heap *heap,
                                             const struct request *request, uint32_t *id_out)
{
  return backing->ops->allocate(backing->self, heap, request, MEMORY_FROM_GROWTH, id_out);
}

static inline enum hipmm_status backing_release_idle(const struct backing *backing, struct heap *heap,
                                                     uint64_t keep_bytes)
{
  return backing->ops->release_idle(backing->self, heap, keep_bytes);
}

static inline uint64_t backing_bytes(const struct backing *backing)
{
  return backing->held->bytes;
}

static inline uint64_t backing_available_bytes(const struct backing *backing, const struct heap *heap)
{
  return backing->ops->available_bytes(backing->self, heap);
}

/* The number of granules, or of segments. */
static inline uint64_t backing_count(const struct backing *backing)
{
  return backing->ops->moves ? backing->held->bytes / backing->held->least_bytes : backing->segments.count;
}

/* Bytes held and not allocated. Blocks in caches count as allocated. Of a granule that is partly in use, the other part
 * counts. */
static inline uint64_t backing_free_bytes(const struct backing *backing, const struct heap *heap)
{
  return backing_bytes(backing) - heap->live_bytes;
}

/* ---- Granules (granules.c) ----
 *
 * A pool's memory as ranges of addresses, with chunks mapped under the parts in use. A chunk that lies wholly in free blocks can
 * be mapped elsewhere, so holes never make memory useless: only addresses fragment, and there are many. */

/* HIPMM_E_NOT_SUPPORTED when the upstream cannot map, HIPMM_E_LIMIT when the maximum is below a granule. */
enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, const struct pool_options *options);

/* Commits the request's part of the best fit of the uncommitted blocks that are ready for its stream, and allocates there,
 * without a host wait for the work on idle chunks. What was committed in vain stays as free memory. */
enum hipmm_status granules_allocate(struct granules *granules, struct heap *heap, const struct request *request,
                                    enum source_of_memory source_of_memory, uint32_t *id_out);

extern const struct backing_ops granules_ops;

/* ---- Slack (slack.c) ----
 *
 * How loosely a mapped pool may hold memory. While the device and the maximum have room, the pool grows in large chunks and
 * leaves idle memory where it is: mapping costs time, and nobody is short of memory. The slack is the idle memory that the pool
 * may hold beyond the peak of its live memory. It shrinks with the room, and so do new chunks: near the end of the memory every
 * chunk is a granule, and idle chunks move to where they are needed. */

/* The option's word `auto`. */
static const uint64_t SLACK_AUTO = UINT64_MAX;

/* Before memory is added: `live_bytes` are to be live. Asks the device for its free memory, if the last answer is old. */
void slack_update(struct slack *slack, uint64_t live_bytes);

/* Bytes that the maximum and the device's free memory allow to add; UINT64_MAX where nobody knows. */
uint64_t slack_room(const struct slack *slack);

/* Bytes that may be added although there is idle memory. */
uint64_t slack_growth(const struct slack *slack);

/* Whether the slack, which is an option's or limited by the room, is not enough for four times the bytes: then idle memory is
 * worth some work. */
bool slack_is_low_on_memory(const struct slack *slack, uint64_t bytes);

/* The most granules that a new chunk should have, at least 1. */
uint64_t slack_chunk_limit(const struct slack *slack);

/* Of segments: the most that may be held, beyond which idle segments are released before one is added; and the size of a
 * segment for blocks that are smaller. An idle segment is not cut where more than that would be left. */
uint64_t slack_most_held(const struct slack *slack);
uint64_t slack_step(const struct slack *slack);

/* A segment was released for another one; a segment was added. To do so again and again takes milliseconds each time: sizes
 * that were released in vain are kept, in part. */
void slack_note_released(struct slack *slack, uint64_t bytes);
void slack_note_added(struct slack *slack, uint64_t bytes);

/* ---- Idle chunks (idle.c) ----
 *
 * Those that lie wholly in free blocks. An idle chunk can be mapped elsewhere, or go back to the upstream. Each idle_detach
 * function detaches one of at most `most` granules, or returns HIPMM_E_OUT_OF_MEMORY if there is none. */

/* Bytes of the idle chunks in a free block. */
uint64_t idle_bytes_in(const struct chunks *chunks, const struct block *block);

/* Detaches a chunk that lies wholly in the free block `holder`, which is in an index, or is not. */
enum hipmm_status idle_detach_chunk(struct chunks *chunks, struct heap *heap, uint32_t chunk, uint32_t holder,
                                    bool is_listed);

/* Detaches a chunk of a free block that is in no index, from the address `from` on. */
enum hipmm_status idle_detach_from(struct chunks *chunks, struct heap *heap, uint32_t id, uint64_t from, uint64_t most,
                                   uint32_t *chunk_out);

/* Detaches a chunk of the stream's free blocks. */
enum hipmm_status idle_detach(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                              uint32_t *chunk_out);

/* Detaches a chunk of another stream's free blocks, after `stream` was made to wait for that stream. */
enum hipmm_status idle_detach_waiting(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                                      uint32_t *chunk_out);

/* Whether there are idle chunks in pending blocks. */
bool idle_is_pending(const struct chunks *chunks, const struct heap *heap);

/* Waits on the host until no work uses an alias mapping. The handle of `user` is valid during this call. Refused, without a
 * wait, where only the device could be waited for and a graph is captured. */
enum hipmm_status idle_await_mapping(const struct chunks *chunks, struct heap *heap, uint32_t mapping, uint32_t user);

/* Takes an unmapped chunk of at most `most` granules off the list, after such a wait for each of its alias mappings;
 * CHUNK_NONE if there is none. */
uint32_t idle_obtain_unmapped(struct chunks *chunks, struct heap *heap, uint64_t most, uint32_t user);

/* Releases idle chunks of ready blocks, and unmapped chunks, to the upstream while more than `keep_bytes` are held. */
enum hipmm_status idle_release(struct chunks *chunks, struct heap *heap, uint64_t keep_bytes);

/* ---- Chunks that are one block (own.c) ----
 *
 * Other processes may get these blocks. Each is a region of the heap, in a range that has only such blocks. Its chunk is never
 * mapped elsewhere: it is created for a block, serves blocks of about that size later, and is released when memory is short. */

/* A free block for a request with is_own, with a new chunk. MEMORY_FROM_MOVE: once so much idle memory was released. */
enum hipmm_status own_create(struct granules *granules, struct heap *heap, const struct request *request,
                             enum source_of_memory source_of_memory, uint32_t *id_out);

/* Releases the chunk of such a block that is free, and no work uses; and those of ready blocks while more than `keep_bytes`
 * are held, followed by idle_release(). */
enum hipmm_status own_drop(struct chunks *chunks, struct heap *heap, uint32_t id);
enum hipmm_status own_release(struct chunks *chunks, struct heap *heap, uint64_t keep_bytes);

/* ---- Segments (segments.c): blocks of the upstream, each of which is a region of the heap ---- */

/* Whether `ptr` lies in a segment. */
bool segments_contain(const struct segments *segments, const void *ptr);

/* ---- Idle memory in pieces (fragments.c) ---- */

/* Idle bytes beside the largest block that they could serve, caches aside. Looks at each block of mapped memory. */
uint64_t fragments_bytes(const struct backing *backing, const struct heap *heap);

/* The request is about to be served by new memory, or fails. Warns, once, if the idle memory would be enough for it and is a
 * quarter of what is held, but no piece of it is large enough, and less is left to add than is held. */
void fragments_warn(const struct backing *backing, struct heap *heap, const struct request *request);

/* ---- Why an allocation failed, in numbers for the error record (explain.c) ----
 *
 * Called once for each failure, after every attempt in the table of ../arena/miss.c; on no other path. */

/* Explains why the backing failed with `status`. Returns the status for the caller of the pool. */
enum hipmm_status explain_failure(const struct backing *backing, const struct heap *heap, enum hipmm_status status,
                                  const struct request *request);

/* The pool has no record for another block. */
enum hipmm_status explain_exhausted_records(const struct backing *backing, const struct heap *heap,
                                            const struct request *request);

#endif
