/* SPDX-License-Identifier: MIT */
/* peers_result.c: what each attempt of `peers` came to. */
#include "peers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { RESULTS = 512 };

static struct {
  char what[128], result[256];
} results[RESULTS];
static int count;

void peers_expect(const char *file, int line, const char *call, GPU(Error_t) code)
{
  if (code == GPU(Success)) return;
  peers_print();
  fprintf(stderr, "%s:%d: %s is %s\n", file, line, call, GPU(GetErrorName)(code));
  exit(1);
}

const char *peers_error(GPU(Error_t) code)
{
  if (code == GPU(Success)) return NULL;
  (void)GPU(GetLastError)();
  return GPU(GetErrorName)(code);
}

void peers_count(struct peers_tally *tally, const char *wrong, const char *format, ...)
{
  char what[96];
  va_list arguments;
  tally->tried++;
  if (!wrong || tally->failed++) return;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  snprintf(tally->first, sizeof tally->first, "%s: %s", what, wrong);
}

static void keep(const char *result, const char *format, va_list arguments)
{
  if (count == RESULTS) {
    fprintf(stderr, "peers_result.c: more than %d results\n", RESULTS);
    exit(1);
  }
  vsnprintf(results[count].what, sizeof results[count].what, format, arguments);
  snprintf(results[count].result, sizeof results[count].result, "%s", result);
  count++;
}

void peers_tell_text(const char *result, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  keep(result, format, arguments);
  va_end(arguments);
}

void peers_tell(const struct peers_tally *tally, const char *format, ...)
{
  char result[256] = "right";
  va_list arguments;
  if (!tally->tried)
    snprintf(result, sizeof result, "nothing was tried");
  else if (tally->failed)
    snprintf(result, sizeof result, "%d of %d failed, first %s", tally->failed, tally->tried, tally->first);
  va_start(arguments, format);
  keep(result, format, arguments);
  va_end(arguments);
}

void peers_print(void)
{
  printf("{");
  for (int i = 0; i < count; i++) printf("%s\"%s\": \"%s\"", i ? ", " : "", results[i].what, results[i].result);
  printf("}\n");
  fflush(stdout);
}
