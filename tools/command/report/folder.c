/* SPDX-License-Identifier: MIT */
/* folder.c: see report.h. */
#include "../cmd.h"
#include "../trace/logs.h"
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The type, as of st_mode; 0: nothing is there. */
static mode_t folder_type(const char *file)
{
  struct stat status;
  return stat(file, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

/* Hidden files are no logs, nor are pages that were written beside them. */
static int folder_takes(const struct dirent *entry)
{
  size_t length = strlen(entry->d_name);
  return *entry->d_name != '.' && (length < 5 || strcmp(entry->d_name + length - 5, ".html") != 0);
}

static bool folder_add(struct folder_files *files, const char *name)
{
  char *copy = files->n < TRACE_MOST_LOGS ? strdup(name) : NULL;
  if (copy) files->items[files->n++] = copy;
  return copy != NULL;
}

/* The files of a folder, in order of the numbers in their names. */
static bool folder_add_all(struct folder_files *files, const char *folder)
{
  struct dirent **entries;
  char path[PATH_MAX];
  const size_t before = files->n;
  int n = scandir(folder, &entries, folder_takes, versionsort);
  bool good = n >= 0;
  if (!good) say("report: %s: %s", folder, strerror(errno));
  for (int i = 0; i < n; i++) {
    int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (good && length > 0 && (size_t)length < sizeof path && folder_type(path) == S_IFREG &&
        !folder_add(files, path)) {
      say("report: %s: out of memory, or more than %d logs", folder, TRACE_MOST_LOGS);
      good = false;
    }
    free(entries[i]);
  }
  if (n >= 0) free(entries);
  if (good && files->n == before) {
    say("report: %s: the folder has no logs", folder);
    good = false;
  }
  return good;
}

bool folder_expand(struct folder_files *files, char *const *operands, size_t n)
{
  *files = (struct folder_files){calloc(TRACE_MOST_LOGS, sizeof(char *)), 0};
  bool good = files->items != NULL;
  if (!good) say("report: out of memory");
  for (size_t i = 0; good && i < n; i++)
    if (folder_type(operands[i]) == S_IFDIR) {
      good = folder_add_all(files, operands[i]);
    } else if (!folder_add(files, operands[i])) {
      say("report: out of memory, or more than %d logs", TRACE_MOST_LOGS);
      good = false;
    }
  if (!good) folder_clear(files);
  return good;
}

void folder_clear(struct folder_files *files)
{
  for (size_t i = 0; i < files->n; i++) free(files->items[i]);
  free(files->items);
  *files = (struct folder_files){NULL, 0};
}
