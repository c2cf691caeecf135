/* SPDX-License-Identifier: MIT */
/* Tests of where a pool's memory comes from, mapped and in segments: it is there when a block needs it, is used up to
 * the last byte of the maximum, moves to where it is needed, and goes back. HIPMM_TEST_RUNS makes more random runs or
 * fewer. */
#include "../../../plugins/heap/backing.h"
#include "../../support/random.h"
#include "../../support/support.h"
#include "fake.h"

enum { STREAM = STREAM_FIRST, STREAMS = 3 };

static const uint64_t GRANULE = 2 << 20;

static struct heap heap;
static struct backing backing;
static bool may_alias; /* a chunk may be mapped at several addresses */
static uint64_t slack; /* of backings that are opened */

static uint32_t stream_id(hipmm_stream_t handle)
{
  uint32_t id = STREAM_READY;
  assert_ok(streams_enter(&heap.streams, handle, &id));
  return id;
}

static void open_on(struct hipmm_resource *upstream, const struct hipmm_services *services, enum growth growth,
                    uint64_t maximum_bytes)
{
  assert_true(heap_open(&heap, services, RECORD_LAZY));
  assert_int_equal(stream_id(NULL), STREAM);
  const struct pool_options options = {.maximum_size = maximum_bytes, .slack = slack, .growth = growth};
  assert_ok(backing_open(&backing, &heap, services, upstream, &options));
  assert_int_equal(backing.ops->moves, growth == GROWTH_MAPPED);
}

static void open_backing(enum growth growth, uint64_t capacity_bytes, uint64_t granule_bytes, uint64_t maximum_bytes)
{
  const struct hipmm_services *services = fake_begin();
  fake_let_upstream_alias(may_alias);
  open_on(fake_upstream(capacity_bytes, granule_bytes), services, growth, maximum_bytes);
}

static int close_backing(void **state)
{
  (void)state;
  slack = 0;
  backing_close(&backing);
  heap_close(&heap);
  return fake_end();
}

/* ---- What must always hold ---- */

/* Whether the granule lies in exactly one current mapping, and that chunk is really mapped there. */
static bool is_backed(uint64_t granule)
{
  const struct chunks *chunks = &backing.granules.chunks;
  uint64_t begin;
  uint32_t id = addresses_chunk_at(&chunks->addresses, granule, &begin);
  if (!id || !chunk_of(chunks, id)->current || chunk_address(chunks, id) != begin) return false;
  assert_true(granule - begin < chunk_bytes(chunks, id));
  assert_true(fake_is_chunk(granule, chunk_of(chunks, id)->handle, granule - begin));
  return true;
}

static uint64_t backed_bytes(uint64_t start, uint64_t end)
{
  uint64_t sum = 0;
  for (uint64_t at = start, next; at < end; at = next) {
    uint64_t granule =
        at / backing.granules.chunks.addresses.granule_bytes * backing.granules.chunks.addresses.granule_bytes;
    next = granule + backing.granules.chunks.addresses.granule_bytes < end
               ? granule + backing.granules.chunks.addresses.granule_bytes
               : end;
    if (is_backed(granule)) sum += next - at;
  }
  return sum;
}

/* A free block knows the number of its uncommitted granules; all others are committed. */
static void assert_backed(const struct block *block)
{
  const struct chunks *chunks = &backing.granules.chunks;
  uint64_t start = block->start, end = start + block->bytes, first = addresses_round_up(&chunks->addresses, start);
  uint64_t last = addresses_round_down(&chunks->addresses, end), backed = backed_bytes(start, end);
  if (block_state(block) != BLOCK_FREE || first >= last) {
    assert_int_equal(backed, block->bytes);
    assert_int_equal(block->uncommitted, 0);
    return;
  }
  assert_int_equal(backed + block->uncommitted * chunks->addresses.granule_bytes, block->bytes);
  assert_true(backed_bytes(start, first) == first - start && backed_bytes(last, end) == end - last);
}

static void assert_valid(void)
{
  assert_true(heap_is_valid(&heap));
  assert_int_equal(backing_bytes(&backing), fake_held_bytes());
  assert_true(backing_bytes(&backing) <= backing.held->maximum_bytes);
  assert_true(backing.held->peak_bytes >= backing_bytes(&backing));
  for (uint32_t id = 1; backing.ops->moves && id < heap.blocks.count; id++)
    if (block_state(block_of(&heap.blocks, id)) != BLOCK_UNUSED) assert_backed(block_of(&heap.blocks, id));
}

static struct request request_for(uint64_t bytes)
{
  return (struct request){.bytes = bytes, .alignment = HIPMM_ALIGNMENT, .requested = bytes, .stream = STREAM};
}

/* In the order in which the pool tries. */
static enum hipmm_status try_take(const struct request *request, uint32_t *id_out)
{
  *id_out = heap_allocate_ready(&heap, request);
  if (!*id_out && heap.streams.active > 1) *id_out = heap_allocate_completed(&heap, request);
  if (!*id_out && heap.streams.active > 1) *id_out = heap_allocate_waiting(&heap, request);
  if (*id_out) return HIPMM_OK;
  enum hipmm_status status = backing_use_slack(&backing, &heap, request, id_out);
  if (hipmm_is_out_of_memory(status)) status = backing_check_available(&backing, &heap, request);
  if (!*id_out && !status) status = backing_move(&backing, &heap, request, id_out);
  if (status == HIPMM_E_OUT_OF_MEMORY && !backing_check_available(&backing, &heap, request))
    status = backing_grow(&backing, &heap, request, id_out);
  if (status != HIPMM_E_LIMIT && status != HIPMM_E_OUT_OF_MEMORY) return status;
  if (fake_hip.DeviceSynchronize()) return status;
  heap_complete_all(&heap);
  status = backing_check_available(&backing, &heap, request);
  if (!status) status = backing_release_idle(&backing, &heap, 0);
  return status ? status : backing_grow(&backing, &heap, request, id_out);
}

