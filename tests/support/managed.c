/* SPDX-License-Identifier: MIT */
/* managed.c: see managed.h. */
#include "managed.h"

#include <dlfcn.h>
#include <stdio.h>

void managed_ask_all(const void *ptr, int attribute, int *values_out, size_t n_values)
{
  software(); /* has it loaded */
  void *library = dlopen(plugin_file("software"), RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  int (*get)(void *, size_t, int, const void *, size_t) =
      (int (*)(void *, size_t, int, const void *, size_t))(uintptr_t)dlsym(library, "hipMemRangeGetAttribute");
  assert_non_null(get);
  assert_int_equal(get(values_out, n_values * sizeof *values_out, attribute, ptr, 1), 0);
  dlclose(library);
}

int managed_ask(const void *ptr, int attribute)
{
  int value = 0;
  managed_ask_all(ptr, attribute, &value, 1);
  return value;
}

/* ---- What adaptors share ---- */

static void start(const char *runtime_options, const struct managed_adaptor *adaptor, const char *upstream)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [%s, %s]", adaptor->entry, upstream);
  software()->reset();
  fixture_start_with(runtime_options, graph);
}

void managed_means_the_device_of_the_resource(const struct managed_adaptor *adaptor)
{
  struct hipmm_resource *resource;
  void *ptr = NULL;
  int current = -1;
  needs_software();
  start("", adaptor, "'managed'");
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  assert_ok(hipmm_allocate(resource, 5000, NULL, &ptr));
  assert_int_equal(managed_ask(ptr, adaptor->attribute), 1);
  assert_int_equal(fixture_hip()->GetDevice(&current), 0);
  assert_int_equal(current, 0);
  assert_ok(hipmm_deallocate(resource, ptr, 5000, NULL));
  hipmm_resource_release(resource);
}

struct other_case {
  const char *runtime_options, *upstream;
  int is_on, ignored; /* of one allocation */
};

static const struct other_case others[] = {
    {"", "'device'", 1, 1},
    {"", "'pinned'", 1, 1},
    {"", "'pool', 'device'", 1, 1},
    {"", "'pool', 'managed'", 1, 0},
    {"'managed_memory': false", "'device'", 0, 0},
};

void managed_leaves_other_memory_alone(const struct managed_adaptor *adaptor)
{
  needs_software();
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    start(others[i].runtime_options, adaptor, others[i].upstream);
    void *ptr = fixture_allocate(3000, NULL);
    assert_int_equal(fixture_value(adaptor->type, "is_on"), others[i].is_on);
    assert_int_equal(fixture_value(adaptor->type, "ignored_count"), others[i].ignored);
    assert_int_equal(fixture_value(adaptor->type, adaptor->counter), others[i].is_on - others[i].ignored);
    assert_int_equal(software()->calls(adaptor->function), others[i].is_on);
    assert_int_equal(fixture_hip()->GetLastError(), 0); /* the refusal is not left for the application to find */
    fixture_free(ptr, 3000, NULL);
    assert_ok(hipmm_finalize());
  }
}

void managed_passes_failures_of_the_upstream_on(const struct managed_adaptor *adaptor)
{
  void *ptr = NULL;
  needs_software();
  start("", adaptor, "'statistics', 'managed'");
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1000, 4096, NULL, &ptr), HIPMM_E_ARGUMENT);
  fixture_fail_call("hipMallocManaged", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_null(ptr);
  assert_int_equal(software()->calls(adaptor->function), 0);
  assert_int_equal(fixture_value("statistics", "current_count"), 0); /* nothing was freed either */
}

void managed_allocate_and_free(int *failures)
{
  for (size_t i = 0; i < MANAGED_ROUNDS; i++) {
    void *ptr = NULL;
    *failures += hipmm_allocate(NULL, 1000 + i, NULL, &ptr) != HIPMM_OK;
    *failures += hipmm_deallocate(NULL, ptr, i % 2 ? 1000 + i : 0, NULL) != HIPMM_OK;
  }
}

void managed_allocate_and_free_whatever_fails(void)
{
  for (int i = 0; i < 3; i++) {
    void *ptr = NULL;
    if (hipmm_allocate(NULL, 5000, NULL, &ptr)) continue;
    if (hipmm_deallocate(NULL, ptr, 5000, NULL) && hipmm_deallocate(NULL, ptr, 0, NULL))
      print_error("a free failed twice\n");
  }
}
