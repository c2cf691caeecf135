/* SPDX-License-Identifier: MIT */
/* scenario.h: what the programs that know nothing of hipmm share: their first word names a scenario; they print "good"
 * if it found nothing to complain of. */
#ifndef HIPMM_TESTS_PRELOAD_SCENARIO_H
#define HIPMM_TESTS_PRELOAD_SCENARIO_H

#include <stddef.h>

struct scenario {
  const char *name;
  void (*run)(void);
};

/* Runs the scenario that argv[1] names. Returns the exit status. */
int scenario_main(const struct scenario *scenarios, size_t count, int argc, char **argv);

/* Writes a line on standard error; the scenario has failed. */
void complain(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define CHECK(condition) ((condition) ? (void)0 : complain(__FILE__, __LINE__, "%s", #condition))

#endif
