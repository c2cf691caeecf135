/* SPDX-License-Identifier: MIT */
/* stack_traces.c: an array that doubles. The number of a trace is its index, so the array may move. */
#include "stack_traces.h"
#include "../../core/base/text.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

/* The most frames of this file, and of a function that wraps backtrace(), in front of the requested one. */
enum { FIRST_CAPACITY = 64, MOST_OWN_FRAMES = 8 };
enum { FIRST_LINES_BYTES = 1 << 14, MOST_LINES_BYTES = 1 << 26, PYTHON_TEXT_BYTES = 1 << 13 };

const char *const stack_kind_words[] = {[STACKS_OFF] = "off", [STACKS_PYTHON] = "python", [STACKS_ALL] = "all", NULL};

/* ---- Life ---- */

struct module_search {
  uintptr_t address;
  struct stack_range range;
};

/* In the list of libraries, of which the program is one: not 0 ends the search. */
static int stack_traces_look_for_module(struct dl_phdr_info *info, size_t bytes, void *closure)
{
  struct module_search *search = closure;
  struct stack_range range = {UINTPTR_MAX, 0};
  (void)bytes;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type != PT_LOAD) continue;
    if (start < range.start) range.start = start;
    if (start + part->p_memsz > range.end) range.end = start + part->p_memsz;
  }
  if (search->address < range.start || search->address >= range.end) return 0;
  search->range = range;
  return 1;
}

static struct stack_range stack_traces_module_of(uintptr_t address)
{
  struct module_search search = {.address = address, .range = {0, 0}};
  if (address) dl_iterate_phdr(stack_traces_look_for_module, &search);
  return search.range;
}

static bool stack_range_has(const struct stack_range *range, const void *address)
{
  return (uintptr_t)address - range->start < range->end - range->start;
}

void stack_traces_open(struct stack_traces *traces, const struct hipmm_services *services)
{
  void *frame[1];
  *traces = (struct stack_traces){.services = services,
                                  .used = 1,
                                  .by_hash = {.services = services},
                                  .lines_used = 1,
                                  .lines_by_hash = {.services = services}};
  pthread_mutex_init(&traces->lock, NULL);
  *(void **)&traces->demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  backtrace(frame, 1); /* the first call loads a library, which must not happen during an allocation */
  traces->core = stack_traces_module_of((uintptr_t)services->log);
  traces->python = stack_traces_module_of((uintptr_t)dlsym(RTLD_DEFAULT, "PyEval_GetFrame"));
  /* A program may be linked with all of hipmm. */
  if (stack_range_has(&traces->core, (const void *)getauxval(AT_ENTRY))) traces->core = (struct stack_range){0, 0};
}

void stack_traces_close(struct stack_traces *traces)
{
  const struct hipmm_services *services = traces->services;
  if (traces->items) services->host_free(services, traces->items, traces->capacity * sizeof *traces->items);
  if (traces->lines) services->host_free(services, traces->lines, traces->lines_bytes);
  key_map_clear(&traces->by_hash);
  key_map_clear(&traces->lines_by_hash);
  pthread_mutex_destroy(&traces->lock);
}

void stack_traces_lock(struct stack_traces *traces)
{
  if (!traces->is_guarded) pthread_mutex_lock(&traces->lock);
}

void stack_traces_unlock(struct stack_traces *traces)
{
  if (!traces->is_guarded) pthread_mutex_unlock(&traces->lock);
}

/* ---- The table; the lock is held ---- */

/* How many places of `frames` are in use. */
static uint32_t stack_trace_places(const struct stack_trace *trace)
{
  return trace->depth + (trace->tag_bytes + (uint32_t)sizeof *trace->frames - 1) / (uint32_t)sizeof *trace->frames;
}

