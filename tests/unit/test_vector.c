/* SPDX-License-Identifier: MIT */
/* Tests of hipmm/vector.h: elements by index, their bounds, sizes that cannot be counted in bytes, and scalars. */
#include "../support/both_schedulers.h"

#include <hipmm/vector.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pool[] = "'stack': ['pool', 'device']";

/* An element whose size is no power of two. */
struct element {
  uint32_t number;
  char letters[5];
};

static struct element element(uint32_t number)
{
  struct element element;
  memset(&element, 0, sizeof element);
  element.number = number;
  snprintf(element.letters, sizeof element.letters, "%04u", number % 10000);
  return element;
}

static struct hipmm_vector make(size_t count, hipmm_stream_t stream)
{
  struct hipmm_vector vector = {NULL, 0};
  struct element *elements = calloc(count + 1, sizeof *elements);
  for (size_t i = 0; i < count; i++) elements[i] = element((uint32_t)i);
  assert_ok(hipmm_vector_create_from(NULL, sizeof *elements, elements, count, stream, &vector));
  free(elements);
  return vector;
}

static void assert_element(const struct hipmm_vector *vector, size_t index, uint32_t number)
{
  struct element got, wanted = element(number);
  assert_ok(hipmm_vector_get(vector, index, hipmm_buffer_stream(vector->buffer), &got));
  assert_int_equal(got.number, wanted.number); /* what is between the members is a compiler's */
  assert_memory_equal(got.letters, wanted.letters, sizeof got.letters);
}

static void gets_and_sets_elements(void **state)
{
  struct element zero, value = element(7001);
  memset(&zero, 0, sizeof zero);
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_vector vector = make(100, stream);
  assert_int_equal(hipmm_vector_count(&vector), 100);
  assert_int_equal(hipmm_vector_capacity(&vector), 100);
  assert_int_equal(vector.element_bytes, sizeof(struct element));
  assert_ptr_equal(hipmm_buffer_stream(vector.buffer), stream);
  assert_int_equal(hipmm_buffer_device(vector.buffer), 0);
  assert_string_equal(hipmm_resource_type(hipmm_buffer_resource(vector.buffer)), "pool");
  for (size_t i = 0; i < 100; i += 9) assert_element(&vector, i, (uint32_t)i);
  assert_ok(hipmm_vector_set(&vector, 50, &value, stream));
  value = element(7002);
  assert_ok(hipmm_vector_set_async(&vector, 51, &value, stream));
  assert_ok(hipmm_vector_set_zero_async(&vector, 52, stream));
  assert_element(&vector, 49, 49);
  assert_element(&vector, 50, 7001);
  assert_element(&vector, 51, 7002);
  assert_ok(hipmm_vector_get(&vector, 52, stream, &value));
  assert_memory_equal(&value, &zero, sizeof zero);
  assert_element(&vector, 53, 53);
  assert_ok(hipmm_vector_get(&vector, 0, stream, &value));
  assert_int_equal(value.number, 0);
  assert_ok(hipmm_vector_get(&vector, hipmm_vector_count(&vector) - 1, stream, &value));
  assert_int_equal(value.number, 99);
  assert_ok(hipmm_buffer_destroy(vector.buffer));
  assert_ok(hipmm_stream_destroy(stream));
}

static void reads_and_writes_ranges(void **state)
{
  struct element some[20];
  struct hipmm_host_buffer *pinned = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_vector vector = make(1000, stream);
  for (uint32_t i = 0; i < 20; i++) some[i] = element(5000 + i);
  assert_ok(hipmm_vector_write(&vector, 980, some, 20, stream));
  assert_ok(hipmm_vector_write_async(&vector, 100, some, 20, stream));
  assert_ok(hipmm_host_buffer_create(NULL, sizeof some, stream, &pinned));
  struct element *seen = hipmm_host_buffer_data(pinned);
  assert_ok(hipmm_vector_read_async(&vector, 110, 20, stream, seen));
  assert_ok(hipmm_stream_synchronize(0, stream));
  for (uint32_t i = 0; i < 20; i++) assert_int_equal(seen[i].number, i < 10 ? 5010 + i : 110 + i);
  assert_ok(hipmm_vector_read(&vector, 970, 20, stream, some));
  for (uint32_t i = 0; i < 20; i++) assert_int_equal(some[i].number, i < 10 ? 970 + i : 4990 + i);
  assert_ok(hipmm_host_buffer_destroy(pinned));
  assert_ok(hipmm_buffer_destroy(vector.buffer));
  assert_ok(hipmm_stream_destroy(stream));
}

