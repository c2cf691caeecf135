/* SPDX-License-Identifier: MIT */
/* old_driver.c: a library that calls itself NVIDIA's driver, and lacks two functions that hipmm cannot do without. For
 * checks of what is said then; nothing in it is ever called. */
#include <string.h>

__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char *name, void **address, int version,
                                                               unsigned long long flags, int *status);

static int never_called(void)
{
  return 999;
}

int cuGetProcAddress_v2(const char *name, void **address, int version, unsigned long long flags, int *status)
{
  (void)version, (void)flags, (void)status;
  int (*function)(void) = never_called;
  if (!strcmp(name, "cuMemAlloc") || !strcmp(name, "cuEventRecord")) return 500;
  memcpy(address, &function, sizeof function);
  return 0;
}
