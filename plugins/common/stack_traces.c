/* SPDX-License-Identifier: MIT */
/* stack_traces.c: an array that doubles. The number of a trace is its index, so the array may move. */
#include "stack_traces.h"
#include "../../core/base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most frames of this file, and of a function that wraps backtrace(), in front of the requested one. */
enum { FIRST_CAPACITY = 64, MOST_OWN_FRAMES = 8 };

void stack_traces_open(struct stack_traces *traces, const struct hipmm_services *services)
{
  void *frame[1];
  *traces = (struct stack_traces){.services = services, .used = 1, .by_hash = {.services = services}};
  pthread_mutex_init(&traces->lock, NULL);
  *(void **)&traces->demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  backtrace(frame, 1); /* the first call loads a library, which must not happen during an allocation */
}

void stack_traces_close(struct stack_traces *traces)
{
  const struct hipmm_services *services = traces->services;
  if (traces->items) services->host_free(services, traces->items, traces->capacity * sizeof *traces->items);
  key_map_clear(&traces->by_hash);
  pthread_mutex_destroy(&traces->lock);
}

static void stack_traces_lock(struct stack_traces *traces)
{
  if (!traces->is_guarded) pthread_mutex_lock(&traces->lock);
}

static void stack_traces_unlock(struct stack_traces *traces)
{
  if (!traces->is_guarded) pthread_mutex_unlock(&traces->lock);
}

/* ---- The table; the lock is held ---- */