static void keeps_elements_when_its_size_changes(void **state)
{
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_vector vector = make(10, stream), copy = {NULL, 0};
  assert_ok(hipmm_vector_reserve(&vector, 500, stream));
  assert_int_equal(hipmm_vector_count(&vector), 10);
  assert_int_equal(hipmm_vector_capacity(&vector), 500);
  void *data = hipmm_buffer_data(vector.buffer);
  assert_ok(hipmm_vector_resize(&vector, 400, stream));
  assert_ptr_equal(hipmm_buffer_data(vector.buffer), data);
  assert_ok(hipmm_vector_set_zero_async(&vector, 399, stream));
  assert_ok(hipmm_vector_resize(&vector, 5, stream));
  assert_ok(hipmm_buffer_shrink_to_fit(vector.buffer, stream));
  assert_int_equal(hipmm_vector_capacity(&vector), 5);
  assert_element(&vector, 4, 4);
  assert_ok(hipmm_vector_copy(&vector, NULL, stream, &copy));
  assert_ok(hipmm_vector_set_zero_async(&vector, 4, stream));
  assert_ok(hipmm_vector_resize(&vector, 0, stream));
  assert_int_equal(hipmm_vector_count(&copy), 5);
  assert_int_equal(copy.element_bytes, sizeof(struct element));
  assert_element(&copy, 4, 4);
  assert_ok(hipmm_buffer_destroy(vector.buffer));
  assert_ok(hipmm_buffer_destroy(copy.buffer));
  assert_ok(hipmm_stream_destroy(stream));
}

/* Zero by its value, but not by its bytes: only set_zero may fill with zero bytes. */
static void keeps_the_sign_of_zero(void **state)
{
  const double minus = -0.0;
  const float small_minus = -0.0f;
  double got = 1;
  float small_got = 1;
  struct hipmm_vector vector = {NULL, 0}, small = vector, copy = vector;
  both_start(state, pool);
  assert_ok(hipmm_vector_create(NULL, sizeof minus, 4, NULL, &vector));
  assert_ok(hipmm_vector_create(NULL, sizeof small_minus, 4, NULL, &small));
  assert_ok(hipmm_vector_set(&vector, 0, &minus, NULL));
  assert_ok(hipmm_vector_set_async(&vector, 1, &minus, NULL));
  assert_ok(hipmm_vector_write(&vector, 2, &minus, 1, NULL));
  assert_ok(hipmm_vector_set_zero_async(&vector, 3, NULL));
  assert_ok(hipmm_vector_set(&small, 3, &small_minus, NULL));
  assert_ok(hipmm_vector_copy(&vector, NULL, NULL, &copy));
  for (size_t i = 0; i < 4; i++) {
    assert_ok(hipmm_vector_get(&copy, i, NULL, &got));
    assert_true(got == 0 && !!signbit(got) == (i < 3));
  }
  assert_ok(hipmm_vector_get(&small, 3, NULL, &small_got));
  assert_true(small_got == 0 && signbit(small_got));
  assert_ok(hipmm_buffer_destroy(vector.buffer));
  assert_ok(hipmm_buffer_destroy(small.buffer));
  assert_ok(hipmm_buffer_destroy(copy.buffer));
}

