/* SPDX-License-Identifier: MIT */
/* trust.c: see trust.h. Every file that is found rather than named is judged here. */
#include "trust.h"
#include "environment.h"
#include "error.h"
#include "log.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- One file or folder ---- */

static bool trust_is_ours(const struct stat *status)
{
  return status->st_uid == 0 || status->st_uid == geteuid();
}

/* A user's private group has the user's number and no other members: systems with such groups let new files be written by it
 * (pam_umask). */
static bool trust_is_private_group(gid_t group)
{
  return group == getegid() && group == geteuid() && !environment_is_privileged();
}

/* Why other users than root can change it; NULL: they cannot. */
static const char *trust_fault(const struct stat *status)
{
  if (!trust_is_ours(status)) return "belongs to another user";
  if (status->st_mode & S_IWOTH) return "can be written by every user";
  bool is_shared = status->st_mode & S_IWGRP && status->st_gid != 0 && !trust_is_private_group(status->st_gid);
  return is_shared ? "can be written by its group" : NULL;
}

/* ---- A whole path ---- */

static enum hipmm_status trust_refuse_writable(const char *path)
{
  return error_set(
      HIPMM_E_PLUGIN,
      "%s: others can write it, and this process runs with raised rights; take their write permission away "
      "(chmod go-w) and give it to root (chown root)",
      path);
}

/* A walk along a path, from the root to the file. */
struct trust_walk {
  char here[PATH_MAX]; /* without symbolic links; without a slash at its end, so the root is "" */
  char rest[PATH_MAX]; /* not walked yet */
  int links;           /* symbolic links followed so far */
};

enum { MOST_LINKS = 40 };

/* In a sticky folder such as /tmp, other users cannot replace what is ours, so such a folder may be on the path. The
 * file's own folder may not be one: other users could put files beside it. */