static uint32_t allocate_block(uint64_t bytes)
{
  struct request request = request_for(bytes);
  uint32_t id = BLOCK_NONE;
  assert_status(try_take(&request, &id), HIPMM_OK);
  assert_true(block_of(&heap.blocks, id)->bytes >= bytes);
  if (backing.ops->moves) assert_backed(block_of(&heap.blocks, id));
  return id;
}

static bool has_room(uint64_t bytes, uint32_t *id_out)
{
  struct request request = request_for(bytes);
  enum hipmm_status status = try_take(&request, id_out);
  assert_true(!status || status == HIPMM_E_LIMIT || status == HIPMM_E_OUT_OF_MEMORY);
  return !status;
}

static void free_block(uint32_t id)
{
  heap_free(&heap, id, STREAM);
}

/* ---- The maximum ---- */

/* Fills it with blocks of `bytes`; returns how many there are. */
static unsigned fill(uint64_t bytes, uint32_t *ids, unsigned most)
{
  unsigned n = 0;
  while (n < most && has_room(bytes, &ids[n])) n++;
  return n;
}

enum { MOST_IDS = 4096 };

static uint32_t ids[MOST_IDS];

static void reaches_its_maximum(enum growth growth, uint64_t capacity_bytes, uint64_t maximum_bytes)
{
  static const uint64_t sizes[] = {MIB / 4, MIB / 2 + 256, 3 * MIB, 256};
  uint64_t whole = maximum_bytes < capacity_bytes ? maximum_bytes : capacity_bytes;
  open_backing(growth, capacity_bytes, GRANULE, maximum_bytes);
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned n = fill(sizes[i], ids, MOST_IDS);
    assert_true(n == MOST_IDS || n == whole / sizes[i] || growth == GROWTH_SEGMENTS);
    assert_valid();
    for (unsigned k = 0; k < n; k++) free_block(ids[k * 7919u % n]); /* out of order */
    assert_valid();
    uint32_t all = allocate_block(whole);
    assert_int_equal(backing_bytes(&backing), whole);
    assert_valid();
    free_block(all);
  }
  assert_int_equal(close_backing(NULL), 0);
}

static void reaches_its_maximum_with_one_block(void **state)
{
  static const enum growth growths[] = {GROWTH_MAPPED, GROWTH_SEGMENTS};
  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    reaches_its_maximum(growths[i], 256 * MIB, 34 * MIB);
    reaches_its_maximum(growths[i], 34 * MIB, UINT64_MAX);
    reaches_its_maximum(growths[i], 34 * MIB, 34 * MIB);
    reaches_its_maximum(growths[i], 2 * MIB, UINT64_MAX);
  }
  reaches_its_maximum(GROWTH_SEGMENTS, 256 * MIB, MIB);
  reaches_its_maximum(GROWTH_SEGMENTS, 256 * MIB, 33 * MIB + 256);
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

/* Others may want the memory meanwhile, and chunks cost time. */
static void takes_nothing_for_what_cannot_be_had(uint64_t capacity_bytes, uint64_t maximum_bytes, uint64_t slack_bytes,
                                                 enum hipmm_status status)
{
  uint32_t id;
  slack = slack_bytes;
  open_backing(GROWTH_MAPPED, capacity_bytes, GRANULE, maximum_bytes);
  ids[0] = allocate_block(20 * GRANULE);
  ids[1] = allocate_block(20 * GRANULE);
  free_block(ids[0]); /* is idle, and not enough */
  const struct request request = request_for(81 * GRANULE);
  assert_int_equal(try_take(&request, &id), status);
  assert_int_equal(backing_bytes(&backing), 40 * GRANULE);
  assert_int_equal(backing.held->peak_bytes, 40 * GRANULE);
  assert_int_equal(backing.granules.moves, 0);
  assert_valid();
  ids[0] = allocate_block(80 * GRANULE);
  assert_int_equal(backing_bytes(&backing), 100 * GRANULE);
  assert_valid();
  assert_int_equal(close_backing(NULL), 0);
}

static void takes_nothing_in_vain(void **state)
{
  (void)state;
  takes_nothing_for_what_cannot_be_had(200 * GRANULE, 100 * GRANULE, 0, HIPMM_E_LIMIT);
  takes_nothing_for_what_cannot_be_had(100 * GRANULE, UINT64_MAX, 0, HIPMM_E_OUT_OF_MEMORY);
  takes_nothing_for_what_cannot_be_had(200 * GRANULE, 100 * GRANULE, SLACK_AUTO, HIPMM_E_LIMIT);
  takes_nothing_for_what_cannot_be_had(100 * GRANULE, UINT64_MAX, SLACK_AUTO, HIPMM_E_OUT_OF_MEMORY);
  open_backing(GROWTH_MAPPED, 100 * GRANULE, GRANULE, UINT64_MAX);
  assert_status(backing_fill(&backing, &heap, 101 * GRANULE), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(backing.held->peak_bytes, 0);
}

static void rounds_its_maximum_down_to_what_can_be_had(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 256 * MIB, GRANULE, 5 * MIB);
  assert_int_equal(backing.held->maximum_bytes, 2 * GRANULE);
  free_block(allocate_block(2 * GRANULE));
  assert_int_equal(close_backing(NULL), 0);
  open_backing(GROWTH_SEGMENTS, 256 * MIB, GRANULE, 5 * MIB + 100);
  assert_int_equal(backing.held->maximum_bytes, 5 * MIB);
  free_block(allocate_block(5 * MIB));
}

static void maps_nothing_where_a_granule_exceeds_the_maximum(void **state)
{
  (void)state;
  const struct hipmm_services *services = fake_begin();
  struct hipmm_resource *upstream = fake_upstream(64 * MIB, GRANULE);
  assert_true(heap_open(&heap, services, RECORD_LAZY));
  assert_ok(backing_open(&backing, &heap, services, upstream, &(struct pool_options){.maximum_size = GRANULE - 1}));
  assert_false(backing.ops->moves);
  assert_int_equal(heap.blocks.granule_bytes, 0);
  assert_int_equal(close_backing(NULL), 0);
  services = fake_begin();
  upstream = fake_upstream(64 * MIB, GRANULE);
  assert_true(heap_open(&heap, services, RECORD_LAZY));
  assert_status(backing_open(&backing, &heap, services, upstream,
                             &(struct pool_options){.maximum_size = GRANULE - 1, .growth = GROWTH_MAPPED}),
                HIPMM_E_NOT_SUPPORTED);
}