static void refuses_elements_that_do_not_exist(void **state)
{
  static const size_t wrong[] = {10, 11, SIZE_MAX, SIZE_MAX / sizeof(struct element) + 1};
  struct element value = element(1);
  both_start(state, pool);
  struct hipmm_vector vector = make(20, NULL), empty = make(0, NULL);
  assert_ok(hipmm_vector_resize(&vector, 10, NULL));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_vector_get(&vector, wrong[i], NULL, &value), HIPMM_E_ARGUMENT);
    assert_message("are not within the size, 120 bytes");
    assert_status(hipmm_vector_set(&vector, wrong[i], &value, NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_set_async(&vector, wrong[i], &value, NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_set_zero_async(&vector, wrong[i], NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_read(&vector, 1, wrong[i], NULL, &value), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_write(&vector, wrong[i], &value, wrong[i], NULL), HIPMM_E_ARGUMENT);
    if (i) assert_null(hipmm_vector_element(&vector, wrong[i]));
  }
  assert_status(hipmm_vector_get(&empty, 0, NULL, &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_get(&empty, hipmm_vector_count(&empty) - 1, NULL, &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_get(&vector, 0, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_set(&vector, 0, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(value.number, 1);
  assert_null(hipmm_vector_element(&empty, 0));
  for (size_t i = 0; i <= 10; i++) /* the last is the end, to iterate up to */
    assert_ptr_equal(hipmm_vector_element(&vector, i),
                     (char *)hipmm_buffer_data(vector.buffer) + i * sizeof(struct element));
  assert_ok(hipmm_buffer_destroy(vector.buffer));
  assert_ok(hipmm_buffer_destroy(empty.buffer));
}

static void refuses_sizes_that_overflow(void **state)
{
  static const size_t wrong[] = {SIZE_MAX, SIZE_MAX / sizeof(struct element) + 1, SIZE_MAX / 2 + 1};
  struct hipmm_vector none = {NULL, 7};
  both_start(state, pool);
  struct hipmm_vector vector = make(10, NULL);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_vector_resize(&vector, wrong[i], NULL), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_vector_reserve(&vector, wrong[i], NULL), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_vector_create(NULL, sizeof(struct element), wrong[i], NULL, &none), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_vector_create_from(NULL, wrong[i], &vector, 12, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  }
  assert_status(hipmm_vector_resize(&vector, SIZE_MAX / sizeof(struct element), NULL), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_vector_create(NULL, 0, 10, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_null(none.buffer);
  assert_int_equal(none.element_bytes, 7);
  assert_int_equal(hipmm_vector_count(&(struct hipmm_vector){vector.buffer, 0}), 0);
  assert_int_equal(hipmm_vector_count(&vector), 10);
  assert_element(&vector, 9, 9);
  assert_ok(hipmm_buffer_destroy(vector.buffer));
}

static void is_refused_once_its_buffer_is_gone(void **state)
{
  struct hipmm_vector none = {NULL, 0};
  struct element value;
  both_start(state, pool);
  struct hipmm_vector gone = make(3, NULL);
  assert_ok(hipmm_buffer_destroy(gone.buffer));
  assert_status(hipmm_vector_get(&gone, 0, NULL, &value), HIPMM_E_POINTER);
  assert_status(hipmm_vector_set_zero_async(&gone, 0, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_vector_resize(&gone, 1, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_vector_copy(&gone, NULL, NULL, &none), HIPMM_E_POINTER);
  assert_null(hipmm_vector_element(&gone, 0));
  assert_int_equal(hipmm_vector_capacity(&gone), 0);
  assert_null(none.buffer);
}

/* ---- Scalars ---- */

static double value_of(const struct hipmm_buffer *scalar)
{
  double value = -1;
  assert_ok(hipmm_scalar_get(scalar, hipmm_buffer_stream(scalar), &value));
  return value;
}

static void takes_and_gives_a_value(void **state)
{
  double value = 2.5;
  struct hipmm_buffer *scalar = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  assert_ok(hipmm_buffer_create_from(NULL, &value, sizeof value, stream, &scalar));
  value = 0;
  assert_true(value_of(scalar) == 2.5);
  value = 3.5;
  assert_ok(hipmm_scalar_set(scalar, &value, stream));
  assert_true(value_of(scalar) == 3.5);
  value = 4.5;
  assert_ok(hipmm_scalar_set_async(scalar, &value, stream));
  assert_true(value_of(scalar) == 4.5);
  assert_ok(hipmm_scalar_set_zero_async(scalar, stream));
  assert_true(value_of(scalar) == 0);
  assert_status(hipmm_scalar_set(scalar, NULL, stream), HIPMM_E_ARGUMENT);
  assert_status(hipmm_scalar_get(scalar, stream, NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_buffer_destroy(scalar));
  assert_status(hipmm_scalar_get(scalar, stream, &value), HIPMM_E_POINTER);
  assert_ok(hipmm_stream_destroy(stream));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(gets_and_sets_elements),
      BOTH(reads_and_writes_ranges),
      BOTH(keeps_elements_when_its_size_changes),
      BOTH(keeps_the_sign_of_zero),
      BOTH(refuses_elements_that_do_not_exist),
      BOTH(refuses_sizes_that_overflow),
      BOTH(is_refused_once_its_buffer_is_gone),
      BOTH(takes_and_gives_a_value),
  };
  return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
