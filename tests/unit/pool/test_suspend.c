/* SPDX-License-Identifier: MIT */
/* Tests of a suspended pool from inside, over chunks that are only numbers: with one mapping for each chunk as on
 * ROCm, and with several; whichever call of the upstream fails. */
#include "../../../plugins/pool/allocate.h"
#include "../../../plugins/pool/options.h"
#include "../../support/random.h"
#include "../../support/support.h"
#include "fake.h"

#include <string.h>

enum { BLOCKS = 60, STREAMS = 3 };

static const uint64_t GRANULE = 1 << 20;
static const struct hipmm_plugin *const plugin = &pool_LTX_hipmm_plugin;
static const char aliases[] = "aliases", alone[] = "alone";
static void *pool;
static uint64_t random_state;

static struct {
  char *ptr;
  size_t bytes;
} blocks[BLOCKS];

static void open_pool(void **state)
{
  const struct pool_options options = {.maximum_size = UINT64_MAX, .slack = SLACK_AUTO, .growth = GROWTH_MAPPED};
  const struct hipmm_services *services = fake_begin();
  struct hipmm_resource *upstream = fake_upstream(1024 * MIB, GRANULE);
  fake_let_upstream_alias(*state == aliases);
  assert_ok(plugin->create(services, &options, &upstream, 1, &pool));
}

static void close_pool(void)
{
  fake_fail_upstream(0, HIPMM_OK);
  plugin->destroy(pool);
  assert_int_equal(fake_end(), 0);
}

static int64_t value(const char *name)
{
  return fake_query(plugin, pool, name);
}

static hipmm_stream_t any_stream(void)
{
  unsigned stream = (unsigned)random_below(&random_state, STREAMS);
  fake_work(stream);
  return fake_stream(stream);
}

static void free_block(unsigned i)
{
  if (blocks[i].ptr)
    assert_ok(plugin->ops->deallocate(pool, blocks[i].ptr, blocks[i].bytes, HIPMM_ALIGNMENT, any_stream()));
  blocks[i].ptr = NULL;
}

/* Whatever is free is on some stream, and chunks have moved and have alias mappings. */
static void work(unsigned steps)
{
  for (unsigned step = 0; step < steps; step++) {
    unsigned i = (unsigned)random_below(&random_state, BLOCKS);
    void *ptr = NULL;
    free_block(i);
    blocks[i].bytes = 1 + random_below(&random_state, random_below(&random_state, 3) ? 100000 : 6 * MIB);
    assert_ok(plugin->ops->allocate(pool, blocks[i].bytes, HIPMM_ALIGNMENT, any_stream(), &ptr));
    blocks[i].ptr = ptr;
  }
}

/* Whether all blocks have memory under them, or none has. */
static bool blocks_are(bool mapped)
{
  for (unsigned i = 0; i < BLOCKS; i++) {
    uint64_t start = (uintptr_t)blocks[i].ptr, end = start + blocks[i].bytes;
    if (blocks[i].ptr && fake_mapped_bytes(start, end) != (mapped ? end - start : 0)) return false;
  }
  return true;
}

static void comes_back_under_the_same_addresses(void **state)
{
  open_pool(state);
  random_state = 21;
  for (int round = 0; round < 10; round++) {
    void *ptr = NULL;
    work(150);
    assert_ok(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD));
    assert_int_equal(fake_held_bytes(), 0);
    assert_true(blocks_are(false));
    assert_status(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD), HIPMM_E_STATE);
    assert_status(plugin->ops->allocate(pool, 100 * MIB, HIPMM_ALIGNMENT, NULL, &ptr), HIPMM_E_STATE);
    for (unsigned i = 0; i < BLOCKS / 2; i++) free_block((unsigned)random_below(&random_state, BLOCKS));
    if (round % 2) assert_ok(plugin->ops->trim(pool, 0));
    int64_t suspended = value("suspended_bytes");
    assert_ok(plugin->ops->resume(pool));
    assert_true(blocks_are(true));
    assert_true((int64_t)fake_held_bytes() <= suspended);
    assert_int_equal(value("reserved_bytes"), fake_held_bytes());
    assert_int_equal(value("suspended_bytes"), 0);
    assert_true(heap_is_valid(&((struct pool *)pool)->arena.heap));
    assert_status(plugin->ops->resume(pool), HIPMM_E_STATE);
  }
  for (unsigned i = 0; i < BLOCKS; i++) free_block(i);
  assert_ok(plugin->ops->trim(pool, 0));
  assert_int_equal(fake_held_bytes(), 0);
  close_pool();
}

