/* SPDX-License-Identifier: MIT */
/* opener.c: a program that opens a library when it runs, as Python does with an extension, for itself alone; the
 * library is linked to the GPU runtime. Calls the function `use` of it. */
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
