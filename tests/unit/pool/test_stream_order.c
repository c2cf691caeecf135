/* SPDX-License-Identifier: MIT */
/* Tests of the order between streams (plugins/common/stream_order.c) by itself: that no call of HIP is made where the
 * answer is known, and that streams are known by their handles, however many there are. What memory makes of it is in
 * test_heap_streams.c. */
#include "../../../plugins/common/stream_order.h"
#include "../../support/random.h"
#include "../../support/support.h"
#include "fake.h"

#include <string.h>

static struct streams streams;

static void open_streams(enum record record)
{
  assert_true(streams_open(&streams, fake_begin(), record));
}

static int close_streams(void **state)
{
  (void)state;
  streams_close(&streams);
  fake_hip.StreamGetId = NULL;
  return fake_end();
}

static uint32_t enter(hipmm_stream_t handle)
{
  uint32_t id = STREAM_READY;
  assert_int_equal(streams_enter(&streams, handle, &id), HIPMM_OK);
  return id;
}

/* ---- Calls that are saved ---- */

static void asks_only_about_work_that_has_not_completed(void **state)
{
  (void)state;
  open_streams(RECORD_LAZY);
  uint32_t id = enter(fake_stream(1));
  stream_poll(&streams, id);
  assert_int_equal(fake_calls.event_query, 0);
  fake_work(1);
  stream_record_free(&streams, id);
  assert_true(stream_cover(&streams, id));
  stream_poll(&streams, id);
  assert_int_equal(stream_of(&streams, id)->completed, 0);
  fake_progress(1);
  stream_poll(&streams, id);
  assert_int_equal(stream_of(&streams, id)->completed, 1);
  stream_poll(&streams, id);
  assert_int_equal(fake_calls.event_query, 2);
}

static void waits_only_for_work_that_has_not_completed(void **state)
{
  (void)state;
  open_streams(RECORD_LAZY);
  uint32_t waiter = enter(fake_stream(0)), id = enter(fake_stream(1));
  assert_true(stream_host_wait(&streams, id)); /* it has no event */
  uint64_t epoch = stream_record_free(&streams, id);
  stream_complete(&streams, id);
  assert_true(stream_wait(&streams, waiter, id, epoch));
  assert_true(stream_host_wait(&streams, id));
  assert_true(stream_host_wait_for(&streams, id, epoch));
  assert_int_equal(fake_calls.stream_wait_event + fake_calls.event_synchronize + fake_calls.event_record, 0);
  assert_int_equal(streams.waits, 0);
}

static void marks_an_epoch_once(void **state)
{
  (void)state;
  open_streams(RECORD_AUTO);
  uint32_t id = enter(fake_stream(1));
  stream_record_free(&streams, id);
  stream_mark(&streams, id);
  stream_mark(&streams, id);
  assert_int_equal(fake_calls.event_record, 1);
  stream_record_free(&streams, id);
  stream_mark(&streams, id);
  assert_int_equal(fake_calls.event_record, 2);
  fake_progress(1);
  assert_true(stream_host_wait_for(&streams, id, 1));
}

/* ---- Streams that end ---- */

static void forgets_a_stream_once(void **state)
{
  (void)state;
  open_streams(RECORD_LAZY);
  uint32_t first = enter(fake_stream(1)), second = enter(fake_stream(2));
  stream_forget(&streams, first);
  stream_forget(&streams, first);
  assert_int_equal(streams.active, 1);
  uint32_t third = enter(fake_stream(3)), fourth = enter(fake_stream(4));
  assert_true(third && fourth && third != second && fourth != second && third != fourth);
  assert_int_equal(streams.active, 3);
}

static unsigned long long number;

static int number_of(hipmm_stream_t stream, unsigned long long *number_out)
{
  (void)stream;
  *number_out = number;
  return 0;
}

/* The handle names another stream by the time that the first one is lost again. */
static void loses_a_stream_once(void **state)
{
  (void)state;
  open_streams(RECORD_AUTO);
  fake_hip.StreamGetId = number_of;
  number = 1;
  uint32_t first = enter(fake_stream(1));
  stream_record_free(&streams, first);
  number = 2;
  uint32_t second = enter(fake_stream(1));
  assert_int_not_equal(second, first);
  stream_lose(&streams, first);
  assert_int_equal(streams_known_id(&streams, fake_stream(1)), second);
  stream_complete(&streams, first);
  streams_forget_gone(&streams);
  assert_int_equal(streams.active, 1);
}

/* ---- Many streams. HIP need not know their handles: nothing is done on them ---- */

