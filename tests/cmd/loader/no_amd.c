/* SPDX-License-Identifier: MIT */
/* no_amd.c: for LD_PRELOAD: there is no libamdhip64 on this machine, whatever is installed. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlopen(const char *file, int mode)
{
  void *(*real)(const char *, int);
  void *found = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&real, &found, sizeof real);
  return real(file && strncmp(file, "libamdhip64.so", 14) == 0 ? "libamdhip64.so.missing" : file, mode);
}
