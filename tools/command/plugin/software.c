/* SPDX-License-Identifier: MIT */
/* software.c: see software.h. */
#include "software.h"
#include "../../../core/plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOFTWARE_DEVICES = 8 };

static void software_end(const char *reason)
{
  fprintf(stderr, "the software device cannot be used: %s\n", reason);
  exit(1);
}

static void software_find(void *library, const char *name, void *slot)
{
  void *address = dlsym(library, name);
  if (!address) software_end(dlerror());
  memcpy(slot, &address, sizeof address);
}

const struct software *software(void)
{
  static struct software functions;
  const struct plugin *plugin;
  if (functions.calls) return &functions;
  if (plugin_get(NULL, "software", &plugin)) software_end(hipmm_last_error_message());
  void *library = dlopen(plugin->file, RTLD_NOW | RTLD_LOCAL);
  if (!library) software_end(dlerror());
  software_find(library, "hipmm_software_call", &functions.call);
  software_find(library, "hipmm_software_reset_calls", &functions.reset_calls);
  software_find(library, "hipmm_software_fail", &functions.schedule);
  software_find(library, "hipmm_software_fail_none", &functions.fail_none);
  software_find(library, "hipmm_software_reset", &functions.reset);
  software_find(library, "hipmm_software_live", &functions.live);
  software_find(library, "hipmm_software_faults", &functions.faults);
  software_find(library, "hipmm_software_pending", &functions.pending);
  software_find(library, "hipmm_software_step", &functions.step);
  software_find(library, "hipmm_software_race", &functions.race);
  software_find(library, "hipmm_software_choose", &functions.choose);
  software_find(library, "hipmm_software_calls", &functions.calls);
  return &functions;
}

uint64_t software_live(void)
{
  uint64_t sum = 0, count;
  for (int device = 0; device < SOFTWARE_DEVICES; device++)
    if (software()->live(device, &count, NULL)) sum += count;
  return sum;
}

uint64_t software_faults(void)
{
  uint64_t sum = 0;
  for (int device = 0; device < SOFTWARE_DEVICES; device++)
    if (software()->live(device, NULL, NULL)) sum += software()->faults(device);
  return sum;
}
