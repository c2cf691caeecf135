/* SPDX-License-Identifier: MIT */
/* run_program.c: what kind of file the program is, since the loader puts nothing in front of some, and says nothing. */
#include "run.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- Finding ---- */

static bool run_program_is(const char *file)
{
  struct stat status;
  if (stat(file, &status)) return false;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  return S_ISREG(status.st_mode) && access(file, X_OK) == 0;
}

bool run_find_program(const char *name, char *file, size_t bytes)
{
  const char *path = getenv("PATH");
  int code = ENOENT;
  if (strchr(name, '/')) {
    snprintf(file, bytes, "%s", name);
    return run_program_is(file);
  }
  for (const char *at = path ? path : "/bin:/usr/bin"; *name; at++) {
    size_t length = strcspn(at, ":");
    snprintf(file, bytes, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
    if (run_program_is(file)) return true;
    if (errno == EACCES) code = EACCES;
    at += length;
    if (!*at) break;
  }
  errno = code;
  return false;
}

/* ---- Looking ---- */

static bool run_program_raises_rights(const char *file)
{
  struct stat status;
  if (stat(file, &status)) return false;
  if (status.st_mode & S_ISUID && status.st_uid != getuid()) return true;
  if (status.st_mode & S_ISGID && status.st_gid != getgid()) return true;
  return geteuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0;
}

/* Whether the program asks for a loader, as all that are linked with shared libraries do. */
static bool run_program_has_loader(int file, const Elf64_Ehdr *header)
{
  for (unsigned i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr segment;
    off_t at = (off_t)(header->e_phoff + i * sizeof segment);
    if (pread(file, &segment, sizeof segment, at) != (ssize_t)sizeof segment) return true;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

/* A script is its interpreter's to judge. */
static const char *run_program_why_not_elf(int file)
{
  Elf64_Ehdr header;
  if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return NULL;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is no 64-bit program, as hipmm is";
  if (header.e_phentsize == sizeof(Elf64_Phdr) && !run_program_has_loader(file, &header))
    return "is linked statically, so nothing can be put in front of its GPU runtime";
  return NULL;
}

const char *run_why_not(const char *name)
{
  if (run_program_raises_rights(name))
    return "is set-user-id, set-group-id or has capabilities, and for such programs the loader ignores LD_PRELOAD";
  int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  const char *why = run_program_why_not_elf(file);
  close(file);
  return why;
}
