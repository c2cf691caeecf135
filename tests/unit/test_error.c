/* SPDX-License-Identifier: MIT */
/* Tests of core/base/error.c: the calling thread's error record. */
#include "../../core/base/error.h"
#include "../support/support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct hipmm_error record(void)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  return error;
}

/* ---- Without a failure ---- */

static void *look(void *result)
{
  *(struct hipmm_error *)result = record();
  return NULL;
}

static void is_empty_at_first(void **state)
{
  (void)state;
  struct hipmm_error error;
  pthread_t thread;
  assert_int_equal(error_set(HIPMM_E_IO, "of this thread"), HIPMM_E_IO);
  assert_int_equal(pthread_create(&thread, NULL, look, &error), 0);
  pthread_join(thread, NULL);
  assert_int_equal(error.status, HIPMM_OK);
  assert_string_equal(error.message, "");
  assert_int_equal(error.struct_size, sizeof error);
}

/* ---- Text ---- */

static void formats_a_message(void **state)
{
  (void)state;
  assert_int_equal(error_set(HIPMM_E_CONFIG, "%d %s", 7, "wrong things"), HIPMM_E_CONFIG);
  assert_string_equal(hipmm_last_error_message(), "7 wrong things");
  assert_int_equal(record().status, HIPMM_E_CONFIG);
}

static void quotes_the_message_before(void **state)
{
  (void)state;
  error_set(HIPMM_E_IO, "inner");
  error_set(HIPMM_E_PLUGIN, "outer: %s", hipmm_last_error_message());
  assert_string_equal(hipmm_last_error_message(), "outer: inner");
}

/* Messages contain paths and names unchanged, and terminals show messages. */
static void shows_control_characters_as_marks(void **state)
{
  (void)state;
  error_set(HIPMM_E_IO, "%s: %s",
            "/a\033[2J\xc2\x9b"
            "1m\x9b"
            "2m",
            "größe");
  assert_string_equal(hipmm_last_error_message(), "/a?[2J?1m?2m: größe");
  assert_string_equal(record().message, "/a?[2J?1m?2m: größe");
  error_refuse(HIPMM_E_LIMIT, "po\xc2\x9bol", "cannot", 0, 0, 0);
  assert_string_equal(hipmm_last_error_message(), "po?ol: cannot");
}

struct expansion {
  const char *name, *text;
  uint64_t numbers[3];
  const char *expected;
};

static const struct expansion expansions[] = {
    {"expands: no number", "nothing to say", {1, 2, 3}, "pool: nothing to say"},
    {"expands: three numbers",
     "{0}, {1} and {2}",
     {1, 20, 18446744073709551615u},
     "pool: 1, 20 and 18446744073709551615"},
    {"expands: in any order, repeatedly", "{2}{0}{2}", {1, 2, 3}, "pool: 313"},
    {"expands: sizes in words", "{0:bytes}, {1:bytes}", {1610612736, 17}, "pool: 1.5 GiB, 17 bytes"},
    {"expands: pointers", "{1:hex}", {0, 0xdeadbeef}, "pool: 0xdeadbeef"},
    {"expands: a number it does not have as 0", "{7}", {1, 2, 3}, "pool: 0"},
    {"expands: a form it does not know as a plain number", "{0:furlongs}", {5}, "pool: 5"},
    {"expands: an open brace at the end", "ends {0", {5}, "pool: ends 5"},
    {"expands: an open brace alone at the end", "ends {", {5}, "pool: ends 0"},
    {"expands: an empty text", "", {5}, "pool: "},
};

static void expands(void **state)
{
  const struct expansion *row = *state;
  error_refuse(HIPMM_E_OUT_OF_MEMORY, "pool", row->text, row->numbers[0], row->numbers[1], row->numbers[2]);
  assert_string_equal(hipmm_last_error_message(), row->expected);
  assert_string_equal(hipmm_last_error_message(), row->expected);
  assert_string_equal(record().resource, "pool");
  assert_int_equal(record().status, HIPMM_E_OUT_OF_MEMORY);
}

