/* SPDX-License-Identifier: MIT */
/* gdb.c: a program for gdb.sh, which stops it in done(): a pool in segments, an arena over it, a pool that maps memory, and a
 * stack made in code. gdb writes a core file of all addresses, which would take gigabytes. */
#include <hipmm/hipmm.h>
#include <hipmm/stream.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

char *live, *freed, *from_arena, *mapped;
int foreign;

__attribute__((noinline)) void done(void)
{
  __asm__ volatile("");
}

/* Without the memory that was never touched. */
static void shorten_core(void)
{
  enum { STEP = 1 << 20, PAGE = 4096 };
  static unsigned char resident[STEP / PAGE];
  char line[1000], *start, *end;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%p-%p", (void **)&start, (void **)&end) != 2) continue;
    for (; end - start >= STEP; start += STEP)
      if (!mincore(start, STEP, resident) && !memchr(resident, 1, sizeof resident)) madvise(start, STEP, MADV_DONTDUMP);
  }
  if (maps) fclose(maps);
}

static int allocate(void)
{
  static const char graph[] =
      "{\"runtime\": \"software\", \"resources\": {\"source\": {\"type\": \"device\"},"
      " \"big\": {\"type\": \"pool\", \"upstream\": \"source\", \"growth\": \"segments\", \"initial_size\": \"4MiB\"},"
      " \"local\": {\"type\": \"arena\", \"upstream\": \"big\"}, \"top\": {\"type\": \"statistics\", \"upstream\": "
      "\"local\"}},"
      " \"devices\": {\"default\": \"top\"}}";
  struct hipmm_resource *pool, *created;
  hipmm_stream_t stream;
  if (hipmm_init_from_string(graph) || hipmm_resource_get_by_name(0, "big", &pool)) return 1;
  if (hipmm_stack_build_from_string(0, "mine", "{\"stack\": [\"pool\", \"device\"]}", &created)) return 1;
  if (hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream)) return 1;
  if (hipmm_allocate(NULL, 3000, stream, (void **)&from_arena)) return 1;
  if (hipmm_allocate(created, 40 << 20, NULL, (void **)&mapped)) return 1;
  if (hipmm_allocate(pool, 1000, stream, (void **)&live) || hipmm_allocate(pool, 50000, stream, (void **)&freed))
    return 1;
  return hipmm_deallocate(pool, freed, 50000, stream);
}

int main(void)
{
  if (allocate()) {
    fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  shorten_core();
  done();
  return 0;
}