/* Each block has a granule of its own. */
static void no_block_that_was_freed_meanwhile_gets_memory(void **state)
{
  enum { N = 16 };
  void *ptr[N];
  open_pool(state);
  for (unsigned i = 0; i < N; i++) assert_ok(plugin->ops->allocate(pool, GRANULE, HIPMM_ALIGNMENT, NULL, &ptr[i]));
  for (unsigned left = N; left; left /= 2) {
    assert_ok(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD));
    for (unsigned i = left / 2; i < left; i++)
      assert_ok(plugin->ops->deallocate(pool, ptr[i], GRANULE, HIPMM_ALIGNMENT, fake_stream(i % STREAMS)));
    assert_ok(plugin->ops->resume(pool));
    assert_int_equal(fake_held_bytes(), left / 2 * GRANULE);
  }
  close_pool();
}

/* In a cache they would keep their granules in use. */
static void no_small_block_that_was_freed_meanwhile_gets_memory(void **state)
{
  enum { N = 1000, BYTES = 4096 };
  void *ptr[N];
  open_pool(state);
  for (unsigned i = 0; i < N; i++) assert_ok(plugin->ops->allocate(pool, BYTES, HIPMM_ALIGNMENT, NULL, &ptr[i]));
  assert_ok(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD));
  for (unsigned i = 0; i < N; i++) assert_ok(plugin->ops->deallocate(pool, ptr[i], BYTES, HIPMM_ALIGNMENT, NULL));
  assert_ok(plugin->ops->resume(pool));
  assert_int_equal(fake_held_bytes(), 0);
  close_pool();
}

/* Of a suspend that fails, all memory is there; of a resume, all can be resumed. */
static bool suspend_and_resume(enum hipmm_status failure, unsigned nth)
{
  fake_fail_upstream(nth, failure);
  enum hipmm_status status = plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD);
  if (status) {
    assert_int_equal(status, failure);
    assert_true(blocks_are(true));
    assert_ok(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD));
  }
  assert_true(blocks_are(false));
  assert_int_equal(fake_held_bytes(), 0);
  status = plugin->ops->resume(pool);
  if (status) {
    assert_int_equal(status, failure);
    assert_true(blocks_are(false));
    assert_int_equal(fake_held_bytes(), 0);
    assert_ok(plugin->ops->resume(pool));
  }
  assert_true(blocks_are(true));
  assert_int_equal(value("reserved_bytes"), fake_held_bytes());
  return fake_failure_is_due();
}

static void fails_without_a_loss(void **state)
{
  unsigned nth = 1;
  open_pool(state);
  random_state = 4;
  for (bool is_over = false; !is_over; nth++) {
    work(5);
    is_over = suspend_and_resume(nth % 2 ? HIPMM_E_HIP : HIPMM_E_OUT_OF_MEMORY, nth);
  }
  assert_true(nth > 40);
  for (unsigned i = 0; i < BLOCKS; i++) free_block(i);
  close_pool();
}

static void is_destroyed_while_suspended(void **state)
{
  open_pool(state);
  random_state = 8;
  work(150);
  for (unsigned i = 0; i < BLOCKS; i += 2) free_block(i);
  assert_ok(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD));
  close_pool();
  memset(blocks, 0, sizeof blocks);
}

#define BOTH(test)                                                            \
  {"several mappings: " #test, test, NULL, NULL, (void *)(uintptr_t)aliases}, \
  {                                                                           \
    "one mapping: " #test, test, NULL, NULL, (void *)(uintptr_t)alone         \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(comes_back_under_the_same_addresses),
      BOTH(no_block_that_was_freed_meanwhile_gets_memory),
      BOTH(no_small_block_that_was_freed_meanwhile_gets_memory),
      BOTH(fails_without_a_loss),
      BOTH(is_destroyed_while_suspended),
  };
  return cmocka_run_group_tests_name("suspended pool", tests, NULL, NULL);
}
