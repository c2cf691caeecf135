/* SPDX-License-Identifier: MIT */
/* environment.c: the process's environment and rights. Every variable and default file is looked up here, so that a
 * set-user-id process ignores them all. */
#include "environment.h"
#include "error.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

bool environment_is_privileged(void)
{
  return getauxval(AT_SECURE) != 0;
}

const char *environment_get(const char *name)
{
  return secure_getenv(name);
}

/* A sticky world-writable folder is no better: anyone may put a file there. */
static bool others_can_write(const struct stat *status)
{
  if (status->st_uid != 0 && status->st_uid != geteuid()) return true;
  if (status->st_mode & S_IWOTH) return true;
  return (status->st_mode & S_IWGRP) && status->st_gid != 0;
}

static enum hipmm_status check_writable(const char *path)
{
  struct stat status;
  if (stat(path, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", path, strerror(errno));
  if (!others_can_write(&status)) return HIPMM_OK;
  return error_set(
      HIPMM_E_PLUGIN,
      "%s: others can write it, and this process runs with raised rights; take their write permission away "
      "(chmod go-w) and give it to root (chown root)",
      path);
}

enum hipmm_status environment_check_trusted(const char *file)
{
  if (!environment_is_privileged()) return HIPMM_OK;
  char folder[PATH_MAX];
  if (strlen(file) >= sizeof folder) return error_set(HIPMM_E_PLUGIN, "%.200s…: name too long", file);
  strcpy(folder, file);
  enum hipmm_status status = check_writable(dirname(folder));
  return status ? status : check_writable(file);
}

const char *environment_find_config(char *buffer, size_t bytes)
{
  const char *named = environment_get("HIPMM_CONFIG");
  const char *const candidates[] = {environment_is_privileged() ? NULL : "hipmm.json",
                                    HIPMM_SYSCONFDIR "/hipmm/hipmm.json"};
  if (named && *named) {
    snprintf(buffer, bytes, "%s", named);
    return buffer;
  }
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    if (!candidates[i] || access(candidates[i], F_OK)) continue;
    snprintf(buffer, bytes, "%s", candidates[i]);
    return buffer;
  }
  return NULL;
}
