/* SPDX-License-Identifier: MIT */
/* Tests of core/base/host_memory.c, on folders with the files of a kernel: both versions of control groups, alone and side by
 * side, and as a container sees them. */
#include "../../core/base/host_memory.h"
#include "../support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *root;

static int open_root(void **state)
{
  (void)state;
  root = new_folder();
  return 0;
}

static int close_root(void **state)
{
  (void)state;
  remove_folder(root);
  return 0;
}

/* Writes a file below the root, and makes its folders. */
static void put(const char *name, const char *text)
{
  char *path = path_in(root, name);
  for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
  assert_true(write_file(path, text, strlen(text)));
  free(path);
}

static void put_group_1(const char *group, const char *limit, const char *used, const char *stat)
{
  char name[200];
  snprintf(name, sizeof name, "sys/fs/cgroup/memory%s/memory.limit_in_bytes", group);
  put(name, limit);
  snprintf(name, sizeof name, "sys/fs/cgroup/memory%s/memory.usage_in_bytes", group);
  put(name, used);
  snprintf(name, sizeof name, "sys/fs/cgroup/memory%s/memory.stat", group);
  put(name, stat);
}

static void put_group_2(const char *group, const char *limit, const char *used, const char *stat)
{
  char name[200];
  snprintf(name, sizeof name, "sys/fs/cgroup%s/memory.max", group);
  put(name, limit);
  snprintf(name, sizeof name, "sys/fs/cgroup%s/memory.current", group);
  put(name, used);
  snprintf(name, sizeof name, "sys/fs/cgroup%s/memory.stat", group);
  put(name, stat);
}

#define UNLIMITED "9223372036854771712\n" /* in version 1 */

static void knows_nothing_without_files(void **state)
{
  (void)state;
  assert_true(host_memory_available(root) == UINT64_MAX);
}

static void asks_the_machine(void **state)
{
  (void)state;
  put("proc/meminfo", "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    9000 kB\n");
  assert_int_equal(host_memory_available(root), 9000 * 1024);
  put("proc/self/cgroup", "0::/\n");
  put_group_2("/other", "5\n", "5\n", "");
  assert_int_equal(host_memory_available(root), 9000 * 1024);
}

static void asks_groups_of_version_2(void **state)
{
  (void)state;
  put("proc/meminfo", "MemAvailable:    9000 kB\n");
  put("proc/self/cgroup", "0::/outer/inner\n");
  put_group_2("/outer/inner", "max\n", "70000\n", "anon 5\ninactive_file 1\n");
  assert_int_equal(host_memory_available(root), 9000 * 1024);
  put_group_2("/outer", "100000\n", "70000\n", "anon 5\ninactive_file 20000\n");
  assert_int_equal(host_memory_available(root), 50000);
  put_group_2("/outer/inner", "80000\n", "70000\n", "anon 5\ninactive_file 1000\n");
  assert_int_equal(host_memory_available(root), 11000);
  put_group_2("/outer", "100000\n", "130000\n", "anon 5\ninactive_file 20000\n");
  assert_int_equal(host_memory_available(root), 0);
}

static void asks_groups_of_version_1(void **state)
{
  (void)state;
  put("proc/meminfo", "MemAvailable:    9000 kB\n");
  put("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/outer/inner\n1:cpu:/\n0::/\n");
  put_group_1("", UNLIMITED, "800000\n", "cache 1\nhierarchical_memory_limit " UNLIMITED);
  put_group_1("/outer", UNLIMITED, "70000\n", "inactive_file 7\ntotal_inactive_file 20000\n");
  put_group_1("/outer/inner", UNLIMITED, "60000\n", "total_inactive_file 1000\n");
  assert_int_equal(host_memory_available(root), 9000 * 1024);
  put_group_1("/outer", "100000\n", "70000\n", "inactive_file 7\ntotal_inactive_file 20000\n");
  assert_int_equal(host_memory_available(root), 50000);
  put_group_1("/outer/inner", "80000\n", "60000\n", "inactive_file 7\ntotal_inactive_file 1000\n");
  assert_int_equal(host_memory_available(root), 21000);
}

/* The group is mounted as the root. Its ancestors, of which one has a limit, are not to be seen. */
static void asks_the_group_that_a_container_sees(void **state)
{
  (void)state;
  put("proc/meminfo", "MemAvailable:    9000 kB\n");
  put("proc/self/cgroup", "4:cpu,memory:/docker/0123abcd\n0::/\n");
  put_group_1("", "100000\n", "60000\n", "total_inactive_file 1000\nhierarchical_memory_limit " UNLIMITED);
  assert_int_equal(host_memory_available(root), 41000);
  put_group_1("", UNLIMITED, "60000\n", "total_inactive_file 1000\nhierarchical_memory_limit 90000\n");
  assert_int_equal(host_memory_available(root), 31000);
}

/* As while an installation moves from one to the other: the controller is in one of the two. */
static void asks_both_versions(void **state)
{
  (void)state;
  put("proc/meminfo", "MemAvailable:    9000 kB\n");
  put("proc/self/cgroup", "4:memory:/one\n0::/two\n");
  put_group_1("/one", "100000\n", "60000\n", "");
  put_group_2("/two", "100000\n", "70000\n", "");
  assert_int_equal(host_memory_available(root), 30000);
  put_group_2("/two", "max\n", "70000\n", "");
  assert_int_equal(host_memory_available(root), 40000);
}

static void ignores_what_no_kernel_writes(void **state)
{
  (void)state;
  put("proc/meminfo", "MemAvailable:\nMemAvailable:  many kB\n");
  put("proc/self/cgroup", "\n4\n4:memory\n:memory:one\n:::\n0::\n");
  put_group_1("/one", "5\n", "4\n", "");
  put_group_1("", "\n", "", "hierarchical_memory_limit\n");
  assert_true(host_memory_available(root) == UINT64_MAX);
}

static void reads_the_limits_of_mappings(void **state)
{
  (void)state;
  struct host_limits limits;
  host_limits_read(root, &limits);
  assert_int_equal(limits.mappings, 0);
  assert_true(limits.most_mappings == UINT64_MAX);
  put("proc/sys/vm/max_map_count", "65530\n");
  put("proc/self/maps", "1000-2000 rw-p a\n2000-3000 r--p b\n3000-4000 rw-p c\n");
  host_limits_read(root, &limits);
  assert_int_equal(limits.mappings, 3);
  assert_int_equal(limits.most_mappings, 65530);
}

/* Of this machine. */
static void has_something(void **state)
{
  (void)state;
  struct host_limits limits;
  if (access("/proc/self/maps", R_OK)) skip();
  assert_in_range(host_memory_available(""), 1, UINT64_MAX - 1);
  host_limits_read("", &limits);
  assert_in_range(limits.mappings, 5, limits.most_mappings);
}

#define ROOT(name) cmocka_unit_test_setup_teardown(name, open_root, close_root)

int main(void)
{
  const struct CMUnitTest tests[] = {
      ROOT(knows_nothing_without_files),
      ROOT(asks_the_machine),
      ROOT(asks_groups_of_version_2),
      ROOT(asks_groups_of_version_1),
      ROOT(asks_the_group_that_a_container_sees),
      ROOT(asks_both_versions),
      ROOT(ignores_what_no_kernel_writes),
      ROOT(reads_the_limits_of_mappings),
      cmocka_unit_test(has_something),
  };
  return cmocka_run_group_tests_name("host memory", tests, NULL, NULL);
}
