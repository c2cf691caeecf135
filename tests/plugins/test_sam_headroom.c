/* SPDX-License-Identifier: MIT */
/* Tests of what `sam_headroom` does beyond other sources: which part of a block prefers the device. What it says to HIP
 * is overheard in the table of HIP functions. */
#include "../../core/runtime/hip.h"
#include "../support/fixture.h"

#include <stdint.h>

static const char reaches_the_host[] = "'pageable_memory_access': true";

/* ---- Overhearing ---- */

struct advice {
  const char *start;
  size_t bytes;
  int device;
};

static struct advice advice[4];
static int n_advice, advice_to_fail;
static size_t free_now;
static struct hipmm_hip real;

static int note_advice(const void *ptr, size_t bytes, int kind, int device)
{
  assert_int_equal(kind, HIPMM_HIP_ADVISE_PREFERRED_LOCATION);
  if (n_advice + 1 == advice_to_fail) {
    advice_to_fail = 0;
    return HIPMM_HIP_ERROR_INVALID_VALUE;
  }
  if (n_advice < 4) advice[n_advice++] = (struct advice){ptr, bytes, device};
  return real.MemAdvise(ptr, bytes, kind, device);
}

static int say_free(size_t *free_bytes, size_t *total_bytes)
{
  int code = real.MemGetInfo(free_bytes, total_bytes);
  *free_bytes = free_now;
  return code;
}

static void overhear(const char *graph)
{
  fixture_start_with(reaches_the_host, graph);
  real = hip_table_functions;
  hip_table_functions.MemAdvise = note_advice;
  hip_table_functions.MemGetInfo = say_free;
  n_advice = advice_to_fail = 0;
}

static int stop_overhearing(void **state)
{
  if (real.struct_size) hip_table_functions = real;
  return fixture_teardown(state);
}

/* ---- Tests ---- */

/* What lies where, with a headroom of 16 MiB. */
struct row {
  size_t free_bytes, bytes;
  size_t on_device;
};

static void prefers_the_device_up_to_the_headroom(void **state)
{
  (void)state;
  static const struct row rows[] = {
      {256 * MIB, MIB, MIB},             /* room enough: all of it, rounded down to 256 */
      {256 * MIB, MIB + 100, MIB},       /* the last page goes to the host */
      {256 * MIB, 100, 0},               /* less than 256 bytes is on no device */
      {256 * MIB, 240 * MIB, 240 * MIB}, /* just to the headroom */
      {256 * MIB, 241 * MIB, 240 * MIB}, /* beyond it */
      {17 * MIB, 4 * MIB, MIB},          /* little left */
      {16 * MIB + 300, MIB, 256},        /* of which 256 */
      {16 * MIB, MIB, 0},                /* just the headroom */
      {5 * MIB, MIB, 0},                 /* less than that */
      {0, MIB, 0},                       /* nothing */
  };
  overhear("'stack': [{'type': 'sam_headroom', 'headroom': '16MiB'}]");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row *row = &rows[i];
    int n = 0;
    free_now = row->free_bytes;
    n_advice = 0;
    char *ptr = fixture_allocate(row->bytes, NULL);
    if (row->on_device) {
      assert_ptr_equal(advice[n].start, ptr);
      assert_int_equal(advice[n].bytes, row->on_device);
      assert_int_equal(advice[n++].device, 0);
    }
    if (row->bytes > row->on_device) {
      assert_ptr_equal(advice[n].start, ptr + row->on_device);
      assert_int_equal(advice[n].bytes, row->bytes - row->on_device);
      assert_int_equal(advice[n++].device, HIPMM_HIP_CPU_DEVICE);
    }
    assert_int_equal(n_advice, n);
    fixture_free(ptr, row->bytes, NULL);
  }
}

static void prefers_the_device_that_it_serves(void **state)
{
  (void)state;
  struct hipmm_resource *second;
  void *ptr = NULL;
  overhear("'stack': [{'type': 'sam_headroom', 'headroom': 0}]");
  free_now = 256 * MIB;
  assert_ok(hipmm_resource_get_for_device(1, &second));
  assert_ok(hipmm_allocate(second, MIB, NULL, &ptr));
  assert_int_equal(n_advice, 1);
  assert_int_equal(advice[0].device, 1);
  assert_ok(hipmm_deallocate(second, ptr, MIB, NULL));
  hipmm_resource_release(second);
}

/* Advice is for whole pages: no block shares one. */
static void gives_every_block_its_own_pages(void **state)
{
  (void)state;
  fixture_start_with(reaches_the_host, "'stack': [{'type': 'sam_headroom', 'headroom': 0}]");
  char *first = fixture_allocate(100, NULL), *second = fixture_allocate(5000, NULL);
  assert_int_equal((uintptr_t)first % 4096, 0);
  assert_int_equal((uintptr_t)second % 4096, 0);
  fixture_free(first, 100, NULL);
  fixture_free(second, 5000, NULL);
}

static void takes_a_new_headroom_while_in_use(void **state)
{
  (void)state;
  overhear("'stack': [{'type': 'sam_headroom', 'headroom': 0}]");
  free_now = 256 * MIB;
  fixture_free(fixture_allocate(2 * MIB, NULL), 2 * MIB, NULL);
  assert_int_equal(n_advice, 1);
  assert_ok(hipmm_set("devices/0/sam_headroom/headroom", "255MiB"));
  fixture_free(fixture_allocate(2 * MIB, NULL), 2 * MIB, NULL);
  assert_int_equal(n_advice, 3);
  assert_int_equal(advice[1].bytes, MIB);
  assert_int_equal(advice[2].device, HIPMM_HIP_CPU_DEVICE);
}

static void gives_no_memory_when_its_place_is_refused(void **state)
{
  (void)state;
  void *ptr = (void *)1;
  overhear("'stack': [{'type': 'sam_headroom', 'headroom': '16MiB'}]");
  free_now = 17 * MIB;
  for (int nth = 1; nth <= 2; nth++) {
    n_advice = 0;
    advice_to_fail = nth;
    assert_status(hipmm_allocate(NULL, 4 * MIB, NULL, &ptr), HIPMM_E_HIP);
    assert_message("hipMemAdvise");
    assert_ptr_equal(ptr, (void *)1);
    assert_int_equal(fixture_held_bytes(), 0);
  }
}

static void needs_a_device_that_reaches_the_host(void **state)
{
  (void)state;
  static const char graph[] = "'stack': [{'type': 'sam_headroom', 'headroom': 0}]";
  assert_status(fixture_try("", graph), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no access to plain host memory");
  assert_ok(hipmm_finalize());
  assert_status(fixture_try(reaches_the_host, "'stack': ['sam_headroom']"), HIPMM_E_CONFIG);
  assert_message("headroom");
  real = hip_table_functions;
  hip_table_functions.MemAdvise = NULL;
  assert_status(fixture_try(reaches_the_host, graph), HIPMM_E_NOT_SUPPORTED);
  assert_message("does not export hipMemAdvise");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, stop_overhearing)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(prefers_the_device_up_to_the_headroom),     TEST(prefers_the_device_that_it_serves),
      TEST(gives_every_block_its_own_pages),           TEST(takes_a_new_headroom_while_in_use),
      TEST(gives_no_memory_when_its_place_is_refused), TEST(needs_a_device_that_reaches_the_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
