/* SPDX-License-Identifier: MIT */
/* scenario.c: see scenario.h. */
#include "scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int complaints;

void complain(const char *file, int line, const char *format, ...)
{
  va_list arguments;
  fprintf(stderr, "%s:%d: ", file, line);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  complaints++;
}

int scenario_main(const struct scenario *scenarios, size_t count, int argc, char **argv)
{
  for (size_t i = 0; argc > 1 && i < count; i++) {
    if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
    scenarios[i].run();
    if (!complaints) printf("good\n");
    return complaints ? 1 : 0;
  }
  fprintf(stderr, "what is \"%s\"?\n", argc > 1 ? argv[1] : "");
  return 3;
}