static uint64_t stack_traces_hash_of(void *const *frames, uint32_t depth)
{
  uint64_t hash = depth;
  for (uint32_t i = 0; i < depth; i++) {
    hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

static bool stack_traces_grow(struct stack_traces *traces)
{
  const struct hipmm_services *services = traces->services;
  uint32_t capacity = traces->capacity ? 2 * traces->capacity : FIRST_CAPACITY;
  if (capacity > UINT32_MAX / 4) return false;
  struct stack_trace *items = services->host_allocate(services, capacity * sizeof *items);
  if (!items) return false;
  if (traces->items) {
    memcpy(items, traces->items, traces->used * sizeof *items);
    services->host_free(services, traces->items, traces->capacity * sizeof *items);
  }
  traces->items = items;
  traces->capacity = capacity;
  return true;
}

static uint32_t stack_traces_find(const struct stack_traces *traces, uint64_t hash, void *const *frames, uint32_t depth)
{
  uint32_t number = (uint32_t)key_map_get(&traces->by_hash, hash);
  while (number) {
    const struct stack_trace *trace = &traces->items[number];
    if (trace->depth == depth && !memcmp(trace->frames, frames, depth * sizeof *frames)) break;
    number = trace->next;
  }
  return number;
}

/* 0 without memory. */
static uint32_t stack_traces_add(struct stack_traces *traces, uint64_t hash, void *const *frames, uint32_t depth)
{
  uint32_t number = stack_traces_find(traces, hash, frames, depth);
  if (!number) {
    uint32_t next = (uint32_t)key_map_get(&traces->by_hash, hash);
    number = traces->first_free ? traces->first_free : traces->used;
    if (number >= traces->capacity && !stack_traces_grow(traces)) return 0;
    if (!key_map_put(&traces->by_hash, hash, number)) return 0;
    struct stack_trace *trace = &traces->items[number];
    if (traces->first_free)
      traces->first_free = trace->next;
    else
      traces->used++;
    *trace = (struct stack_trace){.hash = hash, .next = next, .depth = depth};
    memcpy(trace->frames, frames, depth * sizeof *frames);
  }
  traces->items[number].users++;
  return number;
}

static void stack_traces_forget(struct stack_traces *traces, uint32_t number)
{
  struct stack_trace *trace = &traces->items[number];
  uint32_t first = (uint32_t)key_map_extract(&traces->by_hash, trace->hash), *link = &first;
  while (*link != number) link = &traces->items[*link].next;
  *link = trace->next;
  if (first) key_map_put(&traces->by_hash, trace->hash, first); /* cannot fail: the hash has had a place */
  trace->next = traces->first_free;
  traces->first_free = number;
}

/* ---- Taking ---- */

/* Where the frames of the caller begin. */
static int stack_traces_skip_own(void *const *frames, int count, const void *from)
{
  for (int i = 0; i < count && i < MOST_OWN_FRAMES; i++)
    if (frames[i] == from) return i;
  return count > 1 ? 1 : 0;
}

uint32_t stack_traces_record(struct stack_traces *traces, const void *from, uint32_t depth)
{
  void *frames[STACK_TRACE_MOST_FRAMES + MOST_OWN_FRAMES];
  int count = backtrace(frames, STACK_TRACE_MOST_FRAMES + MOST_OWN_FRAMES);
  int first = stack_traces_skip_own(frames, count, from);
  uint32_t taken = (uint32_t)(count - first) < depth ? (uint32_t)(count - first) : depth;
  uint64_t hash = stack_traces_hash_of(frames + first, taken);
  stack_traces_lock(traces);
  uint32_t number = stack_traces_add(traces, hash, frames + first, taken);
  stack_traces_unlock(traces);
  return number;
}

void stack_traces_drop(struct stack_traces *traces, uint32_t number)
{
  if (!number) return;
  stack_traces_lock(traces);
  if (!--traces->items[number].users) stack_traces_forget(traces, number);
  stack_traces_unlock(traces);
}

int64_t stack_traces_metadata_bytes(struct stack_traces *traces)
{
  stack_traces_lock(traces);
  int64_t bytes = (int64_t)(traces->capacity * sizeof *traces->items + key_map_bytes(&traces->by_hash));
  stack_traces_unlock(traces);
  return bytes;
}

/* ---- Names ----
 *
 * Not by dladdr(): it takes the lock that the loader holds around constructors of libraries, which may be waiting for a lock
 * of the caller. The list of libraries has a lock of its own, around which no code of others runs. */

struct frame_place {
  uintptr_t address;
  uintptr_t base, symbol; /* of the file, and of the function that is exported; 0: unknown */
  char file[501], name[4000];
};

/* The exported symbols of a file. */
struct frame_symbols {
  const ElfW(Sym) * items;
  const char *names;
  const uint32_t *gnu_hash, *hash;
};

static struct frame_symbols stack_traces_symbols(const ElfW(Dyn) * entry, uintptr_t base)
{
  struct frame_symbols symbols = {NULL, NULL, NULL, NULL};
  for (; entry->d_tag != DT_NULL; entry++) {
    uintptr_t at =
        entry->d_un.d_ptr < base ? base + entry->d_un.d_ptr : entry->d_un.d_ptr; /* the kernel's is not relocated */
    if (entry->d_tag == DT_SYMTAB) symbols.items = (const void *)at;
    if (entry->d_tag == DT_STRTAB) symbols.names = (const void *)at;
    if (entry->d_tag == DT_GNU_HASH) symbols.gnu_hash = (const void *)at;
    if (entry->d_tag == DT_HASH) symbols.hash = (const void *)at;
  }
  return symbols;
}

/* The table has no count of its own: it ends with the chain of the last bucket. */
static uint32_t stack_traces_count_symbols(const struct frame_symbols *symbols)
{
  const uint32_t *header = symbols->gnu_hash;
  if (!symbols->items || !symbols->names) return 0;
  if (!header) return symbols->hash ? symbols->hash[1] : 0;
  const uint32_t *buckets = header + 4 + header[2] * (sizeof(ElfW(Addr)) / sizeof *header),
                 *chains = buckets + header[0];
  uint32_t last = 0;
  for (uint32_t i = 0; i < header[0]; i++)
    if (buckets[i] > last) last = buckets[i];
  if (last < header[1]) return 0;
  while (!(chains[last - header[1]] & 1)) last++;
  return last + 1;
}

static void stack_traces_name_symbol(struct frame_place *place, const struct frame_symbols *symbols, uintptr_t base)
{
  uint32_t count = stack_traces_count_symbols(symbols);
  for (uint32_t i = 0; i < count; i++) {
    const ElfW(Sym) *symbol = &symbols->items[i];
    uintptr_t start = base + symbol->st_value;
    if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 15) == STT_TLS || place->address < start ||
        place->address - start >= symbol->st_size || start <= place->symbol)
      continue;
    place->symbol = start;
    snprintf(place->name, sizeof place->name, "%s", symbols->names + symbol->st_name);
  }
}

