/* SPDX-License-Identifier: MIT */
/* symbols.c: see symbols.h. A log names the files: nothing in one is trusted, and none is run. */
#include "symbols.h"
#include "../../../core/plugin/elf_file.h"
#include "../array.h"
#include "../cmd.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS_MOST_BUILD = 64 };

struct symbol {
  uint64_t start, bytes;
  const char *name;
};

struct symbols_file {
  char *name, *build;
  uint64_t base; /* of its first segment, from which places count */
  struct symbol *items;
  size_t n;
  char *texts; /* of the names */
  struct symbols_file *next;
};

struct symbols {
  struct symbols_file *files;
  char *(*demangle)(const char *name, char *buffer, size_t *bytes, int *status);
};

/* ---- Reading a file ---- */

static bool symbols_has_build(const struct elf_file *elf, const ElfW(Phdr) * part, const char *build)
{
  char *notes = elf_file_read(elf, part->p_offset, part->p_filesz), text[2 * SYMBOLS_MOST_BUILD + 1];
  bool found = false;
  for (uint64_t at = 0; notes && !found && part->p_filesz - at >= sizeof(ElfW(Nhdr));) {
    ElfW(Nhdr) note;
    memcpy(&note, notes + at, sizeof note);
    uint64_t name = ((uint64_t)note.n_namesz + 3) & ~3ull, length = ((uint64_t)note.n_descsz + 3) & ~3ull;
    at += sizeof note + name;
    if (at > part->p_filesz || length > part->p_filesz - at) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= SYMBOLS_MOST_BUILD) {
      for (unsigned i = 0; i < note.n_descsz; i++) snprintf(text + 2 * i, 3, "%02x", (unsigned char)notes[at + i]);
      found = note.n_descsz && !strcmp(text, build);
    }
    at += length;
  }
  free(notes);
  return found;
}

/* Whether the file is the recorded one. */
static bool symbols_read_segments(const struct elf_file *elf, const char *build, uint64_t *base_out)
{
  ElfW(Phdr) *parts = elf_file_read(elf, elf->header.e_phoff, (uint64_t)elf->header.e_phnum * sizeof *parts);
  bool found = false;
  uint64_t base = UINT64_MAX;
  for (unsigned i = 0; parts && i < elf->header.e_phnum; i++) {
    if (parts[i].p_type == PT_LOAD && parts[i].p_vaddr < base) base = parts[i].p_vaddr;
    found = found || (parts[i].p_type == PT_NOTE && symbols_has_build(elf, &parts[i], build));
  }
  free(parts);
  *base_out = base & ~UINT64_C(4095);
  return found;
}

static int symbols_compare(const void *one, const void *other)
{
  const struct symbol *a = one, *b = other;
  return a->start < b->start ? -1 : a->start > b->start;
}

/* Keeps the functions of a table of symbols. */
static bool symbols_keep(struct symbols_file *file, const struct elf_file *elf, const ElfW(Shdr) * table,
                         const ElfW(Shdr) * texts)
{
  size_t n = table->sh_size / sizeof(ElfW(Sym));
  ElfW(Sym) *items = elf_file_read(elf, table->sh_offset, table->sh_size);
  file->texts = items ? elf_file_read(elf, texts->sh_offset, texts->sh_size) : NULL;
  file->items = file->texts ? calloc(n + 1, sizeof *file->items) : NULL;
  for (size_t i = 0; file->items && i < n; i++) {
    bool is_function = (items[i].st_info & 15) == STT_FUNC || (items[i].st_info & 15) == STT_GNU_IFUNC;
    if (!is_function || items[i].st_shndx == SHN_UNDEF || !items[i].st_size || items[i].st_name >= texts->sh_size)
      continue;
    file->items[file->n++] = (struct symbol){items[i].st_value, items[i].st_size, file->texts + items[i].st_name};
  }
  free(items);
  if (!file->items) return false;
  qsort(file->items, file->n, sizeof *file->items, symbols_compare);
  return true;
}

/* Reads the table of all functions, or else, if that may be, of those that are exported. */
static bool symbols_read_table(struct symbols_file *file, const struct elf_file *elf, bool takes_exported)
{
  const unsigned n = elf->header.e_shnum;
  ElfW(Shdr) *sections = elf_file_read(elf, elf->header.e_shoff, (uint64_t)n * sizeof *sections);
  const ElfW(Shdr) *found = NULL;
  for (unsigned i = 0; sections && i < n; i++)
    if (sections[i].sh_type == SHT_SYMTAB || (takes_exported && !found && sections[i].sh_type == SHT_DYNSYM))
      if (sections[i].sh_link < n) found = &sections[i];
  bool good = found && symbols_keep(file, elf, found, &sections[found->sh_link]);
  free(sections);
  return good;
}

/* Debian and Fedora keep the tables of stripped files so. */
static bool symbols_read_debug_file(struct symbols_file *file)
{
  char name[2 * SYMBOLS_MOST_BUILD + 64];
  struct elf_file elf;
  uint64_t base;
  snprintf(name, sizeof name, "/usr/lib/debug/.build-id/%.2s/%s.debug", file->build, file->build + 2);
  if (!elf_file_open(&elf, name)) return false;
  bool good = symbols_read_segments(&elf, file->build, &base) && symbols_read_table(file, &elf, false);
  elf_file_close(&elf);
  return good;
}

