/* SPDX-License-Identifier: MIT */
/* plugin.c: finds plugin files, loads them with libltdl and keeps them. Nothing of a plugin is executed here; whether
 * its descriptor can be trusted is descriptor.c's to say. */
#include "plugin.h"
#include "../base/cancel.h"
#include "../base/environment.h"
#include "../base/error.h"
#include "../base/log.h"
#include "descriptor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <ltdl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libltdl is not thread-safe, and the list below is shared. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plugin *loaded;

/* ---- Folders ---- */

/* The folders to search, in order. */
struct folders {
  char **items;
  size_t count;
};

/* Each once: the first place counts. */
static void plugin_add_folder(struct folders *folders, const char *folder, size_t length)
{
  if (!length) return;
  for (size_t i = 0; i < folders->count; i++)
    if (strlen(folders->items[i]) == length && !strncmp(folders->items[i], folder, length)) return;
  char **items = realloc(folders->items, (folders->count + 1) * sizeof *items);
  if (!items) return;
  folders->items = items;
  items[folders->count] = strndup(folder, length);
  if (items[folders->count]) folders->count++;
}

static void plugin_add_colon_separated(struct folders *folders, const char *text)
{
  while (text && *text) {
    size_t length = strcspn(text, ":");
    plugin_add_folder(folders, text, length);
    text += length + (text[length] == ':');
  }
}

/* The file that this code is in. Of a program the linker knows no more than the word that it was called by. */
static bool plugin_find_own_file(char *file)
{
  Dl_info info;
  struct link_map *map;
  if (!dladdr1(&lock, &info, (void **)&map, RTLD_DL_LINKMAP)) return false;
  return realpath(*map->l_name ? map->l_name : "/proc/self/exe", file) != NULL;
}

/* Where this code lies tells where its plugins lie, wherever the whole was moved to: in a build tree beside the
 * library's .libs or the program, in an installation under ../lib or beside the library. What `hipmm run` preloads lies
 * in a folder of its own, in an installation below the plugins. Found once: none of it moves while the process
 * lives. */
static struct folders surroundings;
static pthread_once_t surroundings_once = PTHREAD_ONCE_INIT;

static void plugin_find_surroundings(void)
{
  enum { USUAL = 4, ALL = 6 };
  static const char *const places[ALL] = {
      "plugins", "../plugins",   "hipmm/" HIPMM_PLUGIN_ABI_TEXT, "../lib/hipmm/" HIPMM_PLUGIN_ABI_TEXT,
      "..",      "../../plugins"};
  char folder[PATH_MAX], resolved[PATH_MAX];
  if (!plugin_find_own_file(folder)) return;
  bool is_preloaded = !strcmp(strrchr(folder, '/'), "/preload.so");
  *strrchr(folder, '/') = '\0';
  for (size_t i = is_preloaded ? USUAL : 0; i < (is_preloaded ? ALL : USUAL); i++) {
    char place[PATH_MAX + 64];
    snprintf(place, sizeof place, "%s/%s", folder, places[i]);
    if (realpath(place, resolved)) plugin_add_folder(&surroundings, resolved, strlen(resolved));
  }
}

static struct folders plugin_folders_of(const struct plugin_path *path)
{
  struct folders folders = {0};
  pthread_once(&surroundings_once, plugin_find_surroundings);
  plugin_add_colon_separated(&folders, environment_get("HIPMM_PLUGIN_PATH"));
  for (size_t i = 0; path && i < path->n_folders; i++)
    plugin_add_folder(&folders, path->folders[i], strlen(path->folders[i]));
  for (size_t i = 0; i < surroundings.count; i++)
    plugin_add_folder(&folders, surroundings.items[i], strlen(surroundings.items[i]));
  plugin_add_folder(&folders, HIPMM_PLUGIN_DIR, strlen(HIPMM_PLUGIN_DIR));
  return folders;
}

