/* SPDX-License-Identifier: MIT */
/* elf_file.c: see elf_file.h; and whether a plugin's file is whole, before it is loaded. Reads with pread() alone: a mapping of a file
 * that is cut off is what this file protects from. */
#include "elf_file.h"
#include "../base/error.h"
#include "plugin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading ---- */

void *elf_file_read(const struct elf_file *elf, uint64_t offset, uint64_t bytes)
{
  if (offset > elf->bytes || bytes > elf->bytes - offset) return NULL;
  char *part = malloc(bytes + 1);
  for (uint64_t done = 0; part && done < bytes;) {
    ssize_t got = pread(elf->fd, part + done, bytes - done, (off_t)(offset + done));
    if (got <= 0) {
      free(part);
      return NULL;
    }
    done += (uint64_t)got;
  }
  if (part) part[bytes] = '\0';
  return part;
}

bool elf_file_open(struct elf_file *elf, const char *name)
{
  struct stat status;
  *elf = (struct elf_file){.name = name, .fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (elf->fd < 0) return false;
  bool is_ours = !fstat(elf->fd, &status) && S_ISREG(status.st_mode);
  elf->bytes = is_ours ? (uint64_t)status.st_size : 0;
  ElfW(Ehdr) *header = elf_file_read(elf, 0, sizeof *header);
  is_ours = header && !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
            header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
            header->e_phentsize == sizeof(ElfW(Phdr)) &&
            (!header->e_shoff || header->e_shentsize == sizeof(ElfW(Shdr)));
  if (is_ours) elf->header = *header;
  if (!is_ours) elf_file_close(elf);
  free(header);
  return is_ours;
}

void elf_file_close(const struct elf_file *elf)
{
  close(elf->fd);
}

/* ---- Whether it is whole ---- */

static enum hipmm_status elf_file_check_part(const struct elf_file *elf, const char *part, uint64_t offset,
                                             uint64_t bytes)
{
  if (offset <= elf->bytes && bytes <= elf->bytes - offset) return HIPMM_OK;
  unsigned long long end = (unsigned long long)offset + bytes;
  return error_set(HIPMM_E_PLUGIN,
                   "%s: the file is cut off: its %s end at byte %llu, and it has %llu bytes; build or copy it again",
                   elf->name, part, end, (unsigned long long)elf->bytes);
}

static enum hipmm_status elf_file_check_segments(const struct elf_file *elf)
{
  const ElfW(Ehdr) *header = &elf->header;
  ElfW(Phdr) *segments = elf_file_read(elf, header->e_phoff, header->e_phnum * sizeof *segments);
  enum hipmm_status status = HIPMM_OK;
  for (unsigned i = 0; segments && !status && i < header->e_phnum; i++)
    status = elf_file_check_part(elf, "segments", segments[i].p_offset, segments[i].p_filesz);
  free(segments);
  return status;
}

enum hipmm_status elf_file_check(const char *file)
{
  struct elf_file elf;
  if (!elf_file_open(&elf, file)) return HIPMM_OK;
  const ElfW(Ehdr) *header = &elf.header;
  enum hipmm_status status =
      elf_file_check_part(&elf, "program headers", header->e_phoff, header->e_phnum * sizeof(ElfW(Phdr)));
  if (!status) status = elf_file_check_segments(&elf);
  if (!status && header->e_shoff)
    status = elf_file_check_part(&elf, "section headers", header->e_shoff, header->e_shnum * sizeof(ElfW(Shdr)));
  elf_file_close(&elf);
  return status;
}

/* ---- What it imports ---- */

/* The section's content, and that of the table of texts that it refers to. The caller frees both. */
struct elf_file_table {
  char *rows, *texts;
  uint64_t rows_bytes, texts_bytes;
};

static struct elf_file_table elf_file_read_table(const struct elf_file *elf, const ElfW(Shdr) * sections, uint32_t type)
{
  struct elf_file_table table = {NULL, NULL, 0, 0};
  for (unsigned i = 0; i < elf->header.e_shnum; i++) {
    if (sections[i].sh_type != type || sections[i].sh_link >= elf->header.e_shnum) continue;
    const ElfW(Shdr) *texts = &sections[sections[i].sh_link];
    table.rows = elf_file_read(elf, sections[i].sh_offset, sections[i].sh_size);
    table.texts = elf_file_read(elf, texts->sh_offset, texts->sh_size);
    table.rows_bytes = table.rows && table.texts ? sections[i].sh_size : 0;
    table.texts_bytes = texts->sh_size;
    break;
  }
  return table;
}

static void elf_file_free_table(struct elf_file_table *table)
{
  free(table->rows);
  free(table->texts);
}

void elf_file_visit_imports(const char *file, void (*visit)(void *closure, const char *name, bool is_library),
                            void *closure)
{
  struct elf_file elf;
  if (!elf_file_open(&elf, file)) return;
  ElfW(Shdr) *sections = elf_file_read(&elf, elf.header.e_shoff, elf.header.e_shnum * sizeof *sections);
  if (sections) {
    struct elf_file_table symbols = elf_file_read_table(&elf, sections, SHT_DYNSYM);
    struct elf_file_table entries = elf_file_read_table(&elf, sections, SHT_DYNAMIC);
    const ElfW(Sym) *symbol = (const ElfW(Sym) *)(const void *)symbols.rows;
    const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(const void *)entries.rows;
    for (uint64_t i = 0; i < symbols.rows_bytes / sizeof *symbol; i++)
      if (symbol[i].st_shndx == SHN_UNDEF && symbol[i].st_name && symbol[i].st_name < symbols.texts_bytes)
        visit(closure, symbols.texts + symbol[i].st_name, false);
    for (uint64_t i = 0; i < entries.rows_bytes / sizeof *entry; i++)
      if (entry[i].d_tag == DT_NEEDED && entry[i].d_un.d_val < entries.texts_bytes)
        visit(closure, entries.texts + entry[i].d_un.d_val, true);
    elf_file_free_table(&symbols);
    elf_file_free_table(&entries);
  }
  free(sections);
  elf_file_close(&elf);
}