static void makes_text_only_when_asked(void **state)
{
  (void)state;
  char text[] = "{0} left";
  error_refuse(HIPMM_E_LIMIT, NULL, text, 3, 0, 0);
  memcpy(text, "{0} gone", sizeof text);
  assert_string_equal(hipmm_last_error_message(), "3 gone");
  memcpy(text, "{0} lost", sizeof text);
  assert_string_equal(hipmm_last_error_message(), "3 gone");
}

static void cuts_what_does_not_fit(void **state)
{
  (void)state;
  static char text[5000];
  memset(text, 'x', sizeof text - 1);
  error_refuse(HIPMM_E_LIMIT, NULL, text, 0, 0, 0);
  assert_int_equal(strlen(hipmm_last_error_message()), sizeof record().message - 1);
  error_set(HIPMM_E_LIMIT, "%s", text);
  assert_int_equal(strlen(hipmm_last_error_message()), sizeof record().message - 1);
  error_refuse(HIPMM_E_LIMIT, text, "end", 0, 0, 0);
  assert_int_equal(strlen(record().resource), sizeof record().resource - 1);
  assert_contains(hipmm_last_error_message(), "x: end");
}

static void adds_what_others_explain(void **state)
{
  (void)state;
  char name[] = "bins";
  const uint64_t bins[] = {1024, 65536, 64, 1024}, pool[] = {1 << 20, 2, 3, 4};
  error_hip(HIPMM_E_OUT_OF_MEMORY, "device", "hipMalloc", 2, "hipErrorOutOfMemory", 1 << 20);
  assert_int_equal(error_explain(HIPMM_E_OUT_OF_MEMORY, name, "no {0:bytes}: {1:bytes} in {2} of {3}", bins),
                   HIPMM_E_OUT_OF_MEMORY);
  strcpy(name, "gone"); /* the name is copied */
  error_explain(HIPMM_E_OUT_OF_MEMORY, "pool", "{0:bytes}", pool);
  assert_string_equal(record().message,
                      "device: hipMalloc of 1 MiB failed: hipErrorOutOfMemory; bins: no 1 KiB: 64 KiB "
                      "in 64 of 1024; pool: 1 MiB");
  assert_string_equal(record().resource, "device");
  error_explain(HIPMM_E_OUT_OF_MEMORY, "top", "{1}", pool); /* after the record was read */
  assert_string_equal(record().message,
                      "device: hipMalloc of 1 MiB failed: hipErrorOutOfMemory; bins: no 1 KiB: 64 KiB "
                      "in 64 of 1024; pool: 1 MiB; top: 2");
  error_set(HIPMM_E_IO, "another");
  assert_string_equal(record().message, "another");
}

static void explains_alone_when_nothing_was_said(void **state)
{
  (void)state;
  const uint64_t numbers[] = {1, 2, 3, 4};
  error_set(HIPMM_E_IO, "of before");
  error_explain(HIPMM_E_LIMIT, "pool", "{3}{2}{1}{0}", numbers);
  assert_string_equal(record().message, "pool: 4321");
  assert_int_equal(record().status, HIPMM_E_LIMIT);
}

static void hears_only_so_many(void **state)
{
  (void)state;
  const uint64_t numbers[4] = {0};
  error_refuse(HIPMM_E_LIMIT, "a", "x", 0, 0, 0);
  for (int i = 0; i < 9; i++) error_explain(HIPMM_E_LIMIT, "b", "y", numbers);
  assert_string_equal(record().message, "a: x; b: y; b: y; b: y; b: y");
}

static void tells_a_hip_call(void **state)
{
  (void)state;
  assert_int_equal(error_hip(HIPMM_E_OUT_OF_MEMORY, "memory", "hipMalloc", 2, "hipErrorOutOfMemory", 3 * MIB),
                   HIPMM_E_OUT_OF_MEMORY);
  assert_string_equal(hipmm_last_error_message(), "memory: hipMalloc of 3 MiB failed: hipErrorOutOfMemory");
  assert_int_equal(record().hip_code, 2);
  error_hip(HIPMM_E_HIP, NULL, "hipFree", 999, NULL, 0);
  assert_string_equal(hipmm_last_error_message(), "hipFree failed: unknown error");
  assert_int_equal(record().hip_code, 999);
}

/* ---- The record ---- */