static void plugin_folders_free(struct folders *folders)
{
  for (size_t i = 0; i < folders->count; i++) free(folders->items[i]);
  free(folders->items);
}

/* The plugin's file in this folder: TYPE.so, or as a build tree lays it out. */
static bool plugin_find_in(const char *folder, const char *type, char *file, size_t bytes)
{
  snprintf(file, bytes, "%s/%s.so", folder, type);
  if (!access(file, F_OK)) return true;
  snprintf(file, bytes, "%s/%s/.libs/%s.so", folder, type, type);
  if (!access(file, F_OK)) return true;
  snprintf(file, bytes, "%s/runtimes/%s/.libs/%s.so", folder, type, type);
  return !access(file, F_OK);
}

static bool plugin_find_file(const struct folders *folders, const char *type, char *file, size_t bytes)
{
  for (size_t i = 0; i < folders->count; i++)
    if (plugin_find_in(folders->items[i], type, file, bytes)) return true;
  return false;
}

/* ---- Loading ---- */

/* Opening a pipe would wait for somebody to write into it. */
static enum hipmm_status plugin_check_regular(const char *file)
{
  struct stat status;
  if (stat(file, &status)) return error_set(HIPMM_E_PLUGIN, "%s: %s", file, strerror(errno));
  return S_ISREG(status.st_mode) ? HIPMM_OK : error_set(HIPMM_E_PLUGIN, "%s: not a regular file", file);
}

/* libltdl answers "file not found" whatever the reason, and binds lazily, so that a missing symbol would end the
 * process at its first call. The dynamic linker, asked for everything at once, says what is wrong. */
