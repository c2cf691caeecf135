/* SPDX-License-Identifier: MIT */
/* Tests of core/container/scalar.c: one value, to and from the device. */
#include "../support/both_schedulers.h"

static const char pool[] = "'stack': ['pool', 'device']";

static double value_of(const struct hipmm_scalar *scalar)
{
  double value = -1;
  assert_ok(hipmm_scalar_get(scalar, hipmm_scalar_stream(scalar), &value));
  return value;
}

static void takes_and_gives_a_value(void **state)
{
  double value = 2.5;
  struct hipmm_scalar *scalar = NULL, *empty = NULL;
  hipmm_stream_t stream;
  both_start(state, pool);
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_ok(hipmm_scalar_create_from(NULL, &value, sizeof value, stream, &scalar));
  value = 0;
  assert_true(value_of(scalar) == 2.5);
  assert_int_equal(hipmm_scalar_bytes(scalar), sizeof value);
  assert_int_equal(hipmm_scalar_device(scalar), 0);
  assert_non_null(hipmm_scalar_data(scalar));
  assert_string_equal(hipmm_resource_type(hipmm_scalar_resource(scalar)), "pool");
  value = 3.5;
  assert_ok(hipmm_scalar_set(scalar, &value, stream));
  assert_true(value_of(scalar) == 3.5);
  value = 4.5;
  assert_ok(hipmm_scalar_set_async(scalar, &value, stream));
  assert_true(value_of(scalar) == 4.5);
  assert_ok(hipmm_scalar_set_zero_async(scalar, stream));
  assert_true(value_of(scalar) == 0);
  assert_ok(hipmm_scalar_create(NULL, 1, NULL, &empty));
  assert_ok(hipmm_scalar_set_stream(empty, stream));
  assert_ptr_equal(hipmm_scalar_stream(empty), stream);
  assert_ok(hipmm_scalar_destroy(empty));
  assert_ok(hipmm_scalar_destroy(scalar));
  assert_ok(hipmm_stream_destroy(stream));
}

static void copies_to_another_device(void **state)
{
  double value = 6.5;
  struct hipmm_scalar *scalar = NULL, *copy = NULL;
  struct hipmm_resource *resource;
  both_start(state, pool);
  needs_devices(2);
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  assert_ok(hipmm_scalar_create_from(NULL, &value, sizeof value, NULL, &scalar));
  assert_ok(hipmm_stream_wait(1, NULL, 0, NULL));
  assert_ok(hipmm_scalar_copy(scalar, resource, NULL, &copy));
  assert_ok(hipmm_stream_wait(0, NULL, 1, NULL));
  assert_ok(hipmm_scalar_set_zero_async(scalar, NULL));
  assert_int_equal(hipmm_scalar_device(copy), 1);
  assert_true(value_of(copy) == 6.5);
  assert_true(value_of(scalar) == 0);
  assert_ok(hipmm_scalar_destroy(scalar));
  assert_ok(hipmm_scalar_destroy(copy));
  hipmm_resource_release(resource);
}

static void minds_its_arguments(void **state)
{
  double value = 1.5;
  struct hipmm_scalar *none = NULL, *scalar = NULL;
  both_start(state, pool);
  assert_status(hipmm_scalar_create(NULL, 0, NULL, &none), HIPMM_E_ARGUMENT);
  assert_message("bytes is 0");
  assert_status(hipmm_scalar_create(NULL, 8, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_scalar_create_from(NULL, NULL, 8, NULL, &none), HIPMM_E_ARGUMENT);
  assert_status(hipmm_scalar_create(NULL, SIZE_MAX, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_scalar_create_from(NULL, &value, sizeof value, NULL, &scalar));
  assert_status(hipmm_scalar_set(scalar, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_scalar_get(scalar, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_scalar_copy(scalar, NULL, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_true(value_of(scalar) == 1.5);
  assert_ok(hipmm_scalar_destroy(scalar));
  assert_ok(hipmm_scalar_destroy(NULL));
  struct hipmm_scalar *const wrong[] = {NULL, scalar};
  for (size_t i = 0; i < 2; i++) {
    enum hipmm_status status = i ? HIPMM_E_POINTER : HIPMM_E_ARGUMENT;
    assert_status(hipmm_scalar_get(wrong[i], NULL, &value), status);
    assert_status(hipmm_scalar_set(wrong[i], &value, NULL), status);
    assert_status(hipmm_scalar_set_async(wrong[i], &value, NULL), status);
    assert_status(hipmm_scalar_set_zero_async(wrong[i], NULL), status);
    assert_status(hipmm_scalar_set_stream(wrong[i], NULL), status);
    assert_status(hipmm_scalar_copy(wrong[i], NULL, NULL, &none), status);
    assert_null(hipmm_scalar_data(wrong[i]));
    assert_int_equal(hipmm_scalar_bytes(wrong[i]), 0);
    assert_int_equal(hipmm_scalar_device(wrong[i]), -1);
  }
  assert_status(hipmm_scalar_destroy(scalar), HIPMM_E_POINTER);
  assert_null(none);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(takes_and_gives_a_value),
      BOTH(copies_to_another_device),
      BOTH(minds_its_arguments),
  };
  return cmocka_run_group_tests_name("scalar", tests, NULL, NULL);
}
