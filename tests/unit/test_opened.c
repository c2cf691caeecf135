/* SPDX-License-Identifier: MIT */
/* Test of libhipmm.so in a program that is not linked to it and opens it when it runs, for itself alone, as Python does
 * with what it imports: there is room for what the library and its plugins need, and they find each other. */
#include <hipmm/hipmm.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void *library;

static void *find(const char *name)
{
  void *function = dlsym(library, name);
  if (!function) fail_msg("%s", dlerror());
  return function;
}

#define FIND(name) __typeof__(&(name)) open_##name = (__typeof__(&(name)))find(#name)

/* Of these types each has thread-local storage of its own. */
static const char graph[] =
    "{\"runtime\": \"software\", \"stack\": [\"statistics\", {\"type\": \"limiting\", \"limit\": \"64MiB\"},"
    " \"thread_safe\", {\"type\": \"binning\", \"bins\": [{\"size\": \"1MiB\"}]}, \"pool\", \"device\"]}";

static void allocates_through_a_whole_stack(void **state)
{
  (void)state;
  FIND(hipmm_init_from_string);
  FIND(hipmm_last_error_message);
  FIND(hipmm_allocate);
  FIND(hipmm_deallocate);
  FIND(hipmm_finalize);

  if (open_hipmm_init_from_string(graph)) fail_msg("%s", open_hipmm_last_error_message());
  char *block, *other;
  if (open_hipmm_allocate(NULL, 5000, NULL, (void **)&block)) fail_msg("%s", open_hipmm_last_error_message());
  if (open_hipmm_allocate(NULL, 1 << 20, NULL, (void **)&other)) fail_msg("%s", open_hipmm_last_error_message());
  assert_true(other >= block + 5000 || block >= other + (1 << 20));

  assert_int_equal(open_hipmm_deallocate(NULL, block + 256, 5000, NULL), HIPMM_E_POINTER);
  assert_string_not_equal(open_hipmm_last_error_message(), "");
  assert_int_equal(open_hipmm_deallocate(NULL, block, 5000, NULL), HIPMM_OK);
  assert_int_equal(open_hipmm_deallocate(NULL, other, 1 << 20, NULL), HIPMM_OK);
  assert_int_equal(open_hipmm_finalize(), HIPMM_OK);
}

int main(void)
{
  const char *folder = getenv("top_builddir");
  char file[4096];
  snprintf(file, sizeof file, "%s/.libs/libhipmm.so", folder ? folder : ".");
  if (access(file, F_OK)) {
    printf("1..0 # SKIP no shared library was built\n");
    return 0;
  }
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("1..1\nnot ok 1 - opens the library: %s\n", dlerror());
    return 1;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(allocates_through_a_whole_stack)};
  return cmocka_run_group_tests_name("opened", tests, NULL, NULL);
}