static void keeps_only_the_last_failure(void **state)
{
  (void)state;
  struct hipmm_error error = {.struct_size = sizeof error, .status = HIPMM_E_SYNTAX, .line = 3, .column = 4};
  strcpy(error.file, "a.json");
  strcpy(error.path, "/pool");
  strcpy(error.resource, "pool");
  strcpy(error.message, "all of it");
  assert_int_equal(error_set_located(&error), HIPMM_E_SYNTAX);
  assert_int_equal(record().line, 3);
  assert_int_equal(record().column, 4);
  assert_string_equal(record().file, "a.json");
  assert_string_equal(record().path, "/pool");
  assert_string_equal(record().message, "all of it");

  error_refuse(HIPMM_E_POINTER, NULL, "{0:hex}", 16, 0, 0);
  assert_int_equal(record().line, 0);
  assert_int_equal(record().column, 0);
  assert_string_equal(record().file, "");
  assert_string_equal(record().path, "");
  assert_string_equal(record().resource, "");
  assert_string_equal(record().message, "0x10");

  error_hip(HIPMM_E_HIP, NULL, "hipFree", 1, "x", 0);
  error_set(HIPMM_E_IO, "later");
  assert_int_equal(record().hip_code, 0);
  assert_string_equal(record().message, "later");
}

static void success_keeps_the_record(void **state)
{
  (void)state;
  error_set(HIPMM_E_IO, "before");
  assert_non_null(hipmm_version());
  hipmm_resource_release(NULL);
  assert_string_equal(hipmm_last_error_message(), "before");
}

/* ---- Marks ---- */

static void returns_to_a_mark(void **state)
{
  (void)state;
  struct hipmm_error located = {.struct_size = sizeof located, .status = HIPMM_E_SYNTAX, .line = 3, .column = 4};
  struct error_record mark;
  strcpy(located.file, "a.json");
  strcpy(located.path, "/pool");
  strcpy(located.resource, "pool");
  strcpy(located.message, "all of it");
  error_set_located(&located);
  mark = error_mark();
  error_hip(HIPMM_E_OUT_OF_MEMORY, "device", "hipMalloc", 2, "hipErrorOutOfMemory", 1 << 20);
  error_return_to_mark(&mark);
  assert_int_equal(record().status, HIPMM_E_SYNTAX);
  assert_int_equal(record().hip_code, 0);
  assert_int_equal(record().line, 3);
  assert_int_equal(record().column, 4);
  assert_string_equal(record().file, "a.json");
  assert_string_equal(record().path, "/pool");
  assert_string_equal(record().resource, "pool");
  assert_string_equal(record().message, "all of it");
}

static void keeps_the_first_failure_of_a_loop(void **state)
{
  static const enum hipmm_status statuses[] = {HIPMM_OK, HIPMM_E_STATE, HIPMM_OK, HIPMM_E_HIP};
  enum hipmm_status first = HIPMM_OK;
  struct error_record failure;
  (void)state;
  for (unsigned i = 0; i < 4; i++) {
    enum hipmm_status one = statuses[i] ? error_set(statuses[i], "number %u", i) : HIPMM_OK;
    error_keep_first(&first, &failure, one);
  }
  error_return_to_mark(&failure);
  assert_int_equal(first, HIPMM_E_STATE);
  assert_int_equal(record().status, HIPMM_E_STATE);
  assert_string_equal(record().message, "number 1");
}

/* What a call left that has ended is no failure of this one. */
static void explains_nothing_of_an_earlier_call(void **state)
{
  const uint64_t numbers[4] = {7, 0, 0, 0};
  (void)state;
  error_set(HIPMM_E_OUT_OF_MEMORY, "earlier");
  error_of_op(HIPMM_E_OUT_OF_MEMORY, "pool", "allocate");
  error_explain(HIPMM_E_OUT_OF_MEMORY, "limiting", "{0} are left", numbers);
  error_of_op(HIPMM_E_OUT_OF_MEMORY, "limiting", "allocate");
  assert_string_equal(record().resource, "limiting");
  assert_non_null(strstr(record().message, "7 are left"));
  assert_null(strstr(record().message, "earlier"));
}