/* Live blocks keep to their half of each granule, and what is free in between is of use only where it lies. */
static void uses_what_is_free_between_live_blocks(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 256 * MIB, GRANULE, 16 * MIB);
  unsigned n = fill(MIB, ids, MOST_IDS);
  assert_int_equal(n, 16);
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  assert_valid();
  uint32_t id = BLOCK_NONE;
  assert_false(has_room(2 * MIB, &id));
  assert_valid();
  for (unsigned i = 0; i < n; i += 2) ids[i] = allocate_block(MIB);
  assert_int_equal(backing_bytes(&backing), 16 * MIB);
}

/* Twice the device's memory is more than some processes may have. */
static void reserves_fewer_addresses_where_there_is_no_room_for_all(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 64 * MIB, GRANULE, UINT64_MAX);
  struct request request = request_for(3 * GRANULE);
  fake_fail_upstream(1, HIPMM_E_HIP);
  assert_ok(granules_allocate(&backing.granules, &heap, &request, MEMORY_FROM_GROWTH, &ids[0]));
  assert_false(fake_failure_is_due());
  assert_valid();
  free_block(allocate_block(64 * MIB - 3 * GRANULE)); /* in as many ranges as it takes */
  assert_valid();
}

/* ---- Limits ---- */

static void reserves_no_more_addresses_than_it_has_numbers_for(void **state)
{
  const struct range *range;
  (void)state;
  open_backing(GROWTH_MAPPED, 64 * MIB, GRANULE, UINT64_MAX);
  struct addresses *addresses = &backing.granules.chunks.addresses;
  fake_fail_upstream(1, HIPMM_E_HIP);
  assert_int_equal(addresses_reserve(addresses, 0, (1ull << 32) * GRANULE, &range), HIPMM_E_LIMIT);
  addresses->n_ranges = MAX_RANGES;
  assert_int_equal(addresses_reserve(addresses, 0, GRANULE, &range), HIPMM_E_LIMIT);
  addresses->n_ranges = 0;
  assert_true(fake_failure_is_due()); /* nobody was asked */
  fake_fail_upstream(0, HIPMM_OK);
}

static void creates_nothing_to_see_whether_it_could(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 64 * MIB, GRANULE, UINT64_MAX);
  fake_fail_upstream(1, HIPMM_E_HIP);
  assert_ok(chunks_check_available(&backing.granules.chunks, 8 * GRANULE));
  assert_true(fake_failure_is_due());
  fake_fail_upstream(0, HIPMM_OK);
}

static void takes_an_unmapped_chunk_only_where_it_fits(void **state)
{
  uint32_t large, small;
  (void)state;
  open_backing(GROWTH_MAPPED, 64 * MIB, GRANULE, UINT64_MAX);
  struct chunks *chunks = &backing.granules.chunks;
  assert_ok(chunk_create(chunks, 1, &small));
  assert_ok(chunk_create(chunks, 4, &large));
  chunks_add_unmapped(chunks, small);
  chunks_add_unmapped(chunks, large);
  assert_int_equal(chunks_take_unmapped(chunks, 3), small);
  assert_int_equal(chunks_take_unmapped(chunks, 3), CHUNK_NONE);
  assert_int_equal(chunks_take_unmapped(chunks, 4), large);
  assert_ok(chunk_destroy(chunks, small));
  assert_ok(chunk_destroy(chunks, large));
}

/* ---- Moving ---- */

static void moves_idle_memory_under_a_block_that_no_hole_fits(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 32 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(GRANULE, ids, MOST_IDS);
  assert_int_equal(n, 16);
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  uint32_t id = allocate_block(8 * GRANULE);
  assert_valid();
  assert_int_equal(backing_bytes(&backing), 32 * MIB);
  assert_true(backing.granules.moves >= 7);
  assert_int_equal(heap.live_bytes, 32 * MIB);
  free_block(id);
  assert_valid();
}

