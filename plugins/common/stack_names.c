/* SPDX-License-Identifier: MIT */
/* stack_names.c: see stack_traces.h. What a frame is called.
 *
 * Not by dladdr(): it takes the lock that the loader holds around constructors of libraries, which may be waiting for a lock
 * of the caller. The list of libraries has a lock of its own, around which no code of others runs. */
#include "../../core/base/text.h"
#include "stack_traces.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BUILD_BYTES = 32 };

/* ---- Names of C ---- */

struct frame_place {
  uintptr_t address;
  bool is_for_file;
  uintptr_t base, symbol; /* of the file, and of the function that is exported; 0: unknown */
  char file[501], build[2 * MOST_BUILD_BYTES + 2], name[4000];
};

/* " 0123…": the build ID, by which `hipmm` knows the file again. */
static void stack_traces_read_build(struct frame_place *place, const ElfW(Nhdr) * note, size_t bytes)
{
  while (bytes >= sizeof *note) {
    const unsigned char *name = (const void *)(note + 1), *build = name + ((note->n_namesz + 3) & ~3u);
    size_t length = sizeof *note + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
    if (length > bytes) break;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= MOST_BUILD_BYTES) {
      place->build[0] = ' ';
      for (size_t i = 0; i < note->n_descsz; i++) snprintf(place->build + 1 + 2 * i, 3, "%02x", build[i]);
    }
    note = (const void *)((const char *)note + length);
    bytes -= length;
  }
}

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

/* The name of the file; and if it may be read later, one that is valid in any folder, and its build ID. */
static void stack_traces_read_file(struct frame_place *place, const struct dl_phdr_info *info)
{
  bool is_program = !*info->dlpi_name;
  snprintf(place->file, sizeof place->file, "%s", is_program ? program_invocation_name : info->dlpi_name);
  if (!place->is_for_file) return;
  ssize_t length = is_program ? readlink("/proc/self/exe", place->file, sizeof place->file - 1) : 0;
  if (length > 0) place->file[length] = '\0';
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type == PT_NOTE)
      stack_traces_read_build(place, (const void *)(info->dlpi_addr + part->p_vaddr), part->p_memsz);
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
  stack_traces_read_file(place, info);
  if (!dynamic || place->is_for_file) return 1;
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
  struct frame_place place = {.address = (uintptr_t)frame - 1, .is_for_file = traces->is_for_file};
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
    snprintf(line, line_bytes, "  #%u in ? from %s (+%#lx%s)", index, place.file, in_file, place.build);
  free(readable);
}

static void stack_traces_copy_line(struct stack_traces *traces, uint32_t index, size_t place, char *line,
                                   size_t line_bytes)
{
  stack_traces_lock(traces);
  snprintf(line, line_bytes, "  #%u in %s", index, traces->lines + place);
  stack_traces_unlock(traces);
}

/* "  tag: step 3 / layer 7" */
static void stack_traces_tag_line(const struct stack_trace *trace, char *line)
{
  const char *tags = (const char *)(trace->frames + trace->depth);
  char *end = stpcpy(line, "  tag: ");
  for (uint32_t i = 0; i + 1 < trace->tag_bytes; i++) /* the last newline is left out */
    if (tags[i] == '\n')
      end = stpcpy(end, " / ");
    else
      *end++ = tags[i];
  *end = '\0';
}

void stack_traces_write(struct stack_traces *traces, uint32_t number, void (*write)(void *closure, const char *line),
                        void *closure)
{
  char line[1200]; /* more than four times HIPMM_MOST_TAG_BYTES */
  if (!number) return;
  stack_traces_lock(traces);
  struct stack_trace trace = traces->items[number];
  stack_traces_unlock(traces);
  for (uint32_t i = 0; i < trace.depth; i++) {
    if ((uintptr_t)trace.frames[i] & STACK_TRACE_LINE)
      stack_traces_copy_line(traces, i, (uintptr_t)trace.frames[i] & ~STACK_TRACE_LINE, line, sizeof line);
    else
      stack_traces_frame_text(traces, i, trace.frames[i], line, sizeof line);
    text_make_plain(line); /* a file may have any name */
    write(closure, line);
  }
  if (!trace.tag_bytes) return;
  stack_traces_tag_line(&trace, line);
  write(closure, line);
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