static void nests_marks(void **state)
{
  (void)state;
  struct error_record outer, inner;
  error_set(HIPMM_E_IO, "first");
  outer = error_mark();
  error_set(HIPMM_E_LIMIT, "second");
  inner = error_mark();
  error_set(HIPMM_E_STATE, "third");
  (void)error_mark();
  error_return_to_mark(&inner);
  assert_string_equal(record().message, "second");
  error_set(HIPMM_E_STATE, "fourth");
  error_return_to_mark(&outer);
  assert_int_equal(record().status, HIPMM_E_IO);
  assert_string_equal(record().message, "first");
  error_return_to_mark(&inner);
  assert_string_equal(record().message, "second");
}

/* What is not formatted yet comes back as it was: its numbers, and what others explain, before and after the mark. */
static void marks_what_is_not_formatted(void **state)
{
  (void)state;
  const uint64_t numbers[] = {1, 2, 3, 4};
  struct error_record mark;
  error_refuse(HIPMM_E_LIMIT, "pool", "{0} of {1}", 5, 6, 0);
  error_explain(HIPMM_E_LIMIT, "bins", "{0}", numbers);
  mark = error_mark();
  error_refuse(HIPMM_E_POINTER, "other", "{0:hex}", 16, 0, 0);
  error_explain(HIPMM_E_POINTER, "another", "{1}", numbers);
  assert_string_equal(record().message, "other: 0x10; another: 2");
  error_return_to_mark(&mark);
  error_explain(HIPMM_E_LIMIT, "top", "{3}", numbers);
  assert_string_equal(record().message, "pool: 5 of 6; bins: 1; top: 4");
}

/* An error that the program knows is no later failure's reason, whether or not the thread has returned to it. */
static void marks_what_the_program_knows(void **state)
{
  (void)state;
  struct error_record mark;
  error_hip(HIPMM_E_OUT_OF_MEMORY, "device", "hipMalloc", 2, "hipErrorOutOfMemory", 1);
  mark = error_mark();
  error_of_op(HIPMM_E_OUT_OF_MEMORY, "pool", "allocate");
  assert_false(error_is_out_of_device_memory());
  error_return_to_mark(&mark);
  assert_true(error_is_out_of_device_memory());
  error_of_op(HIPMM_E_OUT_OF_MEMORY, "pool", "allocate");
  mark = error_mark();
  error_return_to_mark(&mark);
  assert_false(error_is_out_of_device_memory());
  error_of_op(HIPMM_E_OUT_OF_MEMORY, "pool", "allocate");
  assert_contains(hipmm_last_error_message(), "pool: its allocate " ERROR_NO_REASON);
}

/* A caller with an older, shorter struct gets that many bytes and not one more; a caller with a longer struct learns
 * how many bytes were filled. */
static void fits_the_callers_struct(void **state)
{
  (void)state;
  unsigned char room[sizeof(struct hipmm_error) + 64];
  static const size_t sizes[] = {8, 12, 24, 100, sizeof(struct hipmm_error) - 1, sizeof(struct hipmm_error)};
  error_set(HIPMM_E_IO, "a message");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    memset(room, 0xa5, sizeof room);
    memcpy(room, &sizes[i], sizeof sizes[i]);
    hipmm_last_error((struct hipmm_error *)room);
    assert_memory_equal(room, &sizes[i], sizeof sizes[i]);
    for (size_t at = sizes[i]; at < sizeof room; at++) assert_int_equal(room[at], 0xa5);
    int32_t status = HIPMM_E_IO;
    if (sizes[i] >= 12) assert_memory_equal(room + 8, &status, sizeof status);
  }
  size_t longer = sizeof room;
  memset(room, 0xa5, sizeof room);
  memcpy(room, &longer, sizeof longer);
  hipmm_last_error((struct hipmm_error *)room);
  assert_int_equal(((struct hipmm_error *)room)->struct_size, sizeof(struct hipmm_error));
  for (size_t at = sizeof(struct hipmm_error); at < sizeof room; at++) assert_int_equal(room[at], 0xa5);
}

static void refuses_a_struct_without_its_size(void **state)
{
  (void)state;
  struct hipmm_error error = {.struct_size = 7, .status = 77};
  error_set(HIPMM_E_IO, "a message");
  hipmm_last_error(&error);
  assert_int_equal(error.status, 77);
  assert_int_equal(error.struct_size, 7);
  hipmm_last_error(NULL);
  assert_string_equal(hipmm_last_error_message(), "a message");
}

