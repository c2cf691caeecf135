/* SPDX-License-Identifier: MIT */
/* result_file.c: see result_file.h. */
#include "result_file.h"
#include "../../../core/base/output_file.h"
#include "../cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the name is that of an open file, whatever name that file has. */
static bool result_file_is_open_already(const char *name)
{
  return output_file_standard(name) >= 0 || !strncmp(name, "/dev/fd/", 8) || !strncmp(name, "/proc/", 6);
}

/* Opens a file beside the result that has its rights. NULL: that folder takes none. */
static FILE *result_file_open_beside(struct result_file *result, mode_t rights)
{
  int length = snprintf(result->temporary, sizeof result->temporary, "%s.XXXXXX", result->path);
  if (length >= (int)sizeof result->temporary) return NULL;
  int descriptor = output_file_spare_standard(mkostemp(result->temporary, O_CLOEXEC));
  if (descriptor < 0) return NULL;
  FILE *file = fchmod(descriptor, rights & 07777) ? NULL : fdopen(descriptor, "w");
  if (file) return file;
  close(descriptor);
  unlink(result->temporary);
  return NULL;
}

bool result_file_open(struct result_file *result, const char *name)
{
  struct stat before, now;
  *result = (struct result_file){.file = NULL};
  const bool is_there = stat(name, &before) == 0;
  const bool is_lasting = strcmp(name, "-") != 0 && !result_file_is_open_already(name);
  if (is_lasting && is_there && S_ISREG(before.st_mode)) {
    int kept = output_file_open(name, OUTPUT_FILE_KEEP); /* whether it may be written */
    if (kept < 0) return false;
    close(kept);
    if (realpath(name, result->path)) result->file = result_file_open_beside(result, before.st_mode);
    if (result->file) return true;
    *result->path = *result->temporary = '\0';
  }
  result->file = output_open_result(name);
  if (!result->file) return false;
  bool is_new = is_lasting && !is_there && !fstat(fileno(result->file), &now) && S_ISREG(now.st_mode);
  if (!is_new || !realpath(name, result->path)) *result->path = '\0';
  return true;
}

bool result_file_keep(struct result_file *result)
{
  bool is_standard = result->file == stdout;
  bool good = is_standard || !fclose(result->file);
  if (good && *result->temporary) good = !rename(result->temporary, result->path);
  int code = errno;
  if (!good && *result->path) unlink(*result->temporary ? result->temporary : result->path);
  errno = code;
  return good;
}

bool result_file_drop(struct result_file *result)
{
  if (result->file != stdout) fclose(result->file);
  return *result->path && !unlink(*result->temporary ? result->temporary : result->path);
}
