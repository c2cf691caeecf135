/* SPDX-License-Identifier: MIT */
/* mapped.c: see mapped.h. */
#include "mapped.h"
#include "../../core/base/host_memory.h"
#include "../../core/base/thread.h"
#include "../common/numa_node.h"
#include "../common/sizes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { MOST_THREADS = 16, HUGE_SHIFT = 26 /* MAP_HUGE_SHIFT */ };

static const size_t PAGE_BYTES = 4096, TRANSPARENT_BYTES = 2 << 20, PART_BYTES = 32 << 20;

static size_t mapped_bytes(const struct mapped *mapped, size_t bytes)
{
  return sizes_round_up(bytes, mapped->huge_bytes ? mapped->huge_bytes : (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- Huge pages ---- */

static long mapped_count_huge_pages(size_t huge_bytes, const char *name)
{
  char path[120];
  long count = 0;
  snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", huge_bytes >> 10, name);
  FILE *file = fopen(path, "re");
  if (file && fscanf(file, "%ld", &count) != 1) count = 0;
  if (file) fclose(file);
  return count;
}

enum hipmm_status mapped_check_huge_pages(const struct hipmm_services *services, size_t huge_bytes)
{
  if (mapped_count_huge_pages(huge_bytes, "nr_hugepages") > 0 ||
      mapped_count_huge_pages(huge_bytes, "nr_overcommit_hugepages") > 0)
    return HIPMM_OK;
  return services->fail(services, HIPMM_E_CONFIG, "huge_pages",
                        "this machine has no huge pages of %zu MiB: as root, write how many it shall have to "
                        "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages, or set \"transparent\"",
                        huge_bytes >> 20, huge_bytes >> 10);
}

/* ---- Addresses ---- */

static enum hipmm_status mapped_map_huge(const struct hipmm_services *services, size_t huge_bytes, size_t bytes,
                                         char **start_out)
{
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | __builtin_ctzl(huge_bytes) << HUGE_SHIFT;
  void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                            "fewer huge pages of {1:bytes} are free than {0:bytes} need (/sys/kernel/mm/hugepages)",
                            bytes, huge_bytes, 0);
  *start_out = start;
  return HIPMM_OK;
}

/* Begins where a huge page can, for which more is mapped at first. */
static enum hipmm_status mapped_map_pages(const struct hipmm_services *services, bool is_encouraged, size_t bytes,
                                          char **start_out)
{
  uint64_t available = host_memory_available("");
  available -= available / 16; /* stays for the rest of the machine */
  if (bytes > available)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot pin {0:bytes}: the host has {1:bytes} left for it",
                            bytes, available, 0);
  char *all = mmap(NULL, bytes + TRANSPARENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "out of host memory: no addresses are left for {0:bytes}",
                            bytes, 0, 0);
  size_t before = -(uintptr_t)all & (TRANSPARENT_BYTES - 1);
  if (before) munmap(all, before);
  munmap(all + before + bytes, TRANSPARENT_BYTES - before);
  madvise(all + before, bytes, is_encouraged ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  *start_out = all + before;
  return HIPMM_OK;
}

/* ---- Commitment ---- */

/* One thread's. */
struct part {
  char *start;
  size_t bytes;
  pthread_t thread;
  bool has_thread;
  int error;
};

/* Older kernels commit what is written to. */
static void *part_commit(void *arg)
{
  struct part *part = arg;
  int code = madvise(part->start, part->bytes, MADV_POPULATE_WRITE) ? errno : 0;
  for (size_t i = 0; code == EINVAL && i < part->bytes; i += PAGE_BYTES) ((volatile char *)part->start)[i] = 0;
  part->error = code == EINVAL ? 0 : code;
  return NULL;
}

/* A thread that cannot be had is done without. */
static void part_start(struct part *part, const pthread_attr_t *near)
{
  part->has_thread = !thread_start(&part->thread, near, part_commit, part);
  if (!part->has_thread) part_commit(part);
}

/* By threads of its own, whose processors are near the node: the calling thread keeps its own. */
static int mapped_commit(const struct mapped *mapped, char *start, size_t bytes)
{
  struct part parts[MOST_THREADS];
  pthread_attr_t near;
  cpu_set_t processors;
  bool is_known = numa_node_processors(mapped->node, &processors);
  size_t most = is_known ? (size_t)CPU_COUNT(&processors) : 1, n = 0, done = 0;
  if (most > MOST_THREADS) most = MOST_THREADS;
  size_t unit = mapped->huge_bytes > PART_BYTES ? mapped->huge_bytes : PART_BYTES;
  size_t each = sizes_round_up((bytes + most - 1) / most, unit);
  if (pthread_attr_init(&near)) return ENOMEM;
  if (is_known) pthread_attr_setaffinity_np(&near, sizeof processors, &processors);
  for (; done < bytes; done += parts[n++].bytes) {
    parts[n] = (struct part){.start = start + done, .bytes = bytes - done < each ? bytes - done : each};
    part_start(&parts[n], &near);
  }
  pthread_attr_destroy(&near);
  int error = 0;
  while (n--) {
    if (parts[n].has_thread) pthread_join(parts[n].thread, NULL);
    if (parts[n].error) error = parts[n].error;
  }
  return error;
}

/* ---- For pinned.c ---- */

/* A fork would copy what is pinned, and the child has no use for it. */
static enum hipmm_status mapped_pin(const struct hipmm_services *services, const struct mapped *mapped, char *start,
                                    size_t bytes)
{
  madvise(start, bytes, MADV_DONTFORK);
  if (mapped->node != NUMA_NODE_ANY) numa_node_place(start, bytes, mapped->node); /* create warned if it cannot */
  if (mapped_commit(mapped, start, bytes))
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the host has no memory left to commit {0:bytes}", bytes,
                            0, 0);
  int code = services->hip->HostRegister(start, bytes, HIPMM_HIP_HOST_REGISTER_PORTABLE);
  return code ? services->refuse_hip(services, "hipHostRegister", code, bytes) : HIPMM_OK;
}

enum hipmm_status mapped_obtain(const struct hipmm_services *services, const struct mapped *mapped, size_t bytes,
                                void **ptr_out)
{
  size_t rounded = mapped_bytes(mapped, bytes);
  char *start = NULL;
  enum hipmm_status status = mapped->huge_bytes ? mapped_map_huge(services, mapped->huge_bytes, rounded, &start)
                                                : mapped_map_pages(services, mapped->is_encouraged, rounded, &start);
  if (status) return status;
  status = mapped_pin(services, mapped, start, rounded);
  if (status)
    munmap(start, rounded);
  else
    *ptr_out = start;
  return status;
}

enum hipmm_status mapped_release(const struct hipmm_services *services, const struct mapped *mapped, void *ptr,
                                 size_t bytes)
{
  int code = services->hip->HostUnregister(ptr);
  if (code) return services->refuse_hip(services, "hipHostUnregister", code, 0);
  if (!munmap(ptr, mapped_bytes(mapped, bytes))) return HIPMM_OK;
  services->log(services, HIPMM_LOG_ERROR, "%p of %zu bytes could not be unmapped: it is lost", ptr, bytes);
  return HIPMM_OK;
}
