/* SPDX-License-Identifier: MIT */
/* plugin_load.c: loads plugin files with libltdl and keeps them. Called by graph, the runtime and the command. Never
 * executes a function of a plugin; descriptor.c decides whether its descriptor can be used. */
#include "../base/error.h"
#include "../base/log.h"
#include "../base/trust.h"
#include "plugin.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <ltdl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libltdl is not thread-safe, and the list is shared. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plugin *loaded;

/* ---- One file ---- */

/* Opening a pipe would wait for a writer. */
enum hipmm_status plugin_check_file(const char *file)
{
  struct stat status;
  char target[PATH_MAX];
  ssize_t length = readlink(file, target, sizeof target - 1);
  if (stat(file, &status) && errno == ENOENT && length > 0)
    return error_set(HIPMM_E_PLUGIN, "%s: is a link to %.*s, which does not exist", file, (int)length, target);
  if (stat(file, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", file, strerror(errno));
  return S_ISREG(status.st_mode) ? elf_file_check(file) : error_set(HIPMM_E_PLUGIN, "%s: not a regular file", file);
}

/* libltdl reports "file not found" for every failure, and binds lazily, so that a missing symbol would end the process
 * at the first call. dlopen() with RTLD_NOW reports the reason, and a missing symbol too. */
static enum hipmm_status plugin_load_probe(const char *file)
{
  if (dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return HIPMM_OK;
  const char *reason = dlerror();
  bool named = strstr(reason, file) != NULL;
  return error_set(HIPMM_E_PLUGIN, "%s%s%s (`ldd` shows a file's dependencies)", named ? "" : file, named ? "" : ": ",
                   reason);
}

static lt_dlhandle plugin_load_open(const char *file)
{
  lt_dladvise advise;
  if (lt_dladvise_init(&advise)) return NULL;
  lt_dlhandle handle = NULL;
  if (!lt_dladvise_local(&advise) && !lt_dladvise_resident(&advise)) handle = lt_dlopenadvise(file, advise);
  lt_dladvise_destroy(&advise);
  return handle;
}

/* libltdl looks for the file's stem, in which all but letters and digits is "_", and then for the plain name. */
static enum hipmm_status plugin_load_refuse_nameless(const char *file)
{
  char stem[NAME_MAX + 1];
  snprintf(stem, sizeof stem, "%s", strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
  stem[strcspn(stem, ".")] = '\0';
  for (char *c = stem; *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return error_set(
      HIPMM_E_PLUGIN_ABI,
      "%s: no plugin descriptor: it exports neither %s_LTX_hipmm_plugin nor hipmm_plugin; a plugin exports "
      "its descriptor under one of these names (HIPMM_EXPORT, and extern \"C\" in C++)",
      file, stem);
}

/* dlopen() has just loaded the file, so what libltdl lacks is memory, whatever reason it has. */
static enum hipmm_status plugin_load_refuse(const char *file)
{
  return error_set(HIPMM_E_OUT_OF_MEMORY, "%s: no host memory to load it (libltdl: %s)", file, lt_dlerror());
}

/* Where lt_dlinit() fails it counts as called: without lt_dlexit() the next one would succeed with nothing done, and
 * lt_dlopenadvise() crash. */
static bool plugin_load_start(void)
{
  static bool is_started;
  if (!is_started && !(is_started = !lt_dlinit())) lt_dlexit();
  return is_started;
}

static enum hipmm_status plugin_load_descriptor(const char *file, const void **descriptor_out)
{
  enum hipmm_status status = plugin_check_file(file);
  if (!status) status = trust_check_named(file);
  if (!status) status = plugin_load_probe(file);
  if (status) return status;
  lt_dlhandle handle = plugin_load_start() ? plugin_load_open(file) : NULL;
  if (!handle) return plugin_load_refuse(file);
  errno = 0;
  *descriptor_out = lt_dlsym(handle, "hipmm_plugin");
  if (!*descriptor_out && errno == ENOMEM) return plugin_load_refuse(file);
  return *descriptor_out ? HIPMM_OK : plugin_load_refuse_nameless(file);
}

static const struct plugin *plugin_load_find(const char *file)
{
  for (const struct plugin *plugin = loaded; plugin; plugin = plugin->next)
    if (!strcmp(plugin->file, file)) return plugin;
  return NULL;
}

static enum hipmm_status plugin_load_new(const char *file, const char *type, const struct plugin **plugin_out)
{
  const void *descriptor = NULL;
  bool is_builtin = !strncmp(file, BUILTIN_FOLDER "/", sizeof BUILTIN_FOLDER);
  if (is_builtin) descriptor = builtin_find(type);
  enum hipmm_status status = is_builtin ? HIPMM_OK : plugin_load_descriptor(file, &descriptor);
  if (status) return status;
  struct plugin *plugin = calloc(1, sizeof *plugin);
  if (plugin) plugin->file = strdup(file);
  status = plugin && plugin->file ? descriptor_adopt(descriptor, file, type, &plugin->descriptor)
                                  : error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (status) {
    if (plugin) free(plugin->file);
    free(plugin);
    return status;
  }
  plugin->next = loaded;
  loaded = plugin;
  *plugin_out = plugin;
  log_line(HIPMM_LOG_DEBUG, "plugin", "%s %s from %s", type, plugin->descriptor.version, file);
  return HIPMM_OK;
}

/* Loads the file unless it is loaded already. */
static enum hipmm_status plugin_load_file(const char *file, const char *type, const struct plugin **plugin_out)
{
  pthread_mutex_lock(&lock);
  *plugin_out = plugin_load_find(file);
  enum hipmm_status status = *plugin_out ? HIPMM_OK : plugin_load_new(file, type, plugin_out);
  pthread_mutex_unlock(&lock);
  return status;
}

enum hipmm_status plugin_get(const struct plugin_path *path, const char *type, const struct plugin **plugin_out)
{
  char file[PATH_MAX];
  const struct plugin *plugin;
  enum hipmm_status status = plugin_path_find(path, type, file, sizeof file);
  if (!status) status = plugin_load_file(file, type, &plugin);
  if (!status) *plugin_out = plugin;
  return status;
}

/* ---- All files ---- */

struct folder_scan {
  void (*visit)(void *closure, const struct plugin_candidate *candidate);
  void *closure;
};

static void plugin_load_visit(void *closure, const char *type, const char *file, bool is_shadowed)
{
  const struct folder_scan *scan = closure;
  struct plugin_candidate candidate = {.type = type, .file = file, .shadowed = is_shadowed};
  if (plugin_load_file(file, type, &candidate.plugin)) {
    candidate.plugin = NULL;
    candidate.refusal = hipmm_last_error_message();
  }
  scan->visit(scan->closure, &candidate);
}

void plugin_scan(const struct plugin_path *path, void (*visit)(void *closure, const struct plugin_candidate *candidate),
                 void *closure)
{
  plugin_path_visit(path, plugin_load_visit, &(struct folder_scan){visit, closure});
}

struct plugin_list {
  const struct plugin **items;
  size_t count;
};

static void plugin_load_collect(void *closure, const struct plugin_candidate *candidate)
{
  struct plugin_list *list = closure;
  if (!candidate->plugin || candidate->shadowed) return;
  const struct plugin **items = realloc(list->items, (list->count + 1) * sizeof *items);
  if (!items) return;
  list->items = items;
  items[list->count++] = candidate->plugin;
}

static int plugin_load_compare(const void *a, const void *b)
{
  const struct plugin *const *left = a, *const *right = b;
  return strcmp((*left)->descriptor.type, (*right)->descriptor.type);
}

const struct plugin **plugin_all(const struct plugin_path *path, size_t *count_out)
{
  struct plugin_list list = {0};
  plugin_scan(path, plugin_load_collect, &list);
  if (list.count) qsort(list.items, list.count, sizeof *list.items, plugin_load_compare);
  *count_out = list.count;
  return list.items;
}
