/* SPDX-License-Identifier: MIT */
/* Tests of core/container/vector.c: elements by index, their bounds, and sizes that cannot be counted in bytes. */
#include "../support/both_schedulers.h"

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

static struct hipmm_vector *make(size_t count, hipmm_stream_t stream)
{
  struct hipmm_vector *vector = NULL;
  struct element *elements = calloc(count + 1, sizeof *elements);
  for (size_t i = 0; i < count; i++) elements[i] = element((uint32_t)i);
  assert_ok(hipmm_vector_create_from(NULL, sizeof *elements, elements, count, stream, &vector));
  free(elements);
  return vector;
}

static void assert_element(const struct hipmm_vector *vector, size_t index, uint32_t number)
{
  struct element got, wanted = element(number);
  assert_ok(hipmm_vector_get(vector, index, hipmm_vector_stream(vector), &got));
  assert_memory_equal(&got, &wanted, sizeof got);
}

static void gets_and_sets_elements(void **state)
{
  struct element zero, value = element(7001);
  memset(&zero, 0, sizeof zero);
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_vector *vector = make(100, stream);
  assert_int_equal(hipmm_vector_count(vector), 100);
  assert_int_equal(hipmm_vector_capacity(vector), 100);
  assert_int_equal(hipmm_vector_element_bytes(vector), sizeof(struct element));
  assert_ptr_equal(hipmm_vector_stream(vector), stream);
  assert_int_equal(hipmm_vector_device(vector), 0);
  assert_string_equal(hipmm_resource_type(hipmm_vector_resource(vector)), "pool");
  for (size_t i = 0; i < 100; i += 9) assert_element(vector, i, (uint32_t)i);
  assert_ok(hipmm_vector_set(vector, 50, &value, stream));
  value = element(7002);
  assert_ok(hipmm_vector_set_async(vector, 51, &value, stream));
  assert_ok(hipmm_vector_set_zero_async(vector, 52, stream));
  assert_element(vector, 49, 49);
  assert_element(vector, 50, 7001);
  assert_element(vector, 51, 7002);
  assert_ok(hipmm_vector_get(vector, 52, stream, &value));
  assert_memory_equal(&value, &zero, sizeof zero);
  assert_element(vector, 53, 53);
  assert_ok(hipmm_vector_front(vector, stream, &value));
  assert_int_equal(value.number, 0);
  assert_ok(hipmm_vector_back(vector, stream, &value));
  assert_int_equal(value.number, 99);
  assert_ok(hipmm_vector_destroy(vector));
  assert_ok(hipmm_stream_destroy(stream));
}

static void reads_and_writes_ranges(void **state)
{
  struct element some[20];
  struct hipmm_host_buffer *pinned = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_vector *vector = make(1000, stream);
  for (uint32_t i = 0; i < 20; i++) some[i] = element(5000 + i);
  assert_ok(hipmm_vector_write(vector, 980, some, 20, stream));
  assert_ok(hipmm_vector_write_async(vector, 100, some, 20, stream));
  assert_ok(hipmm_host_buffer_create(NULL, sizeof some, stream, &pinned));
  struct element *seen = hipmm_host_buffer_data(pinned);
  assert_ok(hipmm_vector_read_async(vector, 110, 20, stream, seen));
  assert_ok(hipmm_stream_synchronize(0, stream));
  for (uint32_t i = 0; i < 20; i++) assert_int_equal(seen[i].number, i < 10 ? 5010 + i : 110 + i);
  assert_ok(hipmm_vector_read(vector, 970, 20, stream, some));
  for (uint32_t i = 0; i < 20; i++) assert_int_equal(some[i].number, i < 10 ? 970 + i : 4990 + i);
  assert_ok(hipmm_host_buffer_destroy(pinned));
  assert_ok(hipmm_vector_destroy(vector));
  assert_ok(hipmm_stream_destroy(stream));
}

