/* SPDX-License-Identifier: MIT */
/* dump.c: the state of an arena when an allocation fails, in the format of RMM's arena with more detail: first the
 * global arena, then each local arena. Never calls the application's malloc, which may be the caller. */
#include "../../core/base/output_file.h"
#include "arena.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Text ---- */

/* Makes the text large enough for another line. */
static bool dump_grow(struct dump *dump, size_t bytes)
{
  if (dump->length + bytes <= dump->room) return true;
  size_t room = dump->room ? 2 * dump->room : 16384;
  char *text = dump->services->host_allocate(dump->services, room);
  if (!text) return false;
  if (dump->length) memcpy(text, dump->text, dump->length);
  if (dump->text) dump->services->host_free(dump->services, dump->text, dump->room);
  dump->text = text;
  dump->room = room;
  return true;
}

static void dump_print(struct dump *dump, const char *format, ...) HIPMM_PRINTF(2, 3);

/* Without host memory, the line is dropped. */
static void dump_print(struct dump *dump, const char *format, ...)
{
  enum { LONGEST_LINE = 256 };
  va_list arguments;
  if (!dump_grow(dump, LONGEST_LINE)) return;
  va_start(arguments, format);
  int length = vsnprintf(dump->text + dump->length, LONGEST_LINE, format, arguments);
  va_end(arguments);
  if (length > 0) dump->length += (size_t)length < LONGEST_LINE ? (size_t)length : LONGEST_LINE - 1;
}

struct text {
  char text[32];
};

/* RMM's format: 1024 bytes are "1024.000000 B". */
static struct text dump_size_text(uint64_t bytes)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  struct text text;
  double value = (double)bytes;
  unsigned unit = 0;
  for (; value > 1024 && unit < 4; unit++) value /= 1024;
  snprintf(text.text, sizeof text.text, "%.6f %s", value, units[unit]);
  return text;
}

/* ---- Parts ---- */

static void dump_free(struct dump *dump, uint64_t free_bytes, uint64_t largest)
{
  if (!free_bytes) return;
  dump_print(dump, "  Total free memory: %s\n", dump_size_text(free_bytes).text);
  dump_print(dump, "  Largest block of free memory: %s\n", dump_size_text(largest).text);
  dump_print(dump, "  Fragmentation: %.2f%%\n", (1.0 - (double)largest / (double)free_bytes) * 100);
}

struct dump_sum {
  uint32_t count;
  uint64_t bytes;
};

static void dump_add_stream(struct dump_sum *sum, const struct heap *heap, uint32_t stream)
{
  for (enum kind kind = KIND_BUSY; kind < KINDS; kind++)
    for (uint32_t id = BLOCK_NONE; (id = free_index_next(&heap->free[stream], &heap->blocks, kind, id)); sum->count++)
      sum->bytes += heap_block(heap, id)->bytes;
}

static void dump_global(struct dump *dump, const struct arena *arena)
{
  const struct heap *heap = &arena->heap;
  struct dump_sum free = {0};
  for (uint32_t id = STREAM_READY; id < heap->streams.count; id++) dump_add_stream(&free, heap, id);
  dump_print(dump, "Global arena:\n");
  dump_print(dump, "  Arena size: %s in %u chunks\n", dump_size_text(arena->backing.held->bytes).text,
             arena->backing.segments.count);
  dump_print(dump, "  # free superblocks: %u\n", free.count);
  dump_free(dump, free.bytes, heap_largest_free(heap));
  dump_print(dump, "  Large allocations: %u, %s\n", heap->blocks.live, dump_size_text(heap->requested_bytes).text);
  for (uint32_t id = STREAM_FIRST; id < heap->streams.count; id++) {
    struct dump_sum sum = {0};
    dump_add_stream(&sum, heap, id);
    if (sum.count)
      dump_print(dump, "  Free on stream %p: %u superblocks, %s\n", (void *)stream_of(&heap->streams, id)->handle,
                 sum.count, dump_size_text(sum.bytes).text);
  }
}

static void dump_local(struct dump *dump, const struct arena *arena, struct local *local)
{
  local_acquire(local, &arena->heap.blocks);
  uint64_t ready_bytes = free_index_bytes(&local->ready, &arena->heap.blocks, UINT64_MAX);
  uint64_t free_bytes = ready_bytes + local->quick_bytes + local->pending_bytes;
  if (local->stream == STREAM_READY)
    dump_print(dump, "Arena %u, of no stream:\n", local->number);
  else
    dump_print(dump, "Arena %u, of stream %p and thread %llu:\n", local->number, (void *)local->handle,
               (unsigned long long)local_thread(local));
  dump_print(dump, "  # superblocks: %u, %s\n", local->n_superblocks, dump_size_text(local->bytes).text);
  dump_free(dump, free_bytes, free_index_largest(&local->ready, &arena->heap.blocks));
  if (local->pending_bytes)
    dump_print(dump, "  Freed on other streams: %s\n", dump_size_text(local->pending_bytes).text);
  dump_print(dump, "  Allocations: %lld, %s\n", (long long)local->live_count,
             dump_size_text((uint64_t)local->live_bytes).text);
  biased_lock_release(&local->lock);
}

void arena_dump(const struct arena *arena, uint64_t bytes, struct dump *dump)
{
  dump->services = arena->services;
  dump_print(dump, "%s failed to allocate %s\n", arena->services->name, dump_size_text(bytes).text);
  dump_global(dump, arena);
  for (uint32_t number = 1; number < arena->n_locals; number++)
    if (arena_local(arena, number)->n_superblocks) dump_local(dump, arena, arena_local(arena, number));
}

/* A full disk is no further error. */
static void dump_write_file(const struct arena_resource *resource, const char *text, size_t length)
{
  const struct hipmm_services *services = resource->arena.services;
  char name[OUTPUT_FILE_NAME_BYTES];
  bool is_name = output_file_expand(resource->dump_file, services->device, name);
  int file = is_name ? output_file_open(name, OUTPUT_FILE_EMPTY) : -1;
  if (file < 0) {
    services->log(services, HIPMM_LOG_WARNING, "%s%s%s", name, is_name ? " cannot be written: " : "",
                  is_name ? output_file_reason(errno) : "");
    return;
  }
  (void)output_file_write(file, text, length, NULL);
  close(file);
}

void arena_dump_write(struct arena_resource *resource, struct dump *dump)
{
  if (!dump->text) return;
  if (!atomic_exchange(&resource->is_dumping, true)) {
    dump_write_file(resource, dump->text, dump->length);
    atomic_store(&resource->is_dumping, false);
  }
  dump->services->host_free(dump->services, dump->text, dump->room);
}
