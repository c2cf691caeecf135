/* SPDX-License-Identifier: MIT */
/* A device that is full: the stack fails clearly, what is live stays as it is, and memory that is freed can be had
 * again. Over the software device, or over the GPU that HIPMM_RUNTIME names, whose memory is then taken to the last
 * piece, a ballast apart. */
#include "data.h"

#include <string.h>

#define MOST_FREE ((size_t)8 << 30)

enum { PIECES = 40, MOST = 64 };

struct full {
  void *ptr[MOST];
  unsigned count;
  size_t bytes; /* of each */
};

static struct full full;
static void *ballast; /* the rest of a large device, which would take long to fill */

/* Takes pieces until there are no more. */
static enum hipmm_status fill(void)
{
  for (; full.count < MOST; full.count++) {
    enum hipmm_status status = hipmm_allocate(NULL, full.bytes, NULL, &full.ptr[full.count]);
    if (status) return status;
    data_fill(full.ptr[full.count], (unsigned char)(full.count + 1), full.bytes, NULL);
  }
  return HIPMM_OK;
}

static void assert_intact(unsigned from, unsigned step)
{
  for (unsigned i = from; i < full.count; i += step)
    assert_true(data_holds(full.ptr[i], (unsigned char)(i + 1), full.bytes));
}

static void free_each(unsigned from, unsigned step)
{
  for (unsigned i = from; i < full.count; i += step) assert_ok(hipmm_deallocate(NULL, full.ptr[i], full.bytes, NULL));
}

static int teardown(void **state)
{
  if (ballast) data_hip()->Free(ballast);
  ballast = NULL;
  return data_teardown(state);
}

static void start(const char *stack)
{
  struct hipmm_resource *resource;
  data_start(stack);
  assert_ok(hipmm_resource_get_current(&resource)); /* builds the stack, and with it the device's context */
  hipmm_resource_release(resource);
  size_t free_bytes = data_free_bytes();
  if (free_bytes > MOST_FREE) assert_int_equal(data_hip()->Malloc(&ballast, free_bytes - MOST_FREE), 0);
  full = (struct full){.bytes = data_free_bytes() / PIECES / (2 * MIB) * (2 * MIB)};
  assert_in_range(full.bytes, MIB, SIZE_MAX);
}

static void fails_clearly_when_the_device_is_full(void **state)
{
  void *ptr = NULL;
  start(*state);
  assert_status(fill(), HIPMM_E_OUT_OF_MEMORY);
  assert_in_range(full.count, PIECES * 3 / 4, PIECES * 11 / 10);
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  assert_int_equal(error.status, HIPMM_E_OUT_OF_MEMORY);
  assert_int_not_equal(error.resource[0], '\0');
  assert_int_not_equal(error.message[0], '\0');
  assert_status(hipmm_allocate(NULL, full.bytes, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_null(ptr);
  assert_intact(0, 1);
  free_each(0, 1);
}

static void gives_again_what_was_freed(void **state)
{
  start(*state);
  assert_status(fill(), HIPMM_E_OUT_OF_MEMORY);
  unsigned before = full.count, again = 0;
  free_each(0, 2);
  for (unsigned i = 0; i < before; i += 2, again++) assert_ok(hipmm_allocate(NULL, full.bytes, NULL, &full.ptr[i]));
  for (unsigned i = 0; i < before; i += 2) data_fill(full.ptr[i], (unsigned char)(i + 1), full.bytes, NULL);
  assert_intact(0, 1);
  free_each(0, 1);
}

static void gives_a_large_block_once_all_is_free(void **state)
{
  void *large = NULL;
  size_t held = 1;
  struct hipmm_resource *top;
  start(*state);
  assert_status(fill(), HIPMM_E_OUT_OF_MEMORY);
  free_each(0, 1);
  assert_ok(hipmm_resource_get_current(&top));
  assert_ok(hipmm_resource_trim(top, 0));
  size_t bytes = full.bytes * (PIECES / 2);
  assert_ok(hipmm_allocate(NULL, bytes, NULL, &large));
  data_fill(large, 0x5A, bytes, NULL);
  assert_true(data_holds(large, 0x5A, bytes));
  assert_ok(hipmm_deallocate(NULL, large, bytes, NULL));
  assert_ok(hipmm_resource_trim(top, 0));
  hipmm_resource_release(top);
  assert_ok(hipmm_device_held_bytes(0, &held, NULL));
  assert_int_equal(held, 0);
}

/* Only where pieces can be moved under it: half of the memory, while every other piece is live. */
static void gives_a_large_block_from_scattered_pieces(void **state)
{
  void *large = NULL;
  start(*state);
  assert_status(fill(), HIPMM_E_OUT_OF_MEMORY);
  free_each(0, 2);
  size_t bytes = full.bytes * (full.count / 2 - 1);
  assert_ok(hipmm_allocate(NULL, bytes, NULL, &large));
  data_fill(large, 0xA5, bytes, NULL);
  assert_true(data_holds(large, 0xA5, bytes));
  assert_intact(1, 2);
  assert_ok(hipmm_deallocate(NULL, large, bytes, NULL));
  free_each(1, 2);
}

/* A pool beside the stack, over the same source, holds all of the memory idle; then half of it live. */
static void takes_what_a_neighbour_holds_idle(void **state)
{
  void *large = NULL, *half = NULL;
  struct hipmm_resource *top, *source, *neighbour;
  start(*state);
  assert_ok(hipmm_resource_get_current(&top));
  assert_ok(hipmm_resource_upstream(top, 0, &source));
  assert_ok(hipmm_resource_create(0, "pool", NULL, &source, 1, &neighbour));
  size_t bytes = full.bytes * (PIECES / 2);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_allocate(neighbour, full.bytes * (PIECES - 2), NULL, &large));
    assert_ok(hipmm_deallocate(neighbour, large, 0, NULL));
    assert_ok(hipmm_allocate(NULL, bytes, NULL, &half));
    data_fill(half, 0x77, bytes, NULL);
    assert_true(data_holds(half, 0x77, bytes));
    assert_ok(hipmm_deallocate(NULL, half, bytes, NULL));
  }
  assert_ok(hipmm_allocate(neighbour, bytes, NULL, &half));
  assert_status(hipmm_allocate(NULL, full.bytes * (PIECES - 2), NULL, &large), HIPMM_E_OUT_OF_MEMORY);
  assert_non_null(strstr(hipmm_last_error_message(), " of what is used were freed"));
  assert_ok(hipmm_deallocate(neighbour, half, bytes, NULL));
  hipmm_resource_release(neighbour);
  hipmm_resource_release(source);
  hipmm_resource_release(top);
}