/* ---- Threads ---- */

static void *fail_often(void *number)
{
  int wrong = 0;
  for (uint64_t i = 0; i < 1000; i++) {
    char expected[64];
    uint64_t mine = (uint64_t)(uintptr_t)number * 10000 + i;
    error_refuse(HIPMM_E_LIMIT, "thread", "{0}", mine, 0, 0);
    snprintf(expected, sizeof expected, "thread: %llu", (unsigned long long)mine);
    wrong += strcmp(expected, hipmm_last_error_message()) != 0;
  }
  return (void *)(intptr_t)wrong;
}

static void is_each_threads_own(void **state)
{
  (void)state;
  pthread_t threads[8];
  error_set(HIPMM_E_IO, "of the main thread");
  for (uintptr_t i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, fail_often, (void *)i), 0);
  for (int i = 0; i < 8; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  assert_string_equal(hipmm_last_error_message(), "of the main thread");
}

/* ---- Words ---- */

static void has_words_for_every_status(void **state)
{
  (void)state;
  static const enum hipmm_status all[] = {HIPMM_OK,           HIPMM_E_ARGUMENT,      HIPMM_E_POINTER,
                                          HIPMM_E_SIZE,       HIPMM_E_STATE,         HIPMM_E_IO,
                                          HIPMM_E_SYNTAX,     HIPMM_E_CONFIG,        HIPMM_E_PLUGIN,
                                          HIPMM_E_PLUGIN_ABI, HIPMM_E_OUT_OF_MEMORY, HIPMM_E_LIMIT,
                                          HIPMM_E_NO_DEVICE,  HIPMM_E_NOT_SUPPORTED, HIPMM_E_HIP,
                                          HIPMM_E_INTERNAL};
  enum { N = sizeof all / sizeof *all };
  for (size_t i = 0; i < N; i++) {
    assert_string_not_equal(hipmm_status_string(all[i]), hipmm_status_string((enum hipmm_status)12345));
    for (size_t j = 0; j < i; j++) assert_string_not_equal(hipmm_status_string(all[i]), hipmm_status_string(all[j]));
  }
  assert_string_equal(hipmm_status_string(HIPMM_OK), "success");
  assert_string_equal(hipmm_status_string((enum hipmm_status)12345), "unknown status");
}

int main(void)
{
  struct CMUnitTest tests[64] = {
      cmocka_unit_test(adds_what_others_explain),
      cmocka_unit_test(explains_alone_when_nothing_was_said),
      cmocka_unit_test(hears_only_so_many),
      cmocka_unit_test(is_empty_at_first),
      cmocka_unit_test(formats_a_message),
      cmocka_unit_test(quotes_the_message_before),
      cmocka_unit_test(shows_control_characters_as_marks),
      cmocka_unit_test(makes_text_only_when_asked),
      cmocka_unit_test(cuts_what_does_not_fit),
      cmocka_unit_test(tells_a_hip_call),
      cmocka_unit_test(keeps_only_the_last_failure),
      cmocka_unit_test(success_keeps_the_record),
      cmocka_unit_test(returns_to_a_mark),
      cmocka_unit_test(keeps_the_first_failure_of_a_loop),
      cmocka_unit_test(explains_nothing_of_an_earlier_call),
      cmocka_unit_test(nests_marks),
      cmocka_unit_test(marks_what_is_not_formatted),
      cmocka_unit_test(marks_what_the_program_knows),
      cmocka_unit_test(fits_the_callers_struct),
      cmocka_unit_test(refuses_a_struct_without_its_size),
      cmocka_unit_test(is_each_threads_own),
      cmocka_unit_test(has_words_for_every_status),
  };
  size_t n = 0;
  while (tests[n].test_func) n++;
  for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++)
    tests[n++] = (struct CMUnitTest){
        .name = expansions[i].name, .test_func = expands, .initial_state = (void *)(uintptr_t)&expansions[i]};
  return _cmocka_run_group_tests("error", tests, n, NULL, NULL);
}
