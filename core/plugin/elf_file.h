/* SPDX-License-Identifier: MIT */
/* elf_file.h: a shared object or program as a file, without loading it. Nothing in it is trusted. */
#ifndef HIPMM_CORE_PLUGIN_ELF_FILE_H
#define HIPMM_CORE_PLUGIN_ELF_FILE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_file {
  const char *name;
  int fd;
  uint64_t bytes;
  ElfW(Ehdr) header;
};

/* False if the file cannot be read, or is none of this machine's kind. */
bool elf_file_open(struct elf_file *elf, const char *name);
void elf_file_close(const struct elf_file *elf);

/* Reads a part of the file. The caller frees it; NULL if it is not all there. A text that ends the part is terminated. */
void *elf_file_read(const struct elf_file *elf, uint64_t offset, uint64_t bytes);

#endif
