/* SPDX-License-Identifier: MIT */
/* host_memory.c: see host_memory.h. A control group is limited by each of its ancestors. In a container the path of the group
 * may be that of the host, while the container's own group is mounted as the root: the walk over the ancestors ends there.
 * Pages of files count as used in a group, and the kernel drops them before it ends a process. */
#include "host_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The files of the controller of memory. */
struct host_memory_version {
  const char *folder; /* where it is mounted */
  const char *limit, *used;
  const char *file_pages; /* a key in the file memory.stat of a group: with its descendants */
};

static const struct host_memory_version version_1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                                     "memory.usage_in_bytes", "total_inactive_file "},
                                        version_2 = {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

struct host_memory_group {
  const char *root;
  const struct host_memory_version *version;
  char path[4096]; /* "" for the root of the groups */
};

/* ---- Files ---- */

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

static bool host_memory_read_group(const struct host_memory_group *group, const char *name, const char *key,
                                   uint64_t *value_out)
{
  char path[2 * sizeof group->path];
  int length = snprintf(path, sizeof path, "%s/%s%s/%s", group->root, group->version->folder, group->path, name);
  return length < (int)sizeof path && host_memory_read(path, key, value_out);
}

/* Of version 2 the line is "0::PATH", and of version 1 "NUMBER:CONTROLLERS:PATH" with a list of controllers. */
static bool host_memory_is_line_of(const struct host_memory_version *version, char *controllers)
{
  if (version == &version_2) return !*controllers;
  for (char *rest = NULL, *name = strtok_r(controllers, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
    if (!strcmp(name, "memory")) return true;
  return false;
}

/* The path of the process's group: the root where the kernel tells of none. */
static void host_memory_find_group(struct host_memory_group *group)
{
  char line[sizeof group->path], path[sizeof group->path];
  snprintf(path, sizeof path, "%s/proc/self/cgroup", group->root);
  FILE *file = fopen(path, "re");
  group->path[0] = '\0';
  if (!file) return;
  while (fgets(line, sizeof line, file)) {
    char *controllers = strchr(line, ':'), *start = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!start) continue;
    *start++ = '\0';
    start[strcspn(start, "\n")] = '\0';
    if (host_memory_is_line_of(group->version, controllers + 1) && *start == '/')
      snprintf(group->path, sizeof group->path, "%s", strcmp(start, "/") ? start : "");
  }
  fclose(file);
}

/* ---- What is left ---- */

/* UINT64_MAX: the group has no limit. In version 1 memory.stat also has the least limit of the ancestors, of which a container
 * may not see all. */
static uint64_t host_memory_left_in(const struct host_memory_group *group)
{
  uint64_t limit = UINT64_MAX, ancestors = UINT64_MAX, used, file_pages = 0;
  host_memory_read_group(group, group->version->limit, "", &limit); /* the word "max" is no number */
  host_memory_read_group(group, "memory.stat", "hierarchical_memory_limit ", &ancestors);
  if (ancestors < limit) limit = ancestors;
  if (limit == UINT64_MAX || !host_memory_read_group(group, group->version->used, "", &used)) return UINT64_MAX;
  host_memory_read_group(group, "memory.stat", group->version->file_pages, &file_pages);
  used -= file_pages < used ? file_pages : used;
  return used < limit ? limit - used : 0;
}

static uint64_t host_memory_left_by(const char *root, const struct host_memory_version *version)
{
  struct host_memory_group group = {.root = root, .version = version};
  uint64_t least = UINT64_MAX;
  host_memory_find_group(&group);
  for (char *end = group.path; end;) {
    uint64_t left = host_memory_left_in(&group);
    if (left < least) least = left;
    end = strrchr(group.path, '/');
    if (end) *end = '\0';
  }
  return least;
}

uint64_t host_memory_available(const char *root)
{
  char path[4096];
  uint64_t least = UINT64_MAX, kib, left;
  snprintf(path, sizeof path, "%s/proc/meminfo", root);
  if (host_memory_read(path, "MemAvailable:", &kib)) least = kib * 1024;
  left = host_memory_left_by(root, &version_1);
  if (left < least) least = left;
  left = host_memory_left_by(root, &version_2);
  return left < least ? left : least;
}

/* ---- Limits of mappings ---- */

/* The file has a line for each mapping. */
static uint64_t host_limits_count_mappings(const char *root)
{
  char path[4096], text[4096];
  uint64_t n = 0;
  size_t length;
  snprintf(path, sizeof path, "%s/proc/self/maps", root);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  while ((length = fread(text, 1, sizeof text, file)))
    for (size_t i = 0; i < length; i++) n += text[i] == '\n';
  fclose(file);
  return n;
}

void host_limits_read(const char *root, struct host_limits *limits_out)
{
  char path[4096];
  struct rlimit addresses, file;
  uint64_t pages;
  *limits_out = (struct host_limits){host_limits_count_mappings(root), UINT64_MAX, UINT64_MAX, UINT64_MAX};
  if (!getrlimit(RLIMIT_FSIZE, &file) && file.rlim_cur != RLIM_INFINITY) limits_out->file_bytes = file.rlim_cur;
  snprintf(path, sizeof path, "%s/proc/sys/vm/max_map_count", root);
  host_memory_read(path, "", &limits_out->most_mappings);
  if (limits_out->mappings > limits_out->most_mappings)
    limits_out->mappings = limits_out->most_mappings; /* the kernel's own */
  snprintf(path, sizeof path, "%s/proc/self/statm", root);
  if (getrlimit(RLIMIT_AS, &addresses) || addresses.rlim_cur == RLIM_INFINITY || !host_memory_read(path, "", &pages))
    return;
  uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
  limits_out->addresses_left = used < addresses.rlim_cur ? addresses.rlim_cur - used : 0;
}