static void moves_nothing_that_work_may_still_use(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 32 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(GRANULE, ids, MOST_IDS);
  uint64_t work = fake_work(0);
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  assert_true(idle_is_pending(&backing.granules.chunks, &heap));
  struct request request = request_for(8 * GRANULE);
  uint32_t id = BLOCK_NONE;
  assert_status(granules_allocate(&backing.granules, &heap, &request, MEMORY_FROM_MOVE, &id), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(backing.granules.moves, 0);
  assert_ok(backing_move(&backing, &heap, &request, &id)); /* waits */
  assert_true(fake_is_ordered(1, 0, work));
  assert_valid();
}

static unsigned host_waits(void)
{
  return fake_calls.device_synchronize + fake_calls.event_synchronize + fake_calls.stream_synchronize;
}

/* 32 MiB in 16 blocks, of which every other one is idle, and work may still use it. */
static void fill_and_idle(uint64_t capacity_bytes)
{
  open_backing(GROWTH_MAPPED, capacity_bytes, GRANULE, UINT64_MAX);
  for (unsigned i = 0; i < 16; i++) ids[i] = allocate_block(GRANULE);
  fake_work(0);
  for (unsigned i = 0; i < 16; i += 2) free_block(ids[i]);
}

/* What comes of it that 4 granules are taken: what is held then, and what it took. */
static void assert_taking(uint64_t held_bytes, uint64_t moves, unsigned waits)
{
  uint64_t moves_before = backing.granules.moves;
  unsigned waits_before = host_waits();
  allocate_block(4 * GRANULE);
  assert_int_equal(backing_bytes(&backing), held_bytes);
  assert_int_equal(backing.granules.moves, moves_before + moves);
  assert_int_equal(host_waits(), waits_before + waits);
  assert_valid();
}

/* As much as the slack allows. */
static void takes_more_before_it_waits(void **state)
{
  (void)state;
  slack = 8 * MIB;
  fill_and_idle(1024 * MIB);
  assert_int_equal(backing.granules.moves, 0);
  assert_taking(40 * MIB, 0, 0);
  assert_taking(40 * MIB, 4, 1);
}

static void waits_where_there_is_no_more(void **state)
{
  (void)state;
  fill_and_idle(36 * MIB);
  assert_int_equal(backing.granules.moves, 0);
  assert_taking(32 * MIB, 4, 1);
}

/* Later work of the same stream comes after it anyway. */
static void moves_memory_that_work_still_uses(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 32 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(GRANULE, ids, MOST_IDS), waits = host_waits();
  fake_work(0);
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  uint32_t id = allocate_block(8 * GRANULE);
  assert_int_equal(backing.granules.moves, 8);
  assert_int_equal(host_waits(), waits);
  assert_valid();
  free_block(id);
  assert_valid();
}

static int is_captured(hipmm_stream_t stream, int *status)
{
  (void)stream;
  *status = 1;
  return 0;
}

/* What is captured comes after nothing: it is done when the graph is launched, wherever that is. */
static void moves_nothing_after_work_of_a_captured_stream(void **state)
{
  (void)state;
  fill_and_idle(64 * MIB);
  fake_hip.StreamIsCapturing = is_captured;
  uint32_t id = allocate_block(8 * GRANULE);
  fake_hip.StreamIsCapturing = NULL;
  assert_int_equal(backing.granules.moves, 0);
  free_block(id);
  assert_valid();
}

static void moves_nothing_twice(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 32 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(GRANULE, ids, MOST_IDS), waits = host_waits(), records = fake_calls.event_record;
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
    uint32_t id = allocate_block(8 * GRANULE);
    assert_int_equal(backing.granules.moves, 8);
    assert_int_equal(backing.granules.returns, 16 * round);
    assert_valid();
    free_block(id);
    for (unsigned i = 0; i < n; i += 2) ids[i] = allocate_block(GRANULE);
    assert_int_equal(backing.granules.moves, 8);
    assert_int_equal(backing.granules.returns, 16 * round + 8);
    assert_valid();
  }
  assert_int_equal(host_waits(), waits);
  assert_int_equal(fake_calls.event_record, records);
}

/* Work of the stream may still use a chunk at the address that it returns to. The part behind the block that it returns for
 * stays pending: another stream gets it only in order. */
static void returns_memory_that_stays_pending(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 32 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(GRANULE, ids, MOST_IDS);
  const uint32_t other = stream_id(fake_stream(1));
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  uint32_t moved = allocate_block(8 * GRANULE);
  uint64_t work = fake_work(0);
  free_block(moved);
  struct request request = request_for(GRANULE - HIPMM_ALIGNMENT), rest = request_for(HIPMM_ALIGNMENT);
  uint32_t id = BLOCK_NONE;
  assert_ok(granules_allocate(&backing.granules, &heap, &request, MEMORY_FROM_MOVE, &id));
  assert_int_equal(backing.granules.returns, 1);
  assert_valid();
  rest.stream = other;
  assert_int_equal(heap_allocate_ready(&heap, &rest), BLOCK_NONE);
  assert_true(heap_allocate_waiting(&heap, &rest));
  assert_true(fake_is_ordered(1, 0, work));
}

/* The host can wait neither for the device, since a graph is captured, nor for a stream, since its handle may be gone. */
static void let_nobody_wait(bool nobody)
{
  fake_set_device_wait_fails(nobody);
  fake_set_record_fails(nobody);
}

/* Earlier work may still use the alias mappings of the moved chunks. */
static void unmaps_nothing_while_it_cannot_wait(void **state)
{
  (void)state;
  fill_and_idle(64 * MIB);
  allocate_block(8 * GRANULE);
  assert_int_equal(backing.granules.moves, 8);
  const struct range *range = &backing.granules.chunks.addresses.ranges[0];
  uint64_t mapped_bytes = fake_mapped_bytes(range->start, range->start + range->bytes);
  let_nobody_wait(true);
  struct request request = request_for(GRANULE);
  uint32_t id = BLOCK_NONE;
  assert_status(try_take(&request, &id), HIPMM_E_HIP);
  assert_int_equal(fake_mapped_bytes(range->start, range->start + range->bytes), mapped_bytes);
  assert_valid();
  let_nobody_wait(false);
  allocate_block(GRANULE);
  assert_valid();
}

/* Chunks grow with what is held; a hole that is smaller than every idle chunk is filled by an exchange. */
static void exchanges_chunks_that_are_too_large(void **state)
{
  (void)state;
  uint64_t granule = 64 * 1024, whole = 400 * MIB;
  open_backing(GROWTH_MAPPED, whole, granule, UINT64_MAX);
  uint32_t all = allocate_block(whole);
  assert_valid();
  free_block(all);
  heap_complete_all(&heap);
  /* Fences so that only large chunks at the end are idle. */
  uint64_t random = 11;
  unsigned n = 0;
  while (n < MOST_IDS && has_room(granule * (1 + random_below(&random, 12)), &ids[n])) n++;
  assert_valid();
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  heap_complete_all(&heap);
  assert_valid();
  uint64_t free_bytes = backing_bytes(&backing) - heap.live_bytes;
  uint32_t large = allocate_block(free_bytes / 2 / granule * granule);
  assert_valid();
  assert_true(backing.granules.moves > 0);
  assert_true(backing_bytes(&backing) <= whole);
  free_block(large);
}

static uint32_t count_of_chunks(uint64_t capacity_bytes, uint64_t slack_bytes)
{
  slack = slack_bytes;
  open_backing(GROWTH_MAPPED, capacity_bytes, 64 * 1024, UINT64_MAX);
  uint32_t all = allocate_block(400 * MIB), count = backing.granules.chunks.count - 1;
  assert_int_equal(backing_bytes(&backing), 400 * MIB);
  assert_valid();
  free_block(all);
  assert_int_equal(close_backing(NULL), 0);
  return count;
}

