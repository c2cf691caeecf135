/* SPDX-License-Identifier: MIT */
/* host_memory.c: see host_memory.h. A control group is limited by each of its ancestors. Pages of files count as used in a
 * group, and the kernel drops them before it ends a process. */
#include "host_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char groups[] = "/sys/fs/cgroup";

/* The number behind `key` in a file of lines "KEY NUMBER", or the number alone for the key "". */
static bool host_memory_read(const char *path, const char *key, uint64_t *value_out)
{
  char line[256];
  size_t length = strlen(key);
  bool is_found = false;
  FILE *file = fopen(path, "re");
  if (!file) return false;
  while (!is_found && fgets(line, sizeof line, file))
    is_found = !strncmp(line, key, length) && sscanf(line + length, "%" SCNu64, value_out) == 1;
  fclose(file);
  return is_found;
}

static bool host_memory_read_group(const char *group, const char *name, const char *key, uint64_t *value_out)
{
  char path[4096];
  int length = snprintf(path, sizeof path, "%s%s/%s", groups, group, name);
  return length < (int)sizeof path && host_memory_read(path, key, value_out);
}

/* UINT64_MAX: the group has no limit. */
static uint64_t host_memory_left_in(const char *group)
{
  uint64_t limit, used, file_pages = 0;
  if (!host_memory_read_group(group, "memory.max", "", &limit) || /* the word "max" is no number */
      !host_memory_read_group(group, "memory.current", "", &used))
    return UINT64_MAX;
  host_memory_read_group(group, "memory.stat", "inactive_file ", &file_pages);
  used -= file_pages < used ? file_pages : used;
  return used < limit ? limit - used : 0;
}

/* The path of the process's group, "" for the root. */
static void host_memory_find_group(char *group, size_t size)
{
  char line[4096];
  FILE *file = fopen("/proc/self/cgroup", "re");
  *group = '\0';
  if (!file) return;
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, "0::/", 4)) snprintf(group, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
  fclose(file);
}

uint64_t host_memory_available(void)
{
  char group[4096];
  uint64_t least = UINT64_MAX, kib;
  if (host_memory_read("/proc/meminfo", "MemAvailable:", &kib)) least = kib * 1024;
  host_memory_find_group(group, sizeof group);
  for (char *end = group; end;) {
    uint64_t left = host_memory_left_in(group);
    if (left < least) least = left;
    end = strrchr(group, '/');
    if (end) *end = '\0';
  }
  return least;
}
