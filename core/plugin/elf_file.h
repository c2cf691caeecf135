/* SPDX-License-Identifier: MIT */
/* elf_file.h: reads a shared object as a file, without loading it. */
#ifndef HIPMM_CORE_PLUGIN_ELF_FILE_H
#define HIPMM_CORE_PLUGIN_ELF_FILE_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Whether the file has all that its headers promise. The dynamic linker maps what they promise, and a page behind the
 * file's end would end the process with SIGBUS. HIPMM_E_PLUGIN, with the reason in the error record, if something is
 * cut off. HIPMM_OK for a file that is no ELF file of this machine: the dynamic linker refuses it. */
enum hipmm_status elf_file_check(const char *file);

/* Visits the names that the file needs from others: undefined symbols, and libraries (`is_library`). Nothing of a file
 * that cannot be read. */
void elf_file_visit_imports(const char *file, void (*visit)(void *closure, const char *name, bool is_library),
                            void *closure);

#endif