/* Others may want the memory meanwhile. */
static void takes_nothing_for_what_the_device_has_not(void **state)
{
  void *first, *large = NULL;
  struct hipmm_resource *top;
  start(*state);
  assert_ok(hipmm_resource_get_current(&top));
  assert_ok(hipmm_allocate(NULL, full.bytes, NULL, &first));
  data_fill(first, 0x3C, full.bytes, NULL);
  int64_t peak_bytes = resource_value(top, "peak_reserved_bytes");
  assert_status(hipmm_allocate(NULL, data_free_bytes() + full.bytes, NULL, &large), HIPMM_E_OUT_OF_MEMORY);
  assert_null(large);
  assert_int_equal(resource_value(top, "peak_reserved_bytes"), peak_bytes);
  assert_true(data_holds(first, 0x3C, full.bytes));
  assert_ok(hipmm_deallocate(NULL, first, full.bytes, NULL));
  hipmm_resource_release(top);
}

#define ROW(text, test, stack) DATA_ROW(text, test, teardown, stack)
#define EACH(test)             DATA_ROWS(test, teardown), ROW("statistics: " #test, test, "['statistics', 'pool', 'device']")

int main(void)
{
  const struct CMUnitTest tests[] = {
      EACH(fails_clearly_when_the_device_is_full),
      EACH(gives_again_what_was_freed),
      EACH(gives_a_large_block_once_all_is_free),
      ROW("mapped: gives_a_large_block_from_scattered_pieces", gives_a_large_block_from_scattered_pieces,
          "[{'type': 'pool', 'growth': 'mapped'}, 'device']"),
      ROW("mapped: takes_what_a_neighbour_holds_idle", takes_what_a_neighbour_holds_idle,
          "[{'type': 'pool', 'growth': 'mapped'}, 'device']"),
      ROW("segments: takes_what_a_neighbour_holds_idle", takes_what_a_neighbour_holds_idle,
          "[{'type': 'pool', 'growth': 'segments'}, 'device']"),
      ROW("mapped: takes_nothing_for_what_the_device_has_not", takes_nothing_for_what_the_device_has_not,
          "[{'type': 'pool', 'growth': 'mapped'}, 'device']"),
      ROW("segments: takes_nothing_for_what_the_device_has_not", takes_nothing_for_what_the_device_has_not,
          "[{'type': 'pool', 'growth': 'segments'}, 'device']"),
  };
  return cmocka_run_group_tests_name("a full device", tests, NULL, NULL);
}
