/* SPDX-License-Identifier: MIT */
/* dump.c: what an arena has when it fails, as RMM's arena writes it, and in more detail: for the global arena, then for
 * each arena of a thread and stream. Written without the application's malloc, which may be what called us. */
#include "arena.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Text ---- */

static void dump_write(int file, const char *format, ...) HIPMM_PRINTF(2, 3);

static void dump_write(int file, const char *format, ...)
{
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  for (int at = 0; at < length && at < (int)sizeof line;) {
    ssize_t written = write(file, line + at, (size_t)(length - at));
    if (written <= 0) return; /* a full disk must not make the failure worse */
    at += (int)written;
  }
}

struct text {
  char text[32];
};

/* As RMM writes sizes: 1024 bytes are "1024.000000 B". */
static struct text size_text(uint64_t bytes)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  struct text text;
  double value = (double)bytes;
  unsigned unit = 0;
  for (; value > 1024 && unit < 4; unit++) value /= 1024;
  snprintf(text.text, sizeof text.text, "%.6f %s", value, units[unit]);
  return text;
}

static double fragmentation(uint64_t free_bytes, uint64_t largest)
{
  return free_bytes ? (1.0 - (double)largest / (double)free_bytes) * 100 : 0;
}

/* ---- Parts ---- */

static void dump_free(int file, uint64_t free_bytes, uint64_t largest)
{
  if (!free_bytes) return;
  dump_write(file, "  Total free memory: %s\n", size_text(free_bytes).text);
  dump_write(file, "  Largest block of free memory: %s\n", size_text(largest).text);
  dump_write(file, "  Fragmentation: %.2f%%\n", fragmentation(free_bytes, largest));
}

static uint32_t count_free_ranges(const struct global *global)
{
  uint32_t count = 0;
  for (uint32_t stream = 0; stream < global->streams.count; stream++) count += global->free[stream].count;
  return count;
}

static void dump_global(int file, const struct arena *arena)
{
  const struct global *global = &arena->global;
  dump_write(file, "Global arena:\n");
  dump_write(file, "  Arena size: %s in %u chunks\n", size_text(global->chunks.bytes).text, global->chunks.count);
  dump_write(file, "  # free superblocks: %u\n", count_free_ranges(global));
  dump_free(file, global_free_bytes(global), global_largest_free(global));
  dump_write(file, "  Large allocations: %lld, %s\n", (long long)global->live_count,
             size_text((uint64_t)global->live_bytes).text);
  for (uint32_t stream = STREAM_FIRST; stream < global->streams.count; stream++)
    if (global->free[stream].count)
      dump_write(file, "  Free on stream %p: %u superblocks, %s\n", (void *)stream_of(&global->streams, stream)->handle,
                 global->free[stream].count, size_text(global->free[stream].bytes).text);
}

static void dump_local(int file, const struct arena *arena, struct local *local)
{
  lock_take(&local->lock);
  uint64_t free_bytes = local->ready.bytes + local->quick_bytes + local->pending_bytes;
  if (local->stream == STREAM_CLEAN)
    dump_write(file, "Arena %u, of no stream:\n", local->number);
  else
    dump_write(file, "Arena %u, of stream %p and thread %llu:\n", local->number, (void *)local->handle,
               (unsigned long long)local_thread(local));
  dump_write(file, "  # superblocks: %u, %s\n", local->n_superblocks, size_text(local->bytes).text);
  dump_free(file, free_bytes, index_largest(&local->ready, &arena->global.pieces));
  if (local->pending_bytes) dump_write(file, "  Freed on other streams: %s\n", size_text(local->pending_bytes).text);
  dump_write(file, "  Allocations: %lld, %s\n", (long long)local->live_count,
             size_text((uint64_t)local->live_bytes).text);
  lock_release(&local->lock);
}

void arena_dump(const struct arena *arena, uint64_t bytes)
{
  int file = open(arena->dump_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    arena->services->log(arena->services, HIPMM_LOG_WARNING, "%s cannot be written: %m", arena->dump_file);
    return;
  }
  dump_write(file, "%s failed to allocate %s\n", arena->services->name, size_text(bytes).text);
  dump_global(file, arena);
  for (uint32_t number = 1; number < arena->n_locals; number++)
    if (arena_local(arena, number)->n_superblocks) dump_local(file, arena, arena_local(arena, number));
  close(file);
}
