/* SPDX-License-Identifier: MIT */
/* Tests of core/container/host_buffer.c and core/container/pinned_resource.c: memory that the host uses at its address,
 * over every source that gives such, and over none other. */
#include "../support/both_schedulers.h"

#include <string.h>

static const char pool[] = "'stack': ['pool', 'device']";

static void is_pinned_memory_unless_told_otherwise(void **state)
{
  struct hipmm_host_buffer *first = NULL, *second = NULL;
  both_start(state, pool);
  needs_devices(2);
  assert_ok(hipmm_host_buffer_create(NULL, 1000, NULL, &first));
  assert_ok(hipmm_device_set(1));
  assert_ok(hipmm_host_buffer_create(NULL, 1000, NULL, &second));
  assert_ok(hipmm_device_set(0));
  assert_string_equal(hipmm_resource_type(hipmm_host_buffer_resource(first)), "pinned");
  assert_int_equal(hipmm_host_buffer_device(first), 0);
  assert_int_equal(hipmm_host_buffer_device(second), 1);
  memset(hipmm_host_buffer_data(first), 1, 1000);
  assert_ok(hipmm_finalize()); /* the buffers keep what they need */
  memset(hipmm_host_buffer_data(second), 1, 1000);
  assert_ok(hipmm_host_buffer_resize(first, 2000, NULL));
  assert_ok(hipmm_host_buffer_destroy(first));
  assert_ok(hipmm_host_buffer_destroy(second));
  assert_int_equal(live_on_all_devices(), 0);
}

static void copies_to_the_device_and_back(void **state)
{
  enum { BYTES = 200000 };
  struct hipmm_host_buffer *out = NULL, *back = NULL;
  struct hipmm_buffer *buffer = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  assert_ok(hipmm_host_buffer_create(NULL, BYTES, stream, &out));
  both_write(hipmm_host_buffer_data(out), BYTES, 21);
  assert_ok(hipmm_buffer_create_from(NULL, hipmm_host_buffer_data(out), BYTES, stream, &buffer));
  assert_ok(hipmm_host_buffer_destroy(out)); /* behind the copy */
  assert_ok(hipmm_host_buffer_create_from(NULL, hipmm_buffer_data(buffer), BYTES, stream, &back));
  assert_int_equal(both_good(hipmm_host_buffer_data(back), BYTES, 21), BYTES); /* it has waited */
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_host_buffer_destroy(back));
  assert_ok(hipmm_stream_destroy(stream));
}

static void shows_its_contents_at_once_when_its_size_changes(void **state)
{
  struct hipmm_host_buffer *host = NULL;
  struct hipmm_buffer *buffer = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  assert_ok(hipmm_buffer_create(NULL, 5000, stream, &buffer));
  assert_ok(hipmm_buffer_fill(buffer, 0, 9, 5000, stream));
  assert_ok(hipmm_host_buffer_create(NULL, 5000, stream, &host));
  memset(hipmm_host_buffer_data(host), 0, 5000);
  assert_ok(hipmm_buffer_read_async(buffer, 0, 5000, stream, hipmm_host_buffer_data(host))); /* still to come */
  assert_ok(hipmm_host_buffer_resize(host, 50000, stream));
  const unsigned char *data = hipmm_host_buffer_data(host);
  for (size_t i = 0; i < 5000; i++) assert_int_equal(data[i], 9);
  assert_ok(hipmm_host_buffer_reserve(host, 60000, stream));
  assert_int_equal(hipmm_host_buffer_bytes(host), 50000);
  assert_int_equal(hipmm_host_buffer_capacity_bytes(host), 60000);
  assert_ok(hipmm_host_buffer_resize(host, 100, stream));
  assert_ok(hipmm_host_buffer_shrink_to_fit(host, stream));
  assert_int_equal(hipmm_host_buffer_capacity_bytes(host), 100);
  data = hipmm_host_buffer_data(host);
  for (size_t i = 0; i < 100; i++) assert_int_equal(data[i], 9);
  assert_ptr_equal(hipmm_host_buffer_stream(host), stream);
  assert_ok(hipmm_host_buffer_set_stream(host, NULL));
  assert_null(hipmm_host_buffer_stream(host));
  assert_ok(hipmm_host_buffer_destroy(host));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_stream_destroy(stream));
}