static void keeps_elements_when_its_size_changes(void **state)
{
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_vector *vector = make(10, stream), *copy = NULL;
  assert_ok(hipmm_vector_reserve(vector, 500, stream));
  assert_int_equal(hipmm_vector_count(vector), 10);
  assert_int_equal(hipmm_vector_capacity(vector), 500);
  void *data = hipmm_vector_data(vector);
  assert_ok(hipmm_vector_resize(vector, 400, stream));
  assert_ptr_equal(hipmm_vector_data(vector), data);
  assert_ok(hipmm_vector_set_zero_async(vector, 399, stream));
  assert_ok(hipmm_vector_resize(vector, 5, stream));
  assert_ok(hipmm_vector_shrink_to_fit(vector, stream));
  assert_int_equal(hipmm_vector_capacity(vector), 5);
  assert_element(vector, 4, 4);
  assert_ok(hipmm_vector_copy(vector, NULL, stream, &copy));
  assert_ok(hipmm_vector_set_zero_async(vector, 4, stream));
  assert_ok(hipmm_vector_resize(vector, 0, stream));
  assert_int_equal(hipmm_vector_count(copy), 5);
  assert_int_equal(hipmm_vector_element_bytes(copy), sizeof(struct element));
  assert_element(copy, 4, 4);
  assert_ok(hipmm_vector_destroy(vector));
  assert_ok(hipmm_vector_destroy(copy));
  assert_ok(hipmm_stream_destroy(stream));
}

/* Zero by its value, but not by its bytes: only set_zero may fill with zero bytes. */
static void keeps_the_sign_of_zero(void **state)
{
  const double minus = -0.0;
  const float small_minus = -0.0f;
  double got = 1;
  float small_got = 1;
  struct hipmm_vector *vector = NULL, *small = NULL, *copy = NULL;
  both_start(state, pool);
  assert_ok(hipmm_vector_create(NULL, sizeof minus, 4, NULL, &vector));
  assert_ok(hipmm_vector_create(NULL, sizeof small_minus, 4, NULL, &small));
  assert_ok(hipmm_vector_set(vector, 0, &minus, NULL));
  assert_ok(hipmm_vector_set_async(vector, 1, &minus, NULL));
  assert_ok(hipmm_vector_write(vector, 2, &minus, 1, NULL));
  assert_ok(hipmm_vector_set_zero_async(vector, 3, NULL));
  assert_ok(hipmm_vector_set(small, 3, &small_minus, NULL));
  assert_ok(hipmm_vector_copy(vector, NULL, NULL, &copy));
  for (size_t i = 0; i < 4; i++) {
    assert_ok(hipmm_vector_get(copy, i, NULL, &got));
    assert_true(got == 0 && !!signbit(got) == (i < 3));
  }
  assert_ok(hipmm_vector_get(small, 3, NULL, &small_got));
  assert_true(small_got == 0 && signbit(small_got));
  assert_ok(hipmm_vector_destroy(vector));
  assert_ok(hipmm_vector_destroy(small));
  assert_ok(hipmm_vector_destroy(copy));
}

