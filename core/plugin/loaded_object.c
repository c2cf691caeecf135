/* SPDX-License-Identifier: MIT */
/* loaded_object.c: finds loaded objects and their segments. Called by descriptor.c, runtime_library.c and
 * tools/preload/. Reads nothing that lies in no segment. */
#include "loaded_object.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

/* A search for the segment that holds an address. */
struct loaded_search {
  const char *address;
  struct loaded_segment found;
};

static bool loaded_object_holds(const struct loaded_segment *segment, const char *address)
{
  return address >= segment->start && address < segment->end;
}

static int loaded_object_search(struct dl_phdr_info *object, size_t bytes, void *closure)
{
  struct loaded_search *search = closure;
  (void)bytes;
  for (unsigned i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_R)) continue;
    const char *start = (const char *)(uintptr_t)(object->dlpi_addr + header->p_vaddr);
    search->found = (struct loaded_segment){start, start + header->p_memsz};
    if (loaded_object_holds(&search->found, search->address)) return 1;
  }
  return 0;
}

size_t loaded_bytes(struct loaded *loaded, const void *address)
{
  enum { RECENT = sizeof loaded->recent / sizeof *loaded->recent };
  struct loaded_search search = {.address = address};
  for (unsigned i = 0; i < RECENT; i++)
    if (loaded_object_holds(&loaded->recent[i], search.address))
      return (size_t)(loaded->recent[i].end - search.address);
  if (!dl_iterate_phdr(loaded_object_search, &search)) return 0;
  loaded->recent[loaded->next++ % RECENT] = search.found;
  return (size_t)(search.found.end - search.address);
}

bool loaded_has_text(struct loaded *loaded, const char *text)
{
  size_t bytes = loaded_bytes(loaded, text);
  return bytes && strnlen(text, bytes) < bytes;
}

bool loaded_has_texts(struct loaded *loaded, const char *const *texts, size_t *n_out)
{
  if ((uintptr_t)texts % _Alignof(const char *)) return false;
  for (size_t n = 0, most = loaded_bytes(loaded, texts) / sizeof *texts; n < most; n++) {
    *n_out = n;
    if (!texts[n]) return true;
    if (!loaded_has_text(loaded, texts[n])) return false;
  }
  return false;
}

/* ---- By name ---- */

struct loaded_named {
  const char *stem;
  unsigned skip;
  char *file;
};

bool loaded_has_stem(const char *file, const char *stem)
{
  const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
  size_t length = strlen(stem);
  return !strncmp(name, stem, length) && (name[length] == '.' || name[length] == '-');
}

/* The program itself has an empty name. */
static int loaded_look_at(struct dl_phdr_info *object, size_t bytes, void *closure)
{
  struct loaded_named *named = closure;
  const char *file = object->dlpi_name;
  (void)bytes;
  if (!*file || strlen(file) >= LOADED_FILE_BYTES || (named->stem && !loaded_has_stem(file, named->stem))) return 0;
  if (named->skip-- != 0) return 0;
  strcpy(named->file, file);
  return 1;
}

bool loaded_find(const char *stem, unsigned skip, char file_out[LOADED_FILE_BYTES])
{
  struct loaded_named named = {stem, skip, file_out};
  return dl_iterate_phdr(loaded_look_at, &named);
}