struct over {
  const char *stack;
  bool is_host;
};

static void takes_resources_whose_memory_the_host_can_use(void **state)
{
  static const struct over stacks[] = {
      {"'stack': ['pinned']", true},
      {"'stack': ['host']", true},
      {"'stack': ['managed']", true},
      {"'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'pinned']", true},
      {"'stack': ['device']", false},
      {"'stack': ['async']", false},
      {"'stack': ['statistics', 'pool', 'device']", false},
  };
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
    struct hipmm_host_buffer *buffer = NULL;
    struct hipmm_resource *resource;
    both_start(state, stacks[i].stack);
    assert_ok(hipmm_resource_get_current(&resource));
    enum hipmm_status status = hipmm_host_buffer_create_from(resource, "some text", 10, NULL, &buffer);
    if (stacks[i].is_host) {
      assert_status(status, HIPMM_OK);
      assert_string_equal(hipmm_host_buffer_data(buffer), "some text");
      assert_ptr_equal(hipmm_host_buffer_resource(buffer), resource);
      assert_ok(hipmm_host_buffer_destroy(buffer));
    } else {
      assert_status(status, HIPMM_E_ARGUMENT);
      assert_message("gives memory that the host cannot use");
      assert_null(buffer);
    }
    hipmm_resource_release(resource);
    assert_ok(hipmm_finalize());
  }
}

static void takes_a_resource_made_in_code(void **state)
{
  struct hipmm_host_buffer *buffer = NULL;
  struct hipmm_resource *resource = NULL;
  both_start(state, pool);
  assert_ok(hipmm_resource_create(0, "host", NULL, NULL, 0, &resource));
  assert_ok(hipmm_host_buffer_create_from(resource, "more text", 10, NULL, &buffer));
  hipmm_resource_release(resource);
  assert_string_equal(hipmm_host_buffer_data(buffer), "more text");
  assert_ok(hipmm_host_buffer_destroy(buffer));
}

static void minds_its_arguments(void **state)
{
  struct hipmm_host_buffer *none = NULL, *buffer = NULL;
  both_start(state, pool);
  assert_status(hipmm_host_buffer_create(NULL, 10, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_host_buffer_create_from(NULL, NULL, 10, NULL, &none), HIPMM_E_ARGUMENT);
  assert_status(hipmm_host_buffer_create(NULL, SIZE_MAX, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_host_buffer_create((struct hipmm_resource *)(void *)&none, 10, NULL, &none), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_host_buffer_create_from(NULL, NULL, 0, NULL, &buffer));
  assert_null(hipmm_host_buffer_data(buffer));
  assert_status(hipmm_host_buffer_resize(buffer, SIZE_MAX, NULL), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_host_buffer_destroy(buffer));
  assert_ok(hipmm_host_buffer_destroy(NULL));
  struct hipmm_host_buffer *const wrong[] = {NULL, buffer};
  for (size_t i = 0; i < 2; i++) {
    enum hipmm_status status = i ? HIPMM_E_POINTER : HIPMM_E_ARGUMENT;
    assert_status(hipmm_host_buffer_resize(wrong[i], 1, NULL), status);
    assert_status(hipmm_host_buffer_reserve(wrong[i], 1, NULL), status);
    assert_status(hipmm_host_buffer_shrink_to_fit(wrong[i], NULL), status);
    assert_status(hipmm_host_buffer_set_stream(wrong[i], NULL), status);
    assert_null(hipmm_host_buffer_data(wrong[i]));
    assert_int_equal(hipmm_host_buffer_bytes(wrong[i]) + hipmm_host_buffer_capacity_bytes(wrong[i]), 0);
    assert_int_equal(hipmm_host_buffer_device(wrong[i]), -1);
    assert_null(hipmm_host_buffer_resource(wrong[i]));
  }
  assert_status(hipmm_host_buffer_destroy(buffer), HIPMM_E_POINTER);
  assert_null(none);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(is_pinned_memory_unless_told_otherwise),
      BOTH(copies_to_the_device_and_back),
      BOTH(shows_its_contents_at_once_when_its_size_changes),
      BOTH(takes_resources_whose_memory_the_host_can_use),
      BOTH(takes_a_resource_made_in_code),
      BOTH(minds_its_arguments),
  };
  return cmocka_run_group_tests_name("host_buffer", tests, NULL, NULL);
}
