/* SPDX-License-Identifier: MIT */
/* Tests of what doc/abi.md promises and a program can see: versions, and structs of another release, whose size differs.
 * layout.c has the layout of the structs. */
#include "../support/support.h"

#include <hipmm/buffer.h>

#include <stdio.h>
#include <string.h>

static const char graph[] = "{\"runtime\": \"software\", \"stack\": [\"device\"]}";

static int finish(void **state)
{
  (void)state;
  hipmm_finalize();
  return live_on_all_devices() ? -1 : 0;
}

static void headers_and_library_are_of_one_version(void **state)
{
  (void)state;
  char version[40];
  snprintf(version, sizeof version, "%d.%d.%d", HIPMM_VERSION_MAJOR, HIPMM_VERSION_MINOR, HIPMM_VERSION_PATCH);
  assert_string_equal(hipmm_version(), version);
  assert_int_equal(hipmm_version_number(), HIPMM_VERSION);
  assert_int_equal(HIPMM_VERSION, HIPMM_VERSION_MAJOR * 10000 + HIPMM_VERSION_MINOR * 100 + HIPMM_VERSION_PATCH);
}

/* A program of an older release has a shorter struct, a program of a newer one a longer struct. */
static void an_error_record_may_have_any_size(void **state)
{
  (void)state;
  struct {
    struct hipmm_error error;
    char more[64];
  } record;
  assert_status(hipmm_init_from_string("{"), HIPMM_E_SYNTAX);
  memset(&record, 7, sizeof record);
  record.error.struct_size = offsetof(struct hipmm_error, line);
  hipmm_last_error(&record.error);
  assert_int_equal(record.error.status, HIPMM_E_SYNTAX);
  assert_int_equal(record.error.line, 0x07070707);
  memset(&record, 7, sizeof record);
  record.error.struct_size = sizeof record;
  hipmm_last_error(&record.error);
  assert_int_equal(record.error.line, 1);
  assert_string_equal(record.error.message, hipmm_last_error_message());
  assert_int_equal(record.error.struct_size, sizeof record.error); /* what was written */
}

static enum hipmm_status allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)arg, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return HIPMM_E_OUT_OF_MEMORY;
}

static void deallocate(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)arg, (void)ptr, (void)bytes, (void)alignment, (void)stream;
}

static int handle(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static void structs_may_be_longer(void **state)
{
  (void)state;
  static char memory[16];
  struct {
    struct hipmm_recipe recipe;
    char more[64];
  } recipe = {.recipe = {.struct_size = sizeof recipe, .type = "device"}};
  struct {
    struct hipmm_memory memory;
    char more[64];
  } owned = {.memory = {.struct_size = sizeof owned}};
  const struct {
    struct hipmm_allocator allocator;
    char more[64];
  } allocator = {.allocator = {.struct_size = sizeof allocator, .allocate = allocate, .deallocate = deallocate}};
  const struct {
    struct hipmm_failure_handler handler;
    char more[64];
  } handler = {.handler = {.struct_size = sizeof handler, .callback = handle}};
  const struct {
    struct hipmm_region region;
    char more[64];
  } region = {.region = {.struct_size = sizeof region, .ptr = memory, .bytes = sizeof memory}};
  struct hipmm_resource *made = NULL;
  struct hipmm_buffer *buffer = NULL;
  assert_ok(hipmm_init_from_string(graph));
  assert_ok(hipmm_resource_create_from(0, &recipe.recipe, &made));
  assert_ok(hipmm_buffer_create(made, 100, NULL, &buffer));
  assert_ok(hipmm_buffer_release(buffer, &owned.memory));
  assert_int_equal(owned.memory.capacity_bytes, 100);
  assert_int_equal(owned.memory.struct_size, sizeof owned);
  assert_ok(hipmm_buffer_adopt(&owned.memory, &buffer));
  assert_ok(hipmm_buffer_destroy(buffer));
  hipmm_resource_release(made);
  assert_ok(hipmm_allocator_register("longer", &allocator.allocator));
  assert_ok(hipmm_failure_handler_register("longer", &handler.handler));
  assert_ok(hipmm_region_register("longer", &region.region));
  assert_ok(hipmm_allocator_register("longer", NULL));
  assert_ok(hipmm_failure_handler_register("longer", NULL));
  assert_ok(hipmm_region_register("longer", NULL));
}

/* No member may be missing of what the first release had. */
static void structs_may_not_be_shorter(void **state)
{
  (void)state;
  struct hipmm_recipe recipe = {.struct_size = offsetof(struct hipmm_recipe, n_named_resources) + sizeof(size_t) - 1,
                                .type = "device"};
  struct hipmm_memory memory = {.struct_size = sizeof memory - 1};
  struct hipmm_allocator allocator = {.struct_size = 0, .allocate = allocate, .deallocate = deallocate};
  struct hipmm_resource *made = NULL;
  struct hipmm_buffer *buffer = NULL;
  assert_ok(hipmm_init_from_string(graph));
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("struct_size of the recipe is 79; set it to sizeof(struct hipmm_recipe)");
  assert_status(hipmm_buffer_adopt(&memory, &buffer), HIPMM_E_ARGUMENT);
  assert_message("struct_size is 47; set it to sizeof(struct hipmm_memory)");
  assert_status(hipmm_allocator_register("shorter", &allocator), HIPMM_E_ARGUMENT);
  assert_message("struct_size");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(headers_and_library_are_of_one_version),
      cmocka_unit_test(an_error_record_may_have_any_size),
      cmocka_unit_test_teardown(structs_may_be_longer, finish),
      cmocka_unit_test_teardown(structs_may_not_be_shorter, finish),
  };
  return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}