static void symbols_read_file(struct symbols_file *file)
{
  struct elf_file elf;
  if (!elf_file_open(&elf, file->name)) return;
  if (symbols_read_segments(&elf, file->build, &file->base) && !symbols_read_debug_file(file))
    symbols_read_table(file, &elf, true);
  elf_file_close(&elf);
}

/* ---- Finding a name ---- */

/* A file without names stays, so that it is not read again. NULL: out of memory. */
static const struct symbols_file *symbols_file_of(struct symbols *symbols, const char *name, size_t name_bytes,
                                                  const char *build, size_t build_bytes)
{
  for (const struct symbols_file *file = symbols->files; file; file = file->next)
    if (!strncmp(file->name, name, name_bytes) && !file->name[name_bytes] &&
        !strncmp(file->build, build, build_bytes) && !file->build[build_bytes])
      return file;
  struct symbols_file *file = calloc(1, sizeof *file);
  if (file) file->name = strndup(name, name_bytes);
  if (file) file->build = strndup(build, build_bytes);
  if (!file || !file->name || !file->build) {
    if (file) free(file->name);
    free(file);
    return NULL;
  }
  file->next = symbols->files;
  symbols->files = file;
  if (build_bytes > 2 && build_bytes <= 2 * SYMBOLS_MOST_BUILD && !memchr(build, '/', build_bytes))
    symbols_read_file(file);
  return file;
}

static const struct symbol *symbols_find(const struct symbols_file *file, uint64_t address)
{
  size_t low = 0, high = file->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (file->items[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  const struct symbol *found = low ? &file->items[low - 1] : NULL;
  return found && address - found->start < found->bytes ? found : NULL;
}

/* "  #0 in ? from FILE (+0x12 BUILD)", of a function without a name. */
struct symbols_place {
  const char *file, *file_end, *build, *build_end;
  uint64_t offset;
};

static bool symbols_parse(const char *line, const char *end, struct symbols_place *place_out)
{
  static const char unknown[] = " in ? from ", at[] = " (+0x";
  const char *name = memmem(line, (size_t)(end - line), unknown, sizeof unknown - 1), *place = NULL;
  if (!name || end[-1] != ')') return false;
  name += sizeof unknown - 1;
  for (const char *next = name; (next = memmem(next, (size_t)(end - next), at, sizeof at - 1)); next++) place = next;
  if (!place) return false;
  char *build;
  uint64_t offset = strtoull(place + sizeof at - 1, &build, 16);
  if (*build != ' ') return false;
  *place_out = (struct symbols_place){name, place, build + 1, end - 1, offset};
  return build + 1 < end - 1;
}

static void symbols_put(struct symbols *symbols, FILE *stream, const char *line, const char *end)
{
  struct symbols_place place;
  const struct symbols_file *file = NULL;
  const struct symbol *symbol = NULL;
  if (symbols_parse(line, end, &place)) {
    file = symbols_file_of(symbols, place.file, (size_t)(place.file_end - place.file), place.build,
                           (size_t)(place.build_end - place.build));
    const char *base = memrchr(place.file, '/', (size_t)(place.file_end - place.file));
    if (base && !strncmp(base, "/_hipmm.", 8)) return;
  }
  if (file) symbol = symbols_find(file, file->base + place.offset);
  if (!symbol) {
    fprintf(stream, "%.*s\n", (int)(end - line), line);
    return;
  }
  int status = -1;
  bool is_mangled = symbols->demangle && !strncmp(symbol->name, "_Z", 2);
  char *readable = is_mangled ? symbols->demangle(symbol->name, NULL, NULL, &status) : NULL;
  fprintf(stream, "%.*s in %.500s+%#llx from %s (+%#llx)\n",
          (int)((const char *)memmem(line, (size_t)(end - line), " in ", 4) - line), line,
          readable ? readable : symbol->name, (unsigned long long)(file->base + place.offset - symbol->start),
          file->name, (unsigned long long)place.offset);
  free(readable);
}

char *symbols_name_frames(struct symbols *symbols, const char *text)
{
  char *named = NULL;
  size_t bytes;
  FILE *stream = open_memstream(&named, &bytes);
  if (!stream) return NULL;
  for (const char *end; *text; text = end + (*end == '\n')) {
    end = text + strcspn(text, "\n");
    if (end > text) symbols_put(symbols, stream, text, end);
  }
  if (!fclose(stream)) return named;
  free(named);
  return NULL;
}

/* ---- Life ---- */

struct symbols *symbols_open(void)
{
  struct symbols *symbols = calloc(1, sizeof *symbols);
  /* The library stays open. Without it the names of C++ stay as they are in the file. */
  void *library = symbols ? dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL) : NULL;
  void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
  if (found) memcpy(&symbols->demangle, &found, sizeof found);
  return symbols;
}

void symbols_close(struct symbols *symbols)
{
  for (struct symbols_file *file = symbols ? symbols->files : NULL, *next; file; file = next) {
    next = file->next;
    free(file->name);
    free(file->build);
    free(file->items);
    free(file->texts);
    free(file);
  }
  free(symbols);
}
