/* SPDX-License-Identifier: MIT */
/* environment.c: the process's environment and rights. Every variable and default file is looked up here, so that a
 * privileged process ignores all of them. */
#include "environment.h"
#include "error.h"

#include <errno.h>
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

/* ---- Trust ---- */

static bool environment_is_ours(const struct stat *status)
{
  return status->st_uid == 0 || status->st_uid == geteuid();
}

static bool environment_others_can_write(const struct stat *status)
{
  return !environment_is_ours(status) || status->st_mode & S_IWOTH ||
         (status->st_mode & S_IWGRP && status->st_gid != 0);
}

static enum hipmm_status environment_refuse_writable(const char *path)
{
  return error_set(
      HIPMM_E_PLUGIN,
      "%s: others can write it, and this process runs with raised rights; take their write permission away "
      "(chmod go-w) and give it to root (chown root)",
      path);
}

/* A walk along a path, from the root to the file. */
struct walk {
  char here[PATH_MAX]; /* without symbolic links; without a slash at its end, so the root is "" */
  char rest[PATH_MAX]; /* not walked yet */
  int links;           /* symbolic links followed so far */
};

enum { MOST_LINKS = 40 };

/* In a sticky folder such as /tmp, other users cannot replace what is ours, so such a folder may be on the path. The
 * file's own folder may not be one: other users could put files beside it. */
static enum hipmm_status environment_check_folder(const struct walk *walk)
{
  struct stat status;
  const char *path = *walk->here ? walk->here : "/";
  if (stat(path, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", path, strerror(errno));
  bool is_last = !strchr(walk->rest, '/');
  if (environment_is_ours(&status) && status.st_mode & S_ISVTX && !is_last) return HIPMM_OK;
  return environment_others_can_write(&status) ? environment_refuse_writable(path) : HIPMM_OK;
}

/* Replaces the symbolic link at `here` by its target. */
static enum hipmm_status environment_follow(struct walk *walk)
{
  char target[PATH_MAX], whole[2 * PATH_MAX + 2];
  ssize_t length = readlink(walk->here, target, sizeof target - 1);
  if (length < 0) return error_set(HIPMM_E_PLUGIN, "%s: %s", walk->here, strerror(errno));
  target[length] = '\0';
  snprintf(whole, sizeof whole, "%s%s%s", target, *walk->rest ? "/" : "", walk->rest);
  if (++walk->links > MOST_LINKS || strlen(whole) >= sizeof walk->rest)
    return error_set(HIPMM_E_PLUGIN, "%s: leads through too many links", walk->here);
  strcpy(walk->rest, whole);
  *(*target == '/' ? walk->here : strrchr(walk->here, '/')) = '\0';
  return HIPMM_OK;
}

/* Walks to the next name of the rest. */
static enum hipmm_status environment_step(struct walk *walk)
{
  struct stat status;
  size_t used = strlen(walk->here), length = strcspn(walk->rest, "/");
  if (length == 2 && !strncmp(walk->rest, "..", 2)) {
    if (used) *strrchr(walk->here, '/') = '\0';
  } else if (length && !(length == 1 && *walk->rest == '.')) {
    if (used + length + 2 > sizeof walk->here) return error_set(HIPMM_E_PLUGIN, "%.200s…: name too long", walk->here);
    snprintf(walk->here + used, sizeof walk->here - used, "/%.*s", (int)length, walk->rest);
  }
  length += strspn(walk->rest + length, "/");
  memmove(walk->rest, walk->rest + length, strlen(walk->rest + length) + 1);
  if (strlen(walk->here) <= used) return HIPMM_OK;
  if (lstat(walk->here, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", walk->here, strerror(errno));
  if (!environment_is_ours(&status)) return environment_refuse_writable(walk->here);
  return S_ISLNK(status.st_mode) ? environment_follow(walk) : HIPMM_OK;
}

/* Checks every folder on the path, through every symbolic link, so that no other user decides where it leads. */
enum hipmm_status environment_check_trusted(const char *file)
{
  struct walk walk = {.links = 0};
  char folder[PATH_MAX] = "";
  struct stat status;
  if (!environment_is_privileged()) return HIPMM_OK;
  if (*file != '/' && !getcwd(folder, sizeof folder)) return error_set(HIPMM_E_PLUGIN, "%s: %s", file, strerror(errno));
  if (strlen(folder) + strlen(file) + 2 > sizeof walk.rest)
    return error_set(HIPMM_E_PLUGIN, "%.200s…: name too long", file);
  strcat(strcat(strcpy(walk.rest, folder), "/"), file);
  memmove(walk.rest, walk.rest + strspn(walk.rest, "/"), strlen(walk.rest + strspn(walk.rest, "/")) + 1);
  while (*walk.rest) {
    enum hipmm_status refused = environment_check_folder(&walk);
    if (!refused) refused = environment_step(&walk);
    if (refused) return refused;
  }
  if (stat(walk.here, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", walk.here, strerror(errno));
  return environment_others_can_write(&status) ? environment_refuse_writable(walk.here) : HIPMM_OK;
}

/* ---- Configuration ---- */

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
