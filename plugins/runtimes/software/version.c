/* SPDX-License-Identifier: MIT */
/* version.c: the release of HIP in whose numbers and structs the device answers. Called by the functions for which that
 * makes a difference, and by hipRuntimeGetVersion(). A program is linked to libamdhip64.so.5, .6 or .7, whatever library has
 * that name; a program with the device in itself has the device's headers. */
#include "../../../core/base/hip_layout.h"
#include "internal.h"
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Of the releases that a library of AMD's with that number is of, the one that the device was compiled for, else the
 * last. For an unknown program the last of all. */
static int version_of_library(long number)
{
  if (number == HIP_VERSION_MAJOR) return HIP_VERSION;
  if (number == 5) return 50700000;
  if (number == 6) return 60400000;
  return HIP_VERSION > HIP_LAYOUT_7_1 ? HIP_VERSION : HIP_LAYOUT_7_1;
}

/* 0: the name is not that of AMD's library with a number. */
static long version_number(const char *name)
{
  static const char stem[] = "libamdhip64.so.";
  const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name;
  return strncmp(file, stem, sizeof stem - 1) ? 0 : strtol(file + sizeof stem - 1, NULL, 10);
}

/* Of the libraries that the object is linked to. The loader has made an address of the table of names, or left an offset. */
static long version_linked(const struct dl_phdr_info *object, const ElfW(Dyn) * dynamic)
{
  const char *names = NULL;
  long number = 0;
  for (const ElfW(Dyn) *at = dynamic; at->d_tag != DT_NULL; at++)
    if (at->d_tag == DT_STRTAB)
      names = (const char *)(uintptr_t)(at->d_un.d_ptr + (at->d_un.d_ptr < object->dlpi_addr ? object->dlpi_addr : 0));
  for (const ElfW(Dyn) *at = dynamic; names && at->d_tag != DT_NULL && !number; at++)
    if (at->d_tag == DT_NEEDED) number = version_number(names + at->d_un.d_val);
  return number;
}

struct version_search {
  bool is_program; /* the first object */
  int version;
};

static int version_look_at(struct dl_phdr_info *object, size_t bytes, void *closure)
{
  struct version_search *search = closure;
  long number = version_number(object->dlpi_name);
  (void)bytes;
  for (unsigned i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    uintptr_t start = object->dlpi_addr + header->p_vaddr;
    bool has_device = header->p_type == PT_LOAD && (uintptr_t)&software - start < header->p_memsz;
    if (search->is_program && has_device) search->version = HIP_VERSION;
    if (header->p_type == PT_DYNAMIC && !number) number = version_linked(object, (const ElfW(Dyn) *)start);
  }
  search->is_program = false;
  if (!search->version && number) search->version = version_of_library(number);
  return search->version != 0;
}

void software_version_find(void)
{
  struct version_search search = {.is_program = true};
  dl_iterate_phdr(version_look_at, &search);
  software.program_version = search.version ? search.version : version_of_library(0);
}

int software_version(void)
{
  return software.config.hip_version ? software.config.hip_version : software.program_version;
}