static enum hipmm_status plugin_probe(const char *file)
{
  if (dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return HIPMM_OK;
  const char *reason = dlerror();
  bool named = strstr(reason, file) != NULL;
  return error_set(HIPMM_E_PLUGIN, "%s%s%s (`ldd %s` shows its dependencies)", named ? "" : file, named ? "" : ": ",
                   reason, file);
}

static lt_dlhandle plugin_open_resident(const char *file)
{
  lt_dladvise advise;
  if (lt_dladvise_init(&advise)) return NULL;
  lt_dlhandle handle = NULL;
  if (!lt_dladvise_local(&advise) && !lt_dladvise_resident(&advise)) handle = lt_dlopenadvise(file, advise);
  lt_dladvise_destroy(&advise);
  return handle;
}

static enum hipmm_status plugin_open_descriptor(const char *file, const void **descriptor_out)
{
  enum hipmm_status status = plugin_check_regular(file);
  if (!status) status = environment_check_trusted(file);
  if (!status) status = plugin_probe(file);
  if (status) return status;
  static bool initialised;
  if (!initialised && lt_dlinit()) return error_set(HIPMM_E_PLUGIN, "libltdl cannot start: %s", lt_dlerror());
  initialised = true;
  lt_dlhandle handle = plugin_open_resident(file);
  if (!handle) return error_set(HIPMM_E_PLUGIN, "%s: %s", file, lt_dlerror());
  *descriptor_out = lt_dlsym(handle, "hipmm_plugin");
  if (!*descriptor_out)
    return error_set(HIPMM_E_PLUGIN_ABI,
                     "%s: no plugin descriptor; a plugin exports the constant TYPE_LTX_hipmm_plugin, "
                     "or hipmm_plugin",
                     file);
  return HIPMM_OK;
}

static const struct plugin *plugin_find_loaded(const char *file)
{
  for (const struct plugin *plugin = loaded; plugin; plugin = plugin->next)
    if (!strcmp(plugin->file, file)) return plugin;
  return NULL;
}

static enum hipmm_status plugin_load(const char *file, const char *type, const struct plugin **plugin_out)
{
  const void *descriptor;
  *plugin_out = plugin_find_loaded(file);
  if (*plugin_out) return HIPMM_OK;
  enum hipmm_status status = plugin_open_descriptor(file, &descriptor);
  if (status) return status;
  struct plugin *plugin = calloc(1, sizeof *plugin);
  if (plugin) plugin->file = strdup(file);
  if (!plugin || !plugin->file) {
    free(plugin);
    return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  }
  status = descriptor_adopt(descriptor, file, type, &plugin->descriptor);
  if (status) {
    free(plugin->file);
    free(plugin);
    return status;
  }
  plugin->next = loaded;
  loaded = plugin;
  *plugin_out = plugin;
  log_line(HIPMM_LOG_DEBUG, "plugin", "%s %s from %s", type, plugin->descriptor.version, file);
  return HIPMM_OK;
}

static enum hipmm_status plugin_not_found(const struct folders *folders, const char *type)
{
  char text[1500] = "";
  for (size_t i = 0; i < folders->count; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", folders->items[i]);
  }
  return error_set(HIPMM_E_PLUGIN, "no plugin %s.so in %s", type, text);
}

/* A type comes from a file and becomes a file's name: it must not lead elsewhere. */
static bool plugin_is_type_name(const char *type)
{
  return *type && *type != '.' && strlen(type) < 64 && !strchr(type, '/');
}

enum hipmm_status plugin_get(const struct plugin_path *path, const char *type, const struct plugin **plugin_out)
{
  if (!plugin_is_type_name(type)) return error_set(HIPMM_E_PLUGIN, "\"%.64s\" is not a plugin's name", type);
  struct folders folders = plugin_folders_of(path);
  char file[PATH_MAX];
  const struct plugin *plugin;
  int cancel = cancel_forbid();
  pthread_mutex_lock(&lock);
  enum hipmm_status status = plugin_find_file(&folders, type, file, sizeof file) ? plugin_load(file, type, &plugin)
                                                                                 : plugin_not_found(&folders, type);
  pthread_mutex_unlock(&lock);
  cancel_allow(cancel);
  plugin_folders_free(&folders);
  if (!status) *plugin_out = plugin;
  return status;
}

bool plugin_exists(const struct plugin_path *path, const char *type)
{
  char file[PATH_MAX];
  struct folders folders = plugin_folders_of(path);
  bool exists = plugin_is_type_name(type) && plugin_find_file(&folders, type, file, sizeof file);
  plugin_folders_free(&folders);
  return exists;
}

bool plugin_find_beside(const char *const *names, size_t n, char *file, size_t bytes)
{
  bool found = false;
  struct folders folders = plugin_folders_of(NULL);
  for (size_t i = 0; !found && i < folders.count * n; i++) {
    int length = snprintf(file, bytes, "%s/%s", folders.items[i / n], names[i % n]);
    found = length >= 0 && (size_t)length < bytes && !access(file, R_OK);
  }
  plugin_folders_free(&folders);
  return found;
}

/* ---- Scanning ---- */

/* A plugin file seen in a folder, before it is loaded. */
struct sighting {
  char *type, *file;
};

struct sightings {
  struct sighting *items;
  size_t count;
};

static int plugin_compare_sightings(const void *a, const void *b)
{
  return strcmp(((const struct sighting *)a)->type, ((const struct sighting *)b)->type);
}

static void plugin_add_sighting(struct sightings *sightings, const char *type, const char *file)
{
  struct sighting *items = realloc(sightings->items, (sightings->count + 1) * sizeof *items);
  if (!items) return;
  sightings->items = items;
  struct sighting sighting = {strdup(type), strdup(file)};
  if (sighting.type && sighting.file) {
    items[sightings->count++] = sighting;
  } else {
    free(sighting.type);
    free(sighting.file);
  }
}

/* An entry is a plugin if it is called TYPE.so, or is a build tree's folder TYPE with its .libs. */
static void plugin_sight_entry(struct sightings *sightings, const char *folder, const char *entry)
{
  char type[NAME_MAX + 1], file[PATH_MAX];
  snprintf(type, sizeof type, "%s", entry);
  char *suffix = strrchr(type, '.');
  if (suffix && !strcmp(suffix, ".so")) *suffix = '\0';
  if (plugin_is_type_name(type) && plugin_find_in(folder, type, file, sizeof file))
    plugin_add_sighting(sightings, type, file);
}

/* The entries of `listed`, which is the folder or, in a build tree, its folder of runtimes. */
static void plugin_sight_entries(struct sightings *sightings, const char *folder, const char *listed)
{
  DIR *directory = opendir(listed);
  if (!directory) return;
  for (struct dirent *entry; (entry = readdir(directory));) plugin_sight_entry(sightings, folder, entry->d_name);
  closedir(directory);
}

static struct sightings plugin_sight_folder(const char *folder)
{
  struct sightings sightings = {0};
  char runtimes[PATH_MAX];
  plugin_sight_entries(&sightings, folder, folder);
  snprintf(runtimes, sizeof runtimes, "%s/runtimes", folder);
  plugin_sight_entries(&sightings, folder, runtimes);
  if (sightings.count) qsort(sightings.items, sightings.count, sizeof *sightings.items, plugin_compare_sightings);
  return sightings;
}

static void plugin_sightings_free(struct sightings *sightings)
{
  for (size_t i = 0; i < sightings->count; i++) {
    free(sightings->items[i].type);
    free(sightings->items[i].file);
  }
  free(sightings->items);
}

static void plugin_visit_sighting(const struct sighting *sighting, bool shadowed,
                                  void (*visit)(void *closure, const struct plugin_candidate *candidate), void *closure)
{
  struct plugin_candidate candidate = {.type = sighting->type, .file = sighting->file, .shadowed = shadowed};
  int cancel = cancel_forbid();
  pthread_mutex_lock(&lock);
  if (plugin_load(sighting->file, sighting->type, &candidate.plugin)) {
    candidate.plugin = NULL;
    candidate.refusal = hipmm_last_error_message();
  }
  pthread_mutex_unlock(&lock);
  cancel_allow(cancel);
  visit(closure, &candidate);
}

/* Whether the type is found in a folder before number `end`. */
static bool plugin_is_shadowed(const struct folders *folders, size_t end, const char *type)
{
  char file[PATH_MAX];
  for (size_t i = 0; i < end; i++)
    if (plugin_find_in(folders->items[i], type, file, sizeof file)) return true;
  return false;
}

void plugin_scan(const struct plugin_path *path, void (*visit)(void *closure, const struct plugin_candidate *candidate),
                 void *closure)
{
  struct folders folders = plugin_folders_of(path);
  for (size_t f = 0; f < folders.count; f++) {
    struct sightings sightings = plugin_sight_folder(folders.items[f]);
    for (size_t i = 0; i < sightings.count; i++)
      plugin_visit_sighting(&sightings.items[i], plugin_is_shadowed(&folders, f, sightings.items[i].type), visit,
                            closure);
    plugin_sightings_free(&sightings);
  }
  plugin_folders_free(&folders);
}

struct list {
  const struct plugin **items;
  size_t count;
};

static void plugin_collect(void *closure, const struct plugin_candidate *candidate)
{
  struct list *list = closure;
  if (!candidate->plugin || candidate->shadowed) return;
  const struct plugin **items = realloc(list->items, (list->count + 1) * sizeof *items);
  if (!items) return;
  list->items = items;
  items[list->count++] = candidate->plugin;
}

static int plugin_compare_types(const void *a, const void *b)
{
  const struct plugin *const *left = a, *const *right = b;
  return strcmp((*left)->descriptor.type, (*right)->descriptor.type);
}

const struct plugin **plugin_all(const struct plugin_path *path, size_t *count_out)
{
  struct list list = {0};
  plugin_scan(path, plugin_collect, &list);
  if (list.count) qsort(list.items, list.count, sizeof *list.items, plugin_compare_types);
  *count_out = list.count;
  return list.items;
}