static uint64_t stack_traces_hash_of(const struct stack_trace *trace)
{
  uint64_t hash = trace->depth;
  for (uint32_t i = 0; i < stack_trace_places(trace); i++) {
    hash = (hash ^ (uint64_t)(uintptr_t)trace->frames[i]) * 0x9E3779B97F4A7C15ull;
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

static uint32_t stack_traces_find(const struct stack_traces *traces, const struct stack_trace *wanted)
{
  uint32_t number = (uint32_t)key_map_get(&traces->by_hash, wanted->hash);
  while (number) {
    const struct stack_trace *trace = &traces->items[number];
    if (trace->depth == wanted->depth && trace->tag_bytes == wanted->tag_bytes &&
        !memcmp(trace->frames, wanted->frames, stack_trace_places(wanted) * sizeof *wanted->frames))
      break;
    number = trace->next;
  }
  return number;
}

/* Adds a user of the trace, which has its frames and tags. 0 without memory. */
static uint32_t stack_traces_add(struct stack_traces *traces, struct stack_trace *taken)
{
  taken->hash = stack_traces_hash_of(taken);
  uint32_t number = stack_traces_find(traces, taken);
  if (!number) {
    uint32_t next = (uint32_t)key_map_get(&traces->by_hash, taken->hash);
    number = traces->first_free ? traces->first_free : traces->used;
    if (number >= traces->capacity && !stack_traces_grow(traces)) return 0;
    if (!key_map_put(&traces->by_hash, taken->hash, number)) return 0;
    struct stack_trace *trace = &traces->items[number];
    if (traces->first_free)
      traces->first_free = trace->next;
    else
      traces->used++;
    *trace =
        (struct stack_trace){.hash = taken->hash, .next = next, .depth = taken->depth, .tag_bytes = taken->tag_bytes};
    memcpy(trace->frames, taken->frames, stack_trace_places(taken) * sizeof *taken->frames);
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

/* The frames of C in front of the interpreter; all of them if it is not among them. */
static uint32_t stack_traces_stop_at_python(const struct stack_traces *traces, void *const *frames, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++)
    if (stack_range_has(&traces->python, frames[i])) return i;
  return count;
}

/* Behind the frames of libhipmm, which the caller has entered above some plugins. */
static int stack_traces_skip_core(const struct stack_traces *traces, void *const *frames, int first, int count)
{
  int at = first;
  while (at < count && !stack_range_has(&traces->core, frames[at])) at++;
  if (at == count) return first;
  while (at < count && stack_range_has(&traces->core, frames[at])) at++;
  return at < count ? at : first;
}

static uint32_t stack_traces_take_native(const struct stack_traces *traces, const void *from, uint32_t depth,
                                         void **frames_out)
{
  void *frames[STACK_TRACE_MOST_FRAMES + 2 * MOST_OWN_FRAMES];
  int count = backtrace(frames, STACK_TRACE_MOST_FRAMES + 2 * MOST_OWN_FRAMES);
  int first = stack_traces_skip_core(traces, frames, stack_traces_skip_own(frames, count, from), count);
  uint32_t taken = (uint32_t)(count - first) < depth ? (uint32_t)(count - first) : depth;
  memcpy(frames_out, frames + first, taken * sizeof *frames);
  return taken;
}

/* The lock is held. NULL without memory. */
static void *stack_traces_line(struct stack_traces *traces, const char *line, size_t length)
{
  const struct hipmm_services *services = traces->services;
  uint64_t hash = text_hash(line, length);
  for (;; hash++) {
    size_t place = (size_t)key_map_get(&traces->lines_by_hash, hash);
    if (!place) break;
    if (!strncmp(traces->lines + place, line, length) && !traces->lines[place + length])
      return (void *)(STACK_TRACE_LINE | place);
  }
  if (traces->lines_bytes - traces->lines_used <= length || !traces->lines) {
    size_t bytes = traces->lines_bytes ? 2 * traces->lines_bytes : FIRST_LINES_BYTES;
    char *lines = bytes <= MOST_LINES_BYTES ? services->host_allocate(services, bytes) : NULL;
    if (!lines) return NULL;
    if (traces->lines) {
      memcpy(lines, traces->lines, traces->lines_used);
      services->host_free(services, traces->lines, traces->lines_bytes);
    }
    traces->lines = lines;
    traces->lines_bytes = bytes;
  }
  size_t place = traces->lines_used;
  if (!key_map_put(&traces->lines_by_hash, hash, place)) return NULL;
  memcpy(traces->lines + place, line, length); /* the memory is zeroed */
  traces->lines_used += length + 1;
  return (void *)(STACK_TRACE_LINE | place);
}

/* Adds the lines of a text behind the frames. The lock is held. */
static uint32_t stack_traces_add_lines(struct stack_traces *traces, const char *text, size_t length, void **frames,
                                       uint32_t taken, uint32_t depth)
{
  for (const char *end = text + length, *next; text < end && taken < depth; text = next + 1) {
    next = memchr(text, '\n', (size_t)(end - text));
    void *line = next ? stack_traces_line(traces, text, (size_t)(next - text)) : NULL;
    if (!line) break;
    frames[taken++] = line;
  }
  return taken;
}

/* Adds the tags. The outermost frames make room for them. */
static void stack_trace_add_tags(struct stack_trace *trace, const char *tags)
{
  trace->tag_bytes = (uint32_t)strnlen(tags, HIPMM_MOST_TAG_BYTES);
  while (stack_trace_places(trace) > STACK_TRACE_MOST_FRAMES) trace->depth--;
  memset(trace->frames + trace->depth, 0, (stack_trace_places(trace) - trace->depth) * sizeof *trace->frames);
  memcpy(trace->frames + trace->depth, tags, trace->tag_bytes);
}

uint32_t stack_traces_take(struct stack_traces *traces, const struct stack_options *options, size_t bytes,
                           const void *from)
{
  struct stack_trace trace;
  char text[PYTHON_TEXT_BYTES];
  uint32_t kind = __atomic_load_n(&options->stacks, __ATOMIC_RELAXED);
  uint32_t depth = (uint32_t)__atomic_load_n(&options->stack_depth, __ATOMIC_RELAXED);
  uint64_t sample = bytes == SIZE_MAX ? 0 : __atomic_load_n(&options->stack_sample, __ATOMIC_RELAXED);
  const char *tags = traces->is_for_file ? "" : hipmm_tags(traces->services);
  int64_t length = -1;
  if (kind != STACKS_OFF) length = traces->services->call_site(traces->services, bytes, sample, text, sizeof text);
  if (length < 0 && !*tags) return 0;
  trace.depth = 0;
  if (!length || (length > 0 && kind == STACKS_ALL))
    trace.depth = stack_traces_take_native(traces, from, depth, trace.frames);
  if (length > 0) trace.depth = stack_traces_stop_at_python(traces, trace.frames, trace.depth);
  stack_traces_lock(traces);
  if (length > 0) trace.depth = stack_traces_add_lines(traces, text, (size_t)length, trace.frames, trace.depth, depth);
  stack_trace_add_tags(&trace, tags);
  uint32_t number = stack_traces_add(traces, &trace);
  stack_traces_unlock(traces);
  return number;
}

uint32_t stack_traces_record(struct stack_traces *traces, const void *from, uint32_t depth)
{
  struct stack_trace trace;
  trace.depth = stack_traces_take_native(traces, from, depth, trace.frames);
  trace.tag_bytes = 0;
  stack_traces_lock(traces);
  uint32_t number = stack_traces_add(traces, &trace);
  stack_traces_unlock(traces);
  return number;
}

void stack_options_set(struct stack_options *options, const struct stack_options *given,
                       const struct hipmm_services *services)
{
  __atomic_store_n(&options->stacks, given->stacks, __ATOMIC_RELAXED);
  __atomic_store_n(&options->stack_sample, given->stack_sample, __ATOMIC_RELAXED);
  __atomic_store_n(&options->stack_depth, given->stack_depth, __ATOMIC_RELAXED);
  if (given->stacks) services->call_site(services, 0, given->stack_sample, NULL, 0);
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
  int64_t bytes = (int64_t)(traces->capacity * sizeof *traces->items + key_map_bytes(&traces->by_hash) +
                            traces->lines_bytes + key_map_bytes(&traces->lines_by_hash));
  stack_traces_unlock(traces);
  return bytes;
}