/* In the list of libraries: not 0 ends the search. */
static int stack_traces_look_in(struct dl_phdr_info *info, size_t bytes, void *closure)
{
  struct frame_place *place = closure;
  const ElfW(Dyn) *dynamic = NULL;
  uintptr_t first = UINTPTR_MAX;
  bool holds = false;
  (void)bytes;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) dynamic = (const void *)start;
    if (part->p_type != PT_LOAD) continue;
    if (start < first) first = start;
    holds = holds || (place->address >= start && place->address - start < part->p_memsz);
  }
  if (!holds) return 0;
  place->base = first & ~(uintptr_t)4095;
  snprintf(place->file, sizeof place->file, "%s", *info->dlpi_name ? info->dlpi_name : program_invocation_name);
  if (!dynamic) return 1;
  const struct frame_symbols symbols = stack_traces_symbols(dynamic, info->dlpi_addr);
  stack_traces_name_symbol(place, &symbols, info->dlpi_addr);
  return 1;
}

/* ---- Writing ---- */

/* In the format of RMM, with the offsets in the function and in the file, for addr2line. The address of the call is before
 * the return address. */
static void stack_traces_frame_text(const struct stack_traces *traces, uint32_t index, void *frame, char *line,
                                    size_t line_bytes)
{
  struct frame_place place = {.address = (uintptr_t)frame - 1};
  if (!dl_iterate_phdr(stack_traces_look_in, &place)) {
    snprintf(line, line_bytes, "  #%u in %p", index, frame);
    return;
  }
  int status = -1;
  bool is_mangled = traces->demangle && !strncmp(place.name, "_Z", 2);
  char *readable = is_mangled ? traces->demangle(place.name, NULL, NULL, &status) : NULL;
  unsigned long in_file = (unsigned long)(place.address - place.base);
  if (place.symbol)
    snprintf(line, line_bytes, "  #%u in %.500s+%#lx from %s (+%#lx)", index, readable ? readable : place.name,
             (unsigned long)(place.address - place.symbol), place.file, in_file);
  else
    snprintf(line, line_bytes, "  #%u in ? from %s (+%#lx)", index, place.file, in_file);
  free(readable);
}

void stack_traces_write(struct stack_traces *traces, uint32_t number, void (*write)(void *closure, const char *line),
                        void *closure)
{
  char line[1200];
  if (!number) return;
  stack_traces_lock(traces);
  struct stack_trace trace = traces->items[number];
  stack_traces_unlock(traces);
  for (uint32_t i = 0; i < trace.depth; i++) {
    stack_traces_frame_text(traces, i, trace.frames[i], line, sizeof line);
    text_make_plain(line); /* a file may have any name */
    write(closure, line);
  }
}

struct log_lines {
  const struct hipmm_services *services;
  enum hipmm_log_level level;
};

static void stack_traces_log_line(void *closure, const char *line)
{
  const struct log_lines *lines = closure;
  lines->services->log(lines->services, lines->level, "%s", line);
}

void stack_traces_log(struct stack_traces *traces, uint32_t number, enum hipmm_log_level level)
{
  struct log_lines lines = {traces->services, level};
  stack_traces_write(traces, number, stack_traces_log_line, &lines);
}
