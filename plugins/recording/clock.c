/* SPDX-License-Identifier: MIT */
/* clock.c: see clock.h. */
#include "clock.h"

#include <stdio.h>
#include <string.h>

/* The kernel compares the counters of the processors, and takes another clock where they differ. A virtual machine's
 * clocks "kvm-clock" and "hyperv…" are the counter with a scale. */
bool clock_has_counter(void)
{
#if defined __x86_64__
  char name[64] = "";
  FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
  if (!file) return false;
  bool is_read = fgets(name, sizeof name, file) != NULL;
  fclose(file);
  return is_read && (!strncmp(name, "tsc", 3) || !strncmp(name, "kvm-clock", 9) || !strncmp(name, "hyperv", 6));
#else
  return true; /* where clock.h reads no counter, this is not asked again */
#endif
}

uint64_t clock_ticks_per_second(bool uses_counter)
{
  uint64_t start = monotonic_ns(), ticks = clock_ticks(uses_counter), now;
  do now = monotonic_ns();
  while (now - start < 1000000);
  return (uint64_t)((double)(clock_ticks(uses_counter) - ticks) * 1e9 / (double)(now - start));
}