/* So that there is less to map; near the end of the memory, and without slack, every chunk is a granule. */
static void has_larger_chunks_where_there_is_room(void **state)
{
  (void)state;
  assert_in_range(count_of_chunks(256ull << 30, SLACK_AUTO), 1, 16);
  assert_in_range(count_of_chunks(4ull << 30, SLACK_AUTO), 17, 6399);
  assert_in_range(count_of_chunks(400 * MIB, SLACK_AUTO), 4800, 6400);
  assert_int_equal(count_of_chunks(256ull << 30, 0), 6400);
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

/* Idle memory fills small holes between live blocks; no new memory is allocated for them. */
static void holds_no_more_while_some_is_idle(void **state)
{
  (void)state;
  enum { UNITS = 64 * 1024, WHOLE = 9600, SMALL = 5000 };
  uint64_t random = 5, live = 0;
  unsigned n = 0;
  open_backing(GROWTH_MAPPED, 4ull * WHOLE * UNITS, UNITS, UINT64_MAX);
  free_block(allocate_block((uint64_t)WHOLE * UNITS));
  uint32_t small = allocate_block((uint64_t)SMALL * UNITS); /* the first chunks are small ones */
  for (unsigned i = 0; i < 4000; i++) {
    fake_work(0);
    if (live > (WHOLE - SMALL) * 7 / 8) {
      unsigned which = (unsigned)random_below(&random, n);
      live -= block_of(&heap.blocks, ids[which])->bytes / UNITS;
      free_block(ids[which]);
      ids[which] = ids[--n];
    } else {
      uint64_t units = 1 + random_below(&random, random_below(&random, 8) ? 4 : 400);
      ids[n++] = allocate_block(units * UNITS);
      live += units;
    }
    assert_int_equal(backing_bytes(&backing), (uint64_t)WHOLE * UNITS);
  }
  assert_valid();
  free_block(small);
}

/* ---- Releasing ---- */

static void gives_idle_memory_back_down_to_what_is_to_be_kept(enum growth growth)
{
  open_backing(growth, 256 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(2 * GRANULE, ids, 16);
  assert_int_equal(n, 16);
  uint64_t held = backing_bytes(&backing);
  for (unsigned i = 1; i < n; i++) free_block(ids[i]);
  assert_ok(backing_release_idle(&backing, &heap, 0));
  assert_int_equal(backing_bytes(&backing), held); /* not ready yet */
  heap_complete_all(&heap);
  assert_ok(backing_release_idle(&backing, &heap, held + MIB));
  assert_int_equal(backing_bytes(&backing), held); /* there is less than that */
  assert_ok(backing_release_idle(&backing, &heap, 24 * MIB));
  assert_valid();
  assert_in_range(backing_bytes(&backing), 24 * MIB, growth == GROWTH_MAPPED ? 24 * MIB : held);
  assert_ok(backing_release_idle(&backing, &heap, 0));
  assert_valid();
  assert_in_range(backing_bytes(&backing), 2 * GRANULE, 4 * GRANULE);
  free_block(ids[0]);
  heap_complete_all(&heap);
  assert_ok(backing_release_idle(&backing, &heap, 0));
  assert_int_equal(backing_bytes(&backing), 0);
  assert_int_equal(backing.held->peak_bytes, held);
  free_block(allocate_block(7 * MIB));
  assert_valid();
  assert_int_equal(close_backing(NULL), 0);
}

static void gives_idle_memory_back(void **state)
{
  (void)state;
  gives_idle_memory_back_down_to_what_is_to_be_kept(GROWTH_MAPPED);
  gives_idle_memory_back_down_to_what_is_to_be_kept(GROWTH_SEGMENTS);
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

static void keeps_memory_that_is_partly_in_use(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 256 * MIB, GRANULE, UINT64_MAX);
  unsigned n = fill(MIB, ids, 8);
  for (unsigned i = 0; i < n; i += 2) free_block(ids[i]);
  heap_complete_all(&heap);
  assert_ok(backing_release_idle(&backing, &heap, 0));
  assert_int_equal(backing_bytes(&backing), 8 * MIB);
  assert_valid();
}

static void takes_what_it_is_to_start_with(void **state)
{
  static const enum growth growths[] = {GROWTH_MAPPED, GROWTH_SEGMENTS};
  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    open_backing(growths[i], 256 * MIB, GRANULE, UINT64_MAX);
    assert_ok(backing_fill(&backing, &heap, 40 * MIB));
    assert_valid();
    assert_int_equal(backing_bytes(&backing), 40 * MIB);
    assert_int_equal(heap_largest_free(&heap), 40 * MIB);
    free_block(allocate_block(40 * MIB));
    assert_int_equal(backing_bytes(&backing), 40 * MIB);
    assert_int_equal(close_backing(NULL), 0);
    open_backing(growths[i], 32 * MIB, GRANULE, UINT64_MAX);
    assert_status(backing_fill(&backing, &heap, 40 * MIB), HIPMM_E_OUT_OF_MEMORY);
    assert_valid();
    assert_int_equal(close_backing(NULL), 0);
  }
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

/* The rest of a chunk that is partly in use cannot move. */
static void counts_only_chunks_that_are_wholly_idle(void **state)
{
  (void)state;
  slack = SLACK_AUTO;
  open_backing(GROWTH_MAPPED, 256ull << 30, GRANULE, UINT64_MAX);
  free_block(allocate_block(32 * GRANULE));
  assert_int_equal(backing.granules.chunks.count - 1, 8); /* of 4 granules each */
  uint32_t small = allocate_block(GRANULE / 2);
  const struct block *rest = block_of(&heap.blocks, block_of(&heap.blocks, small)->after);
  assert_true(rest->bytes >= 31 * GRANULE);
  assert_int_equal(idle_bytes_in(&backing.granules.chunks, rest), 28 * GRANULE);
  free_block(small);
  assert_int_equal(heap.live_bytes, 0);
}

/* The padding in front of an aligned block takes no memory. */
static void commits_no_more_than_an_aligned_block(void **state)
{
  (void)state;
  open_backing(GROWTH_MAPPED, 64 * GRANULE, GRANULE, UINT64_MAX);
  uint32_t first = allocate_block(3 * GRANULE / 2), id;
  struct request request = request_for(60 * GRANULE);
  request.alignment = 1ull << 32;
  assert_ok(try_take(&request, &id));
  assert_int_equal(block_of(&heap.blocks, id)->start % request.alignment, 0);
  assert_int_equal(backing_bytes(&backing), 62 * GRANULE);
  assert_valid();
  free_block(id);
  assert_valid();
  request.bytes = request.requested = 20 * GRANULE;
  assert_ok(try_take(&request, &id));
  assert_int_equal(backing_bytes(&backing), 62 * GRANULE);
  assert_int_equal(backing.granules.chunks.addresses.n_ranges,
                   2); /* one for what is aligned, as large as the alignment */
  free_block(id);
  free_block(first);
  assert_valid();
}

/* ---- From loose to tight ---- */

/* In large chunks at first; then all of the memory serves small blocks, and large ones again. */
static void packs_when_the_device_gets_short(void **state)
{
  (void)state;
  slack = SLACK_AUTO;
  enum { WHOLE = 2048, OTHERS = 256 };
  open_backing(GROWTH_MAPPED, WHOLE * GRANULE, GRANULE, UINT64_MAX);
  for (unsigned i = 0; i < 8; i++) ids[i] = allocate_block(OTHERS / 8 * GRANULE + 256);
  assert_int_equal(backing.granules.moves, 0);
  assert_true(backing.granules.chunks.count < OTHERS);
  for (unsigned i = 0; i < 8; i += 2) free_block(ids[i]);
  unsigned n = 8;
  while (n < MOST_IDS && has_room(5 * GRANULE / 4, &ids[n])) n++;
  assert_true(n - 8 >= (WHOLE - OTHERS / 2 - 4) * 4 / 5 - 8);
  assert_int_equal(backing_bytes(&backing), WHOLE * GRANULE);
  assert_valid();
  for (unsigned i = 8; i < n; i += 2) free_block(ids[i]);
  assert_valid();
  uint64_t idle = backing_bytes(&backing) - heap.live_bytes;
  uint32_t large = allocate_block(idle / 8 / GRANULE * GRANULE);
  assert_true(backing.granules.moves > 0);
  assert_valid();
  free_block(large);
}

/* ---- Choosing ---- */

static void falls_back_to_segments_where_nothing_can_be_mapped(void **state)
{
  (void)state;
  const struct hipmm_services *services = fake_begin();
  open_on(fake_upstream(64 * MIB, 0), services, GROWTH_SEGMENTS, UINT64_MAX);
  assert_int_equal(close_backing(NULL), 0);
  services = fake_begin();
  struct hipmm_resource *upstream = fake_upstream(64 * MIB, 0);
  assert_true(heap_open(&heap, services, RECORD_LAZY));
  assert_ok(backing_open(&backing, &heap, services, upstream, &(struct pool_options){.maximum_size = UINT64_MAX}));
  assert_false(backing.ops->moves);
  assert_int_equal(close_backing(NULL), 0);
  services = fake_begin();
  upstream = fake_upstream(64 * MIB, 0);
  assert_true(heap_open(&heap, services, RECORD_LAZY));
  assert_status(backing_open(&backing, &heap, services, upstream,
                             &(struct pool_options){.maximum_size = UINT64_MAX, .growth = GROWTH_MAPPED}),
                HIPMM_E_NOT_SUPPORTED);
}

static void maps_what_is_in_doubt_only_where_it_is_told_to(void **state)
{
  (void)state;
  for (enum growth growth = GROWTH_AUTO; growth <= GROWTH_MAPPED; growth++) {
    const struct hipmm_services *services = fake_begin();
    fake_discourage_upstream();
    assert_true(heap_open(&heap, services, RECORD_LAZY));
    assert_ok(backing_open(&backing, &heap, services, fake_upstream(64 * MIB, GRANULE),
                           &(struct pool_options){.maximum_size = UINT64_MAX, .growth = growth}));
    assert_int_equal(backing.ops->moves, growth == GROWTH_MAPPED);
    assert_int_equal(close_backing(NULL), 0);
  }
  open_backing(GROWTH_MAPPED, 64 * MIB, GRANULE, UINT64_MAX); /* no objection any more */
}

/* ---- Failures ---- */

/* Each call to the upstream fails once, in turn. */
static void loses_nothing_when_the_upstream_fails(enum growth growth, enum hipmm_status status)
{
  for (unsigned nth = 1;; nth++) {
    open_backing(growth, 64 * MIB, GRANULE, UINT64_MAX);
    unsigned n = 0, refused = 0;
    fake_fail_upstream(nth, status);
    for (unsigned i = 0; i < 12; i++) {
      struct request request = request_for(i % 3 ? GRANULE : 6 * GRANULE);
      if (try_take(&request, &ids[n]))
        refused++;
      else
        n++;
      assert_valid();
      if (i == 5) {
        for (; n > 1; n--) free_block(ids[n - 1]);
        heap_complete_all(&heap);
        refused += backing_release_idle(&backing, &heap, 4 * MIB) != HIPMM_OK;
        assert_valid();
      }
    }
    while (n) free_block(ids[--n]);
    heap_complete_all(&heap);
    while (backing_bytes(&backing)) {
      bool is_due = fake_failure_is_due();
      backing_release_idle(&backing, &heap, 0);
      assert_true(backing_bytes(&backing) == 0 || is_due); /* at the second try all goes */
      if (backing_bytes(&backing)) assert_false(fake_failure_is_due());
    }
    assert_valid();
    bool has_failed = !fake_failure_is_due();
    fake_fail_upstream(0, HIPMM_OK);
    free_block(allocate_block(32 * MIB));
    assert_int_equal(close_backing(NULL), 0);
    if (!has_failed) return;
    assert_true(nth < 500);
  }
}

static void loses_nothing_whatever_the_upstream_refuses(void **state)
{
  (void)state;
  loses_nothing_when_the_upstream_fails(GROWTH_MAPPED, HIPMM_E_OUT_OF_MEMORY);
  loses_nothing_when_the_upstream_fails(GROWTH_MAPPED, HIPMM_E_HIP);
  loses_nothing_when_the_upstream_fails(GROWTH_SEGMENTS, HIPMM_E_OUT_OF_MEMORY);
  loses_nothing_when_the_upstream_fails(GROWTH_SEGMENTS, HIPMM_E_HIP);
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

static void loses_nothing_when_host_memory_is_short(void **state)
{
  static const enum growth growths[] = {GROWTH_MAPPED, GROWTH_SEGMENTS};
  (void)state;
  for (unsigned i = 0; i < 2; i++)
    for (unsigned nth = 1; nth <= 4; nth++) {
      struct request request = request_for(GRANULE);
      open_backing(growths[i], 64 * MIB, GRANULE, UINT64_MAX);
      fake_fail_host_allocation(nth);
      enum hipmm_status status = backing_grow(&backing, &heap, &request, &ids[0]);
      fake_fail_host_allocation(0);
      assert_true(status == HIPMM_OK || status == HIPMM_E_OUT_OF_MEMORY);
      assert_valid();
      if (status) allocate_block(GRANULE);
      assert_int_equal(close_backing(NULL), 0);
    }
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

/* ---- Anything, in any order ---- */

struct world {
  uint64_t random;
  uint64_t unit_bytes; /* of sizes */
  unsigned n, refused;
};

static void do_something(struct world *world)
{
  uint64_t lot = random_below(&world->random, 100);
  if (lot < 2) {
    let_nobody_wait(!random_below(&world->random, 4));
  } else if (lot < 4) {
    if (fake_hip.DeviceSynchronize()) return;
    heap_complete_all(&heap);
    uint64_t keep_bytes = random_below(&world->random, 2) * random_below(&world->random, 64) * MIB;
    enum hipmm_status status = backing_release_idle(&backing, &heap, keep_bytes);
    assert_true(!status || status == HIPMM_E_HIP || status == HIPMM_E_OUT_OF_MEMORY);
  } else if (lot < 6) {
    fake_fail_upstream(1 + (unsigned)random_below(&world->random, 12),
                       random_below(&world->random, 2) ? HIPMM_E_HIP : HIPMM_E_OUT_OF_MEMORY);
  } else if (world->n == 256 || (world->n && lot % 2)) {
    unsigned which = (unsigned)random_below(&world->random, world->n);
    unsigned stream = (unsigned)random_below(&world->random, STREAMS);
    fake_work(stream);
    heap_free(&heap, ids[which], STREAM + stream);
    ids[which] = ids[--world->n];
  } else if (lot < 10) {
    fake_progress((unsigned)random_below(&world->random, STREAMS));
  } else {
    uint64_t units = random_below(&world->random, 8) ? 64 : 2048;
    struct request request = request_for((1 + random_below(&world->random, units)) * world->unit_bytes);
    request.stream = STREAM + (uint32_t)random_below(&world->random, STREAMS);
    if (!random_below(&world->random, 4))
      request.alignment = (uint64_t)HIPMM_ALIGNMENT << random_below(&world->random, 14);
    enum hipmm_status status = try_take(&request, &ids[world->n]);
    world->refused += status != HIPMM_OK;
    world->n += !status;
    if (!status) assert_int_equal(block_of(&heap.blocks, ids[world->n - 1])->start % request.alignment, 0);
  }
}

static void survives_anything_over(enum growth growth, uint64_t granule_bytes, uint64_t maximum_bytes, uint64_t seed)
{
  slack = seed % 2 ? SLACK_AUTO : 0;
  struct world world = {.random = seed, .unit_bytes = granule_bytes / 32};
  open_backing(growth, 96 * granule_bytes, granule_bytes, maximum_bytes);
  for (unsigned i = 1; i < STREAMS; i++) assert_int_equal(stream_id(fake_stream(i)), STREAM + i);
  for (unsigned i = 0; i < 3000; i++) {
    do_something(&world);
    assert_valid();
  }
  assert_true(world.refused > 10);
  fake_fail_upstream(0, HIPMM_OK);
  let_nobody_wait(false);
  while (world.n) free_block(ids[--world.n]);
  fake_hip.DeviceSynchronize();
  heap_complete_all(&heap);
  assert_ok(backing_release_idle(&backing, &heap, 0));
  assert_int_equal(backing_bytes(&backing), 0);
  assert_valid();
  assert_int_equal(close_backing(NULL), 0);
}

static void survives_anything(void **state)
{
  static const enum growth growths[] = {GROWTH_MAPPED, GROWTH_SEGMENTS};
  (void)state;
  for (uint64_t seed = 1; seed <= number_from_environment("HIPMM_TEST_RUNS", 3); seed++)
    for (unsigned i = 0; i < 2; i++) {
      survives_anything_over(growths[i], GRANULE, UINT64_MAX, seed);
      survives_anything_over(growths[i], GRANULE, 64 * GRANULE, seed);
      survives_anything_over(growths[i], 65536, UINT64_MAX, seed);
    }
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

/* ---- The same over and over ---- */

enum { LAYERS = 12, KEPT = 4, ROUNDS = 16, SETTLED = 10 };

/* A training in miniature. */
struct training {
  uint32_t activations[LAYERS][KEPT], gradients[LAYERS];
  unsigned overlaps; /* gradients of so many layers go when the next round has its own */
};

static uint32_t take_sixteenths(uint64_t sixteenths)
{
  return allocate_block(sixteenths * GRANULE / 16);
}

/* Forward: what a layer keeps, with scratch memory between. */
static void go_forward(struct training *training)
{
  static const uint64_t kept[KEPT] = {75, 200, 33, 75};
  for (unsigned i = 0; i < LAYERS; i++)
    for (unsigned k = 0; k < KEPT; k++) {
      uint32_t scratch = take_sixteenths(50 + 90 * k);
      training->activations[i][k] = take_sixteenths(kept[k]);
      free_block(scratch);
    }
}

static void give_gradient(struct training *training, unsigned layer)
{
  if (training->gradients[layer]) free_block(training->gradients[layer]);
  training->gradients[layer] = BLOCK_NONE;
}

/* Backward: what was kept goes, the last first, and gradients come. */
static void go_backward(struct training *training)
{
  uint32_t error = take_sixteenths(75);
  for (unsigned i = LAYERS; i-- > 0;) {
    uint32_t scratch = take_sixteenths(310);
    free_block(training->activations[i][3]);
    uint32_t gradient = take_sixteenths(i % 3 ? 57 : 150);
    give_gradient(training, i);
    training->gradients[i] = gradient;
    free_block(scratch);
    free_block(training->activations[i][1]);
    uint32_t next = take_sixteenths(75);
    free_block(error);
    error = next;
    free_block(training->activations[i][2]);
    free_block(training->activations[i][0]);
  }
  free_block(error);
}

static void go_round(struct training *training)
{
  go_forward(training);
  for (unsigned i = training->overlaps; i < LAYERS; i++) give_gradient(training, i);
  go_backward(training);
  assert_valid();
}

static void settles_beside(uint64_t weight_granules, unsigned overlaps)
{
  struct training training = {.overlaps = overlaps};
  uint64_t held = 0;
  unsigned waits = 0;
  slack = SLACK_AUTO;
  open_backing(GROWTH_MAPPED, 64 * 4096 * GRANULE, GRANULE, UINT64_MAX);
  uint32_t weights = allocate_block(weight_granules * GRANULE);
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (round == SETTLED) {
      held = backing_bytes(&backing);
      waits = host_waits();
    }
    fake_work(0);
    go_round(&training);
  }
  assert_int_equal(backing.granules.moves, 0);
  assert_int_equal(host_waits(), waits);
  assert_in_range(backing_bytes(&backing), held, held + held / 64);
  assert_true(held <= backing.granules.slack.peak_bytes * 5 / 4);
  for (unsigned i = 0; i < LAYERS; i++) give_gradient(&training, i);
  free_block(weights);
  assert_int_equal(close_backing(NULL), 0);
}

/* Nothing is moved, in the end nothing is waited for, and hardly more is held. Also where a block is still live when its
 * successor is asked for, so that two rounds differ. */
static void settles(void **state)
{
  (void)state;
  settles_beside(20, 0);
  settles_beside(5, 5);
  settles_beside(20, 5);
  settles_beside(33, 5);
  settles_beside(50, 5);
  open_backing(GROWTH_SEGMENTS, MIB, 0, MIB);
}

static int let_alias(void **state)
{
  (void)state;
  may_alias = true;
  return 0;
}

static int close_aliased(void **state)
{
  may_alias = false;
  return close_backing(state);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_backing)
#define TEST_ALIASED(test)                                  \
  {                                                         \
    "aliased: " #test, test, let_alias, close_aliased, NULL \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(reaches_its_maximum_with_one_block),
      TEST(takes_nothing_in_vain),
      TEST(rounds_its_maximum_down_to_what_can_be_had),
      TEST(maps_nothing_where_a_granule_exceeds_the_maximum),
      TEST(uses_what_is_free_between_live_blocks),
      TEST(reserves_fewer_addresses_where_there_is_no_room_for_all),
      TEST(reserves_no_more_addresses_than_it_has_numbers_for),
      TEST(creates_nothing_to_see_whether_it_could),
      TEST(takes_an_unmapped_chunk_only_where_it_fits),
      TEST(moves_idle_memory_under_a_block_that_no_hole_fits),
      TEST(moves_nothing_that_work_may_still_use),
      TEST(takes_more_before_it_waits),
      TEST(waits_where_there_is_no_more),
      TEST(exchanges_chunks_that_are_too_large),
      TEST(has_larger_chunks_where_there_is_room),
      TEST(gives_idle_memory_back),
      TEST(keeps_memory_that_is_partly_in_use),
      TEST(takes_what_it_is_to_start_with),
      TEST(falls_back_to_segments_where_nothing_can_be_mapped),
      TEST(maps_what_is_in_doubt_only_where_it_is_told_to),
      TEST(loses_nothing_whatever_the_upstream_refuses),
      TEST(loses_nothing_when_host_memory_is_short),
      TEST(survives_anything),
      TEST(counts_only_chunks_that_are_wholly_idle),
      TEST(commits_no_more_than_an_aligned_block),
      TEST(packs_when_the_device_gets_short),
      TEST(settles),
      TEST_ALIASED(reaches_its_maximum_with_one_block),
      TEST_ALIASED(uses_what_is_free_between_live_blocks),
      TEST_ALIASED(moves_idle_memory_under_a_block_that_no_hole_fits),
      TEST_ALIASED(moves_memory_that_work_still_uses),
      TEST_ALIASED(moves_nothing_after_work_of_a_captured_stream),
      TEST_ALIASED(moves_nothing_twice),
      TEST_ALIASED(returns_memory_that_stays_pending),
      TEST_ALIASED(unmaps_nothing_while_it_cannot_wait),
      TEST_ALIASED(exchanges_chunks_that_are_too_large),
      TEST_ALIASED(holds_no_more_while_some_is_idle),
      TEST_ALIASED(gives_idle_memory_back),
      TEST_ALIASED(keeps_memory_that_is_partly_in_use),
      TEST_ALIASED(takes_what_it_is_to_start_with),
      TEST_ALIASED(loses_nothing_whatever_the_upstream_refuses),
      TEST_ALIASED(loses_nothing_when_host_memory_is_short),
      TEST_ALIASED(survives_anything),
      TEST_ALIASED(commits_no_more_than_an_aligned_block),
      TEST_ALIASED(packs_when_the_device_gets_short),
      TEST_ALIASED(settles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