static enum hipmm_status trust_check_folder(const struct trust_walk *walk)
{
  struct stat status;
  const char *path = *walk->here ? walk->here : "/";
  if (stat(path, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", path, strerror(errno));
  bool is_last = !strchr(walk->rest, '/');
  if (trust_is_ours(&status) && status.st_mode & S_ISVTX && !is_last) return HIPMM_OK;
  return trust_fault(&status) ? trust_refuse_writable(path) : HIPMM_OK;
}

/* Replaces the symbolic link at `here` by its target. */
static enum hipmm_status trust_follow(struct trust_walk *walk)
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
static enum hipmm_status trust_step(struct trust_walk *walk)
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
  if (!trust_is_ours(&status)) return trust_refuse_writable(walk->here);
  return S_ISLNK(status.st_mode) ? trust_follow(walk) : HIPMM_OK;
}

/* Checks every folder on the path, through every symbolic link, so that no other user decides where it leads. */
static enum hipmm_status trust_walk(const char *file)
{
  struct trust_walk walk = {.links = 0};
  char folder[PATH_MAX] = "";
  struct stat status;
  if (*file != '/' && !getcwd(folder, sizeof folder)) return error_set(HIPMM_E_PLUGIN, "%s: %s", file, strerror(errno));
  if (strlen(folder) + strlen(file) + 2 > sizeof walk.rest)
    return error_set(HIPMM_E_PLUGIN, "%.200s…: name too long", file);
  strcat(strcat(strcpy(walk.rest, folder), "/"), file);
  memmove(walk.rest, walk.rest + strspn(walk.rest, "/"), strlen(walk.rest + strspn(walk.rest, "/")) + 1);
  while (*walk.rest) {
    enum hipmm_status refused = trust_check_folder(&walk);
    if (!refused) refused = trust_step(&walk);
    if (refused) return refused;
  }
  if (stat(walk.here, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", walk.here, strerror(errno));
  return trust_fault(&status) ? trust_refuse_writable(walk.here) : HIPMM_OK;
}

enum hipmm_status trust_check_named(const char *file)
{
  return environment_is_privileged() ? trust_walk(file) : HIPMM_OK;
}

/* ---- What is found ---- */

/* The dynamic linker knows a program only by the word that it was called by. */
bool trust_find_own_file(char *file)
{
  Dl_info info;
  struct link_map *map;
  static const char here;
  if (!dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP)) return false;
  return realpath(*map->l_name ? map->l_name : "/proc/self/exe", file) != NULL;
}

/* Whoever can write this code's own folder can put other code in its place, as the user who installed it for all. */
static bool trust_is_as_own(const struct stat *status)
{
  char file[PATH_MAX];
  struct stat own;
  if (!trust_find_own_file(file)) return false;
  *strrchr(file, '/') = '\0';
  return !stat(*file ? file : "/", &own) && status->st_uid == own.st_uid && status->st_gid == own.st_gid &&
         !(status->st_mode & ~own.st_mode & S_IWGRP) && !(status->st_mode & S_IWOTH);
}

/* As trust_fault(). `is_installed`: whoever can write this code's folder may write it too. */
static const char *trust_fault_at(const char *path, bool is_installed)
{
  struct stat status;
  if (stat(path, &status)) return "cannot be looked at";
  const char *fault = trust_fault(&status);
  return fault && is_installed && trust_is_as_own(&status) ? NULL : fault;
}

bool trust_installed(const char *path)
{
  const char *fault = trust_fault_at(path, true);
  if (fault)
    log_line(HIPMM_LOG_WARNING, "plugin", "%s is not used: nobody named it, and it %s; HIPMM_PLUGIN_PATH names folders",
             path, fault);
  return !fault;
}

/* A link of the user's own may lead where others decide. The walk's error is not the caller's. */
static bool trust_is_misled(const char *file)
{
  struct stat status;
  if (lstat(file, &status) || !S_ISLNK(status.st_mode)) return false;
  const struct error_record before = error_mark();
  bool is_misled = trust_walk(file) != HIPMM_OK;
  error_return_to_mark(&before);
  return is_misled;
}

/* Says it once for each file and change of it, however often a process looks. */
static void trust_notify_unused(const char *file, const char *what, const char *fault, bool is_installed)
{
  static atomic_ullong notified[2];
  char folder[PATH_MAX] = "";
  struct stat status;
  if (stat(file, &status)) return;
  unsigned long long state = (unsigned long long)status.st_ino ^ (unsigned long long)status.st_ctim.tv_nsec << 32;
  if (atomic_exchange(&notified[is_installed], state) == state) return;
  if (*file != '/' && getcwd(folder, sizeof folder - 1)) strcat(folder, "/");
  log_line(HIPMM_LOG_WARNING, "config",
           "%s%s is not used: nobody named it, and %s %s. A graph can run code; to use this one, set HIPMM_CONFIG=%s%s",
           folder, file, what, fault, folder, file);
}

/* Whether there is such a file, and nobody but this user and root decides what it says. */
static bool trust_finds(const char *folder, const char *file, bool is_installed)
{
  if (access(file, F_OK)) return false;
  const char *fault = trust_fault_at(file, is_installed), *what = "it";
  if (!fault && trust_is_misled(file)) fault = "is a link that other users can lead elsewhere";
  if (!fault) {
    what = "its folder";
    fault = trust_fault_at(folder, is_installed);
  }
  if (fault) trust_notify_unused(file, what, fault, is_installed);
  return !fault;
}

const char *trust_find_config(char *buffer, size_t bytes)
{
  const char *named = environment_get("HIPMM_CONFIG"), *file = named && *named ? named : NULL;
  if (!file && !environment_is_privileged() && trust_finds(".", "hipmm.json", false)) file = "hipmm.json";
  if (!file && trust_finds(HIPMM_SYSCONFDIR "/hipmm", HIPMM_SYSCONFDIR "/hipmm/hipmm.json", true))
    file = HIPMM_SYSCONFDIR "/hipmm/hipmm.json";
  if (file) snprintf(buffer, bytes, "%s", file);
  return file ? buffer : NULL;
}
