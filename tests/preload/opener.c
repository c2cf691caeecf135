/* SPDX-License-Identifier: MIT */
/* opener.c: a program that opens a library with RTLD_LOCAL, as Python does with an extension, and calls its function
 * `use`. The library is linked to the GPU runtime. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*use)(void) = NULL;
  if (library) *(void **)&use = dlsym(library, "use");
  int bad = use ? use() : 1;
  if (!use) fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no library is named");
  if (!bad) printf("good\n");
  return bad;
}
