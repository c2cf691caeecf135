/* SPDX-License-Identifier: MIT */
/* program.c: a HIP program that knows nothing of hipmm, for `hipmm run` to run. Its first word says what it does; it
 * prints "good" if all was as a HIP program may expect. It checks values, and lets the scripts check what is reported. */
#include "program.h"

#include <string.h>

struct scenario {
  const char *name;
  void (*run)(void);
};

static const struct scenario scenarios[] = {
    {"nothing", scenario_nothing},       {"memory", scenario_memory},     {"arguments", scenario_arguments},
    {"reuse", scenario_reuse},           {"ordered", scenario_ordered},   {"streams", scenario_streams},
    {"shortage", scenario_shortage},     {"wrong", scenario_wrong},       {"info", scenario_info},
    {"ranges", scenario_ranges},         {"host", scenario_host},         {"kinds", scenario_kinds},
    {"share", scenario_share},           {"pools", scenario_pools},       {"reset", scenario_reset},
    {"devices", scenario_devices},       {"threads", scenario_threads},   {"fork", scenario_fork},
    {"early_fork", scenario_early_fork}, {"leak", scenario_leak},         {"first", scenario_first},
    {"unready", scenario_unready},       {"deferred", scenario_deferred}, {"nested", scenario_nested},
};

static int complaints;

void complain(const char *file, int line, const char *what)
{
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
  complaints++;
}

void check_code(const char *file, int line, const char *call, hipError_t code, hipError_t wanted)
{
  if (code == wanted) return;
  fprintf(stderr, "%s:%d: %s is %d (%s) and not %d\n", file, line, call, (int)code, hipGetErrorName(code), (int)wanted);
  complaints++;
}

bool all_are(const unsigned char *bytes, size_t count, int value)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != (unsigned char)value) return false;
  return true;
}

int main(int argc, char **argv)
{
  for (size_t i = 0; argc > 1 && i < sizeof scenarios / sizeof *scenarios; i++) {
    if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
    scenarios[i].run();
    if (!complaints) printf("good\n");
    return complaints ? 1 : 0;
  }
  fprintf(stderr, "what is \"%s\"?\n", argc > 1 ? argv[1] : "");
  return 3;
}
