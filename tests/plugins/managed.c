/* SPDX-License-Identifier: MIT */
/* managed.c: see managed.h. */
#include "managed.h"

#include <dlfcn.h>

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
