/* SPDX-License-Identifier: MIT */
/* numa_node.c: nodes as the kernel describes them in /sys. The C library has no function for mbind(), and libnuma would be one
 * more library to install. */
#include "numa_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER "/sys/devices/system/node/"

/* hipDeviceAttributeHostNumaId, of HIP 7.2; of linux/mempolicy.h. */
enum { ATTRIBUTE_HOST_NUMA_ID = 92, MODE_PREFERRED = 1, MOST_NODES = 1024, PROBE_BYTES = 1 << 16 };

/* ---- The kernel's lists: "0-3,8" ---- */

static void numa_node_read(const char *path, char *text, int bytes)
{
  FILE *file = fopen(path, "re");
  if (!file || !fgets(text, bytes, file)) *text = '\0';
  text[strcspn(text, "\n")] = '\0';
  if (file) fclose(file);
}

/* The next range of the list; false at its end. */
static bool numa_node_next_range(const char **list, long *first_out, long *last_out)
{
  char *end;
  *first_out = *last_out = strtol(*list, &end, 10);
  if (end == *list) return false;
  if (*end == '-') *last_out = strtol(end + 1, &end, 10);
  *list = *end == ',' ? end + 1 : end;
  return true;
}

static bool numa_node_is_in(const char *list, long node)
{
  long first, last;
  while (numa_node_next_range(&list, &first, &last))
    if (node >= first && node <= last) return true;
  return false;
}

/* A kernel without nodes has one. */
static void numa_node_read_all(char *list, int bytes)
{
  numa_node_read(FOLDER "has_memory", list, bytes);
  if (!*list) snprintf(list, (size_t)bytes, "0");
}

bool numa_node_processors(int node, cpu_set_t *processors_out)
{
  char path[80], list[4096];
  const char *at = list;
  long first, last;
  cpu_set_t allowed, near;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return false;
  CPU_ZERO(&near);
  snprintf(path, sizeof path, FOLDER "node%d/cpulist", node);
  numa_node_read(path, list, sizeof list);
  while (numa_node_next_range(&at, &first, &last))
    for (; first >= 0 && first <= last && first < CPU_SETSIZE; first++) CPU_SET((size_t)first, &near);
  CPU_AND(&near, &near, &allowed);
  *processors_out = CPU_COUNT(&near) ? near : allowed;
  return true;
}

/* ---- Placing ---- */

int numa_node_place(void *ptr, size_t bytes, int node)
{
  unsigned long mask[MOST_NODES / (8 * sizeof(unsigned long))] = {0};
  size_t word = (size_t)node / (8 * sizeof *mask), bit = (size_t)node % (8 * sizeof *mask);
  mask[word] = 1ul << bit;
  return syscall(SYS_mbind, ptr, bytes, MODE_PREFERRED, mask, MOST_NODES + 1, 0) ? errno : 0;
}

/* Containers often forbid the call. Then the node is that of the processors that write first, which is the kernel's rule. */
enum hipmm_status numa_node_try(const struct hipmm_services *services, bool is_given, int *node_inout)
{
  int node = *node_inout;
  void *probe = mmap(NULL, PROBE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int code = probe == MAP_FAILED ? 0 : numa_node_place(probe, PROBE_BYTES, node);
  if (probe != MAP_FAILED) munmap(probe, PROBE_BYTES);
  if (code == EINVAL && is_given)
    return services->fail(services, HIPMM_E_CONFIG, "numa_node",
                          "this process may not use memory of node %d: its cpuset forbids it (Mems_allowed_list in "
                          "/proc/self/status); give another node, or \"off\"",
                          node);
  if (code == EINVAL) {
    services->log(
        services, HIPMM_LOG_INFO,
        "numa_node: the cpuset of this process forbids node %d, which is the device's: memory is placed where "
        "the system places it",
        node);
    *node_inout = NUMA_NODE_ANY;
  } else if (code) {
    services->log(services, HIPMM_LOG_WARNING,
                  "numa_node: mbind() failed (%s), as it does in containers without CAP_SYS_NICE: memory is placed on "
                  "node %d only by the threads that write it first",
                  strerror(code), node);
  }
  return HIPMM_OK;
}

/* ---- The option ---- */

/* The number of a node; -1 if the text is none. */
static long numa_node_number(const char *text)
{
  char *end;
  long node = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
  return node >= 0 && !*end && node < MOST_NODES ? node : -1;
}

void numa_node_validate(const struct hipmm_validation *validation, const char *text)
{
  if (strcmp(text, "auto") != 0 && strcmp(text, "off") != 0 && numa_node_number(text) < 0)
    validation->error(validation, "numa_node",
                      "\"%.40s\" is not a NUMA node; write \"auto\", \"off\", or a number below %d such as \"0\"", text,
                      MOST_NODES);
}

/* The device's node; NUMA_NODE_ANY if the runtime cannot tell it: HIP has the attribute since 7.2, CUDA since 12.2. */
static int numa_node_of_device(const struct hipmm_services *services)
{
  int node = NUMA_NODE_ANY;
  if (!services->hip->DeviceGetAttribute(&node, ATTRIBUTE_HOST_NUMA_ID, services->device)) return node;
  services->hip->GetLastError();
  return NUMA_NODE_ANY;
}

enum hipmm_status numa_node_find(const struct hipmm_services *services, const char *text, int *node_out)
{
  char nodes[256];
  bool is_auto = !strcmp(text, "auto");
  *node_out = NUMA_NODE_ANY;
  numa_node_read_all(nodes, sizeof nodes);
  if (!strcmp(text, "off") || (is_auto && !strpbrk(nodes, "-,"))) return HIPMM_OK;
  int node = is_auto ? numa_node_of_device(services) : (int)numa_node_number(text);
  if (is_auto && (node < 0 || !numa_node_is_in(nodes, node))) return HIPMM_OK;
  if (!numa_node_is_in(nodes, node))
    return services->fail(services, HIPMM_E_CONFIG, "numa_node",
                          "NUMA node %d does not exist, or has no memory: this machine has %s (" FOLDER "has_memory)",
                          node, nodes);
  *node_out = node;
  return HIPMM_OK;
}