static void refuses_elements_that_do_not_exist(void **state)
{
  static const size_t wrong[] = {10, 11, SIZE_MAX, SIZE_MAX / sizeof(struct element) + 1};
  struct element value = element(1);
  void *untouched = (void *)(uintptr_t)0x5a5a, *ptr = untouched;
  both_start(state, pool);
  struct hipmm_vector *vector = make(20, NULL), *empty = make(0, NULL);
  assert_ok(hipmm_vector_resize(vector, 10, NULL));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_vector_get(vector, wrong[i], NULL, &value), HIPMM_E_ARGUMENT);
    assert_message("are not within the 10 that there are");
    assert_status(hipmm_vector_set(vector, wrong[i], &value, NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_set_async(vector, wrong[i], &value, NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_set_zero_async(vector, wrong[i], NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_element(vector, wrong[i], &ptr), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_range(vector, 1, wrong[i], &ptr), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_read(vector, 1, wrong[i], NULL, &value), HIPMM_E_ARGUMENT);
    assert_status(hipmm_vector_write(vector, wrong[i], &value, wrong[i], NULL), HIPMM_E_ARGUMENT);
  }
  assert_ptr_equal(ptr, untouched);
  assert_status(hipmm_vector_front(empty, NULL, &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_back(empty, NULL, &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_get(vector, 0, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_set(vector, 0, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_element(vector, 0, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(value.number, 1);
  assert_ok(hipmm_vector_range(empty, 0, 0, &ptr));
  assert_null(ptr);
  assert_ok(hipmm_vector_element(vector, 9, &ptr));
  assert_ptr_equal(ptr, (char *)hipmm_vector_data(vector) + 9 * sizeof(struct element));
  assert_ok(hipmm_vector_range(vector, 10, 0, &ptr)); /* one past the last, to iterate up to */
  assert_ptr_equal(ptr, (char *)hipmm_vector_data(vector) + 10 * sizeof(struct element));
  assert_ok(hipmm_vector_destroy(vector));
  assert_ok(hipmm_vector_destroy(empty));
}

static void refuses_sizes_that_overflow(void **state)
{
  static const size_t wrong[] = {SIZE_MAX, SIZE_MAX / sizeof(struct element) + 1, SIZE_MAX / 2 + 1};
  struct hipmm_vector *none = NULL;
  both_start(state, pool);
  struct hipmm_vector *vector = make(10, NULL);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_vector_resize(vector, wrong[i], NULL), HIPMM_E_OUT_OF_MEMORY);
    assert_message("no memory is large enough for");
    assert_status(hipmm_vector_reserve(vector, wrong[i], NULL), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_vector_create(NULL, sizeof(struct element), wrong[i], NULL, &none), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_vector_create_from(NULL, wrong[i], vector, 12, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  }
  assert_status(hipmm_vector_resize(vector, SIZE_MAX / sizeof(struct element), NULL), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_vector_create(NULL, 0, 10, NULL, &none), HIPMM_E_ARGUMENT);
  assert_message("element_bytes is 0");
  assert_status(hipmm_vector_create(NULL, 1, 10, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_vector_copy(vector, NULL, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_null(none);
  assert_int_equal(hipmm_vector_count(vector), 10);
  assert_element(vector, 9, 9);
  assert_ok(hipmm_vector_destroy(vector));
}

static void becomes_a_buffer(void **state)
{
  struct hipmm_buffer *buffer = NULL;
  struct element third;
  both_start(state, pool);
  struct hipmm_vector *vector = make(30, NULL);
  void *data = hipmm_vector_data(vector);
  assert_status(hipmm_vector_release(vector, NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_vector_release(vector, &buffer));
  assert_status(hipmm_vector_release(vector, &buffer), HIPMM_E_POINTER);
  assert_status(hipmm_vector_destroy(vector), HIPMM_E_POINTER);
  assert_int_equal(hipmm_vector_count(vector), 0);
  assert_ptr_equal(hipmm_buffer_data(buffer), data);
  assert_int_equal(hipmm_buffer_bytes(buffer), 30 * sizeof third);
  assert_ok(hipmm_buffer_read(buffer, 3 * sizeof third, sizeof third, NULL, &third));
  assert_int_equal(third.number, 3);
  assert_ok(hipmm_buffer_resize(buffer, 7, NULL));
  assert_ok(hipmm_buffer_destroy(buffer));
}

static void is_gone_once_it_is_destroyed(void **state)
{
  struct hipmm_vector *none = NULL;
  struct element value;
  both_start(state, pool);
  struct hipmm_vector *gone = make(3, NULL);
  assert_ok(hipmm_vector_destroy(gone));
  assert_ok(hipmm_vector_destroy(NULL));
  struct hipmm_vector *const wrong[] = {NULL, gone};
  for (size_t i = 0; i < 2; i++) {
    enum hipmm_status status = i ? HIPMM_E_POINTER : HIPMM_E_ARGUMENT;
    assert_status(hipmm_vector_get(wrong[i], 0, NULL, &value), status);
    assert_status(hipmm_vector_front(wrong[i], NULL, &value), status);
    assert_status(hipmm_vector_back(wrong[i], NULL, &value), status);
    assert_status(hipmm_vector_resize(wrong[i], 1, NULL), status);
    assert_status(hipmm_vector_reserve(wrong[i], 1, NULL), status);
    assert_status(hipmm_vector_shrink_to_fit(wrong[i], NULL), status);
    assert_status(hipmm_vector_set_stream(wrong[i], NULL), status);
    assert_status(hipmm_vector_copy(wrong[i], NULL, NULL, &none), status);
    assert_null(hipmm_vector_data(wrong[i]));
    assert_int_equal(hipmm_vector_capacity(wrong[i]), 0);
    assert_int_equal(hipmm_vector_element_bytes(wrong[i]), 0);
    assert_int_equal(hipmm_vector_device(wrong[i]), -1);
  }
  assert_status(hipmm_vector_destroy(gone), HIPMM_E_POINTER);
  assert_message("not a vector, or already destroyed");
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
      BOTH(becomes_a_buffer),
      BOTH(is_gone_once_it_is_destroyed),
  };
  return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