static hipmm_stream_t handles[MAX_STREAMS];

static void refuses_a_stream_that_has_no_id_left(void **state)
{
  (void)state;
  open_streams(RECORD_LAZY);
  for (uint32_t id = STREAM_FIRST; id < MAX_STREAMS; id++) {
    handles[id] = (hipmm_stream_t)(uintptr_t)(64ull * id);
    assert_int_equal(enter(handles[id]), id);
  }
  hipmm_stream_t extra = (hipmm_stream_t)(uintptr_t)(64ull * MAX_STREAMS);
  assert_int_equal(enter(extra), STREAM_READY);
  assert_int_equal(streams.active, MAX_STREAMS - STREAM_FIRST);
  assert_false(stream_set_has(&streams.sets->named, STREAM_READY));
  stream_forget(&streams, 100);
  assert_int_equal(enter(extra), 100);
}

/* Handles by chance: many share their place in the table with others. */
static void knows_streams_whose_places_collide(void **state)
{
  enum { MANY = 40000 };
  uint64_t random = 3;
  (void)state;
  open_streams(RECORD_LAZY);
  for (uint32_t i = 0; i < MANY; i++) {
    handles[i] = (hipmm_stream_t)(uintptr_t)(16 + (random_next(&random) >> 16 << 4));
    assert_int_equal(enter(handles[i]), STREAM_FIRST + i);
  }
  for (uint32_t i = 0; i < MANY; i += 2) stream_forget(&streams, STREAM_FIRST + i);
  for (uint32_t i = 0; i < MANY; i++)
    assert_int_equal(streams_known_id(&streams, handles[i]), i % 2 ? STREAM_FIRST + i : STREAM_READY);
}

/* ---- Sets of streams ---- */

static struct stream_set set;
static bool is_member[MAX_STREAMS];

static void toggle(uint32_t stream)
{
  is_member[stream] = !is_member[stream];
  (is_member[stream] ? stream_set_add : stream_set_remove)(&set, stream);
}

/* Compares from each id on; whether the set has any member. */
static bool set_is_as_it_should_be(void)
{
  uint32_t next = MAX_STREAMS;
  bool is_right = stream_set_next(&set, MAX_STREAMS) == MAX_STREAMS;
  for (uint32_t stream = MAX_STREAMS; stream-- > 0;) {
    if (is_member[stream]) next = stream;
    is_right &= stream_set_next(&set, stream) == next && stream_set_has(&set, stream) == is_member[stream];
  }
  assert_true(is_right);
  return next < MAX_STREAMS;
}

/* Members that share a word, a word of words, and nothing; up to the last id. */
static void keeps_the_members_of_a_set_apart(void **state)
{
  static const uint32_t near[] = {1, 2, 63, 64, 127, 4095, 4096, 4160, 8191, 40000, MAX_STREAMS - 65, MAX_STREAMS - 1};
  enum { NEAR = sizeof near / sizeof *near };
  uint64_t random = 7;
  (void)state;
  memset(&set, 0, sizeof set);
  for (unsigned i = 0; i < NEAR; i++) toggle(near[i]);
  assert_true(set_is_as_it_should_be());
  for (unsigned i = 0; i < NEAR; i++) {
    toggle(near[i * 5 % NEAR]);
    assert_int_equal(set_is_as_it_should_be(), i + 1 < NEAR);
  }
  assert_true(!set.summaries);
  for (unsigned round = 0; round < 20; round++) {
    for (unsigned i = 0; i < 40; i++) toggle((uint32_t)random_below(&random, MAX_STREAMS - 1));
    set_is_as_it_should_be();
  }
  for (uint32_t stream = 0; stream < MAX_STREAMS; stream++)
    if (!is_member[stream]) toggle(stream);
  assert_true(set_is_as_it_should_be());
  stream_set_clear(&set);
  memset(is_member, 0, sizeof is_member);
  assert_false(set_is_as_it_should_be());
}

static int open_no_streams(void **state)
{
  (void)state;
  open_streams(RECORD_LAZY);
  return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_streams)
  const struct CMUnitTest tests[] = {
      TEST(asks_only_about_work_that_has_not_completed),
      TEST(waits_only_for_work_that_has_not_completed),
      TEST(marks_an_epoch_once),
      TEST(forgets_a_stream_once),
      TEST(loses_a_stream_once),
      TEST(refuses_a_stream_that_has_no_id_left),
      TEST(knows_streams_whose_places_collide),
      cmocka_unit_test_setup_teardown(keeps_the_members_of_a_set_apart, open_no_streams, close_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
