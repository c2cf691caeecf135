/* SPDX-License-Identifier: MIT */
/* What programs get wrong, on any runtime: a fork after initialisation, streams destroyed while their blocks are free,
 * frees that are not right, writes beside blocks. Nothing is lost by it, and data stays as it was. */
#include "data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20, BLOCKS = 8, ROUNDS = 40 };

static void *memory;

/* ---- Fork ---- */

static int use_in_child(const void *unused)
{
  (void)unused;
  void *ptr = NULL;
  int wrong = 0;
  wrong += hipmm_allocate(NULL, BYTES, NULL, &ptr) != HIPMM_E_STATE;
  wrong += !strstr(hipmm_last_error_message(), "child of a fork");
  wrong += hipmm_deallocate(NULL, memory, BYTES, NULL) != HIPMM_E_STATE;
  return wrong;
}

static void refuses_the_child_of_a_fork(void **state)
{
  data_start(*state);
  assert_ok(hipmm_allocate(NULL, BYTES, NULL, &memory));
  data_fill(memory, 0x11, BYTES, NULL);
  struct outcome outcome = run_forked(use_in_child, NULL);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
  assert_true(data_holds(memory, 0x11, BYTES)); /* the parent goes on */
  assert_ok(hipmm_deallocate(NULL, memory, BYTES, NULL));
}

/* ---- Streams ---- */

static void sleep_a_while(void *unused)
{
  (void)unused;
  usleep(3000);
}

static hipmm_stream_t new_stream(void)
{
  hipmm_stream_t stream = NULL;
  assert_int_equal(data_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0);
  return stream;
}

/* A stream that has work to do frees a block and is destroyed; the next one, which may have its handle, gets the
 * block. */
static void reuses_blocks_of_a_destroyed_stream(void **state)
{
  data_start(*state);
  struct hipmm_resource *resource;
  assert_ok(hipmm_resource_get_current(&resource));
  hipmm_resource_release(resource);
  for (int round = 0; round < ROUNDS; round++) {
    hipmm_stream_t old = new_stream();
    void *first = NULL, *second = NULL;
    assert_ok(hipmm_allocate(NULL, BYTES, old, &first));
    assert_int_equal(data_hip()->LaunchHostFunc(old, sleep_a_while, NULL), 0);
    data_fill(first, 0xEE, BYTES, old);
    assert_ok(hipmm_deallocate(NULL, first, BYTES, old));
    if (round % 3 == 0) assert_ok(hipmm_stream_retire(0, old));
    assert_int_equal(data_hip()->StreamDestroy(old), 0);
    hipmm_stream_t next = new_stream();
    assert_ok(hipmm_allocate(NULL, BYTES, next, &second));
    data_fill(second, (unsigned char)round, BYTES, next);
    assert_true(data_holds(second, (unsigned char)round, BYTES));
    assert_ok(hipmm_deallocate(NULL, second, BYTES, next));
    assert_int_equal(data_hip()->StreamDestroy(next), 0);
  }
}

/* ---- Frees ---- */

static void refuses_frees_that_are_wrong(void **state)
{
  void *ptr[BLOCKS];
  data_start(*state);
  for (int i = 0; i < BLOCKS; i++) {
    assert_ok(hipmm_allocate(NULL, BYTES, NULL, &ptr[i]));
    data_fill(ptr[i], (unsigned char)(i + 1), BYTES, NULL);
  }
  assert_ok(hipmm_deallocate(NULL, ptr[0], BYTES, NULL));
  assert_status(hipmm_deallocate(NULL, ptr[0], BYTES, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, (char *)ptr[1] + 256, BYTES, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr[1], BYTES + 1, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, &ptr, BYTES, NULL), HIPMM_E_POINTER);
  for (int i = 1; i < BLOCKS; i++) {
    assert_true(data_holds(ptr[i], (unsigned char)(i + 1), BYTES));
    assert_ok(hipmm_deallocate(NULL, ptr[i], i % 2 ? BYTES : 0, NULL));
  }
}

/* ---- Writes that go wrong, under guard ---- */

static int64_t guard_value(const char *name)
{
  int64_t value = -1;
  struct hipmm_resource *guard;
  assert_ok(hipmm_resource_get_by_name(0, "guard", &guard));
  assert_ok(hipmm_resource_query(guard, name, &value));
  hipmm_resource_release(guard);
  return value;
}

/* By work of the device, past the end, before the start, and after the free. */
static void finds_writes_that_go_wrong(void **state)
{
  char *ptr[3];
  struct hipmm_resource *guard;
  data_start(*state);
  for (int i = 0; i < 3; i++) assert_ok(hipmm_allocate(NULL, 1000, NULL, (void **)&ptr[i]));
  for (int i = 0; i < 3; i++) data_fill(ptr[i], 1, 1000, NULL);
  data_fill(ptr[0] + 1000, 2, 1, NULL);
  data_fill(ptr[1] - 1, 2, 1, NULL);
  for (int i = 0; i < 3; i++) assert_ok(hipmm_deallocate(NULL, ptr[i], 1000, NULL));
  data_fill(ptr[2] + 500, 2, 1, NULL);
  assert_ok(hipmm_resource_get_by_name(0, "guard", &guard));
  assert_ok(hipmm_resource_perform(guard, "verify"));
  hipmm_resource_release(guard);
  assert_int_equal(guard_value("overruns"), 1);
  assert_int_equal(guard_value("underruns"), 1);
  assert_int_equal(guard_value("writes_after_free"), 1);
}

#define ROW(text, test, stack) DATA_ROW(text, test, data_teardown, stack)
#define EACH(test)             DATA_ROWS(test, data_teardown), ROW("async: " #test, test, "['async']")

int main(void)
{
  const struct CMUnitTest tests[] = {
      EACH(refuses_the_child_of_a_fork),
      EACH(reuses_blocks_of_a_destroyed_stream),
      EACH(refuses_frees_that_are_wrong),
      ROW("over a pool: finds_writes_that_go_wrong", finds_writes_that_go_wrong, "['guard', 'pool', 'device']"),
      ROW("device: finds_writes_that_go_wrong", finds_writes_that_go_wrong, "['guard', 'device']"),
  };
  return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
