/* SPDX-License-Identifier: MIT */
/* plugin_path.c: the folders that are searched for plugins, and the files in them. Called by plugin_load.c, and by
 * graph and the command to ask for a file. Never opens a plugin. */
#include "../base/environment.h"
#include "../base/error.h"
#include "../base/text.h"
#include "../base/trust.h"
#include "plugin.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Folders ---- */

/* The folders to search, in order, each once. */
struct folders {
  char **items;
  size_t count;
  bool is_cut; /* for want of host memory: a file that is found may be the wrong one */
};

static void plugin_path_add_folder(struct folders *folders, const char *folder, size_t length)
{
  if (!length) return;
  for (size_t i = 0; i < folders->count; i++)
    if (strlen(folders->items[i]) == length && !strncmp(folders->items[i], folder, length)) return;
  char **items = realloc(folders->items, (folders->count + 1) * sizeof *items);
  if (items) folders->items = items;
  char *copy = items ? strndup(folder, length) : NULL;
  if (copy)
    items[folders->count++] = copy;
  else
    folders->is_cut = true;
}

/* Where plugins lie, relative to the file that this code is in, wherever the whole was moved to: in a build tree beside
 * the program or the library's .libs, in an installation beside the library or under ../lib of the program. */
static const char *const usual_places[] = {"plugins", "../plugins", "hipmm/" HIPMM_PLUGIN_ABI_TEXT,
                                           "../lib/hipmm/" HIPMM_PLUGIN_ABI_TEXT, NULL};
static const char *const *places = usual_places;

/* The places that exist and that no stranger made: "../plugins" may be in a folder where everybody can make folders, such as
 * /tmp. Searched once: files do not move while the process lives. */
enum { MOST_PLACES = 8 };
static char surroundings[MOST_PLACES][PATH_MAX];
static size_t n_surroundings;
static bool uses_configured; /* HIPMM_PLUGIN_DIR, which need not exist */
static pthread_once_t surroundings_once = PTHREAD_ONCE_INIT;

void plugin_set_places(const char *const *given)
{
  places = given;
}

static void plugin_path_find_surroundings(void)
{
  char folder[PATH_MAX];
  uses_configured = access(HIPMM_PLUGIN_DIR, F_OK) || trust_installed(HIPMM_PLUGIN_DIR);
  if (!trust_find_own_file(folder)) return;
  *strrchr(folder, '/') = '\0';
  for (const char *const *place = places; *place && n_surroundings < MOST_PLACES; place++) {
    char file[PATH_MAX + 64];
    snprintf(file, sizeof file, "%s/%s", folder, *place);
    char *found = surroundings[n_surroundings];
    if (realpath(file, found) && trust_installed(found)) n_surroundings++;
  }
}

static struct folders plugin_path_folders(const struct plugin_path *path)
{
  struct folders folders = {0};
  pthread_once(&surroundings_once, plugin_path_find_surroundings);
  for (const char *text = environment_get("HIPMM_PLUGIN_PATH"); text && *text;) {
    size_t length = strcspn(text, ":");
    plugin_path_add_folder(&folders, text, length);
    text += length + (text[length] == ':');
  }
  for (size_t i = 0; path && i < path->n_folders; i++)
    plugin_path_add_folder(&folders, path->folders[i], strlen(path->folders[i]));
  if (builtin_type(0)) plugin_path_add_folder(&folders, BUILTIN_FOLDER, strlen(BUILTIN_FOLDER));
  for (size_t i = 0; i < n_surroundings; i++)
    plugin_path_add_folder(&folders, surroundings[i], strlen(surroundings[i]));
  if (uses_configured) plugin_path_add_folder(&folders, HIPMM_PLUGIN_DIR, strlen(HIPMM_PLUGIN_DIR));
  return folders;
}

static void plugin_path_free_folders(struct folders *folders)
{
  for (size_t i = 0; i < folders->count; i++) free(folders->items[i]);
  free(folders->items);
}

void plugin_visit_folders(const struct plugin_path *path, void (*visit)(void *closure, const char *folder),
                          void *closure)
{
  struct folders folders = plugin_path_folders(path);
  for (size_t i = 0; i < folders.count; i++) visit(closure, folders.items[i]);
  plugin_path_free_folders(&folders);
}

/* ---- Search ---- */

/* A graph file names the type, and the type names a file: the type must not lead to another folder. */
static bool plugin_path_is_type(const char *type)
{
  return *type && *type != '.' && strlen(type) < 64 && !strchr(type, '/');
}

/* Whether there is such a file; `or_link`: or a link that leads nowhere, which the loading of the file reports. */
static bool plugin_path_is_there(const char *file, bool or_link)
{
  return !faccessat(AT_FDCWD, file, F_OK, or_link ? AT_SYMLINK_NOFOLLOW : 0);
}

/* The plugin's file in one folder: TYPE.so, or as a build tree lays it out. */
static bool plugin_path_find_in(const char *folder, const char *type, bool or_link, char *file, size_t bytes)
{
  if (!strcmp(folder, BUILTIN_FOLDER)) {
    snprintf(file, bytes, "%s/%s", folder, type);
    return builtin_find(type) != NULL;
  }
  snprintf(file, bytes, "%s/%s.so", folder, type);
  if (plugin_path_is_there(file, or_link)) return true;
  snprintf(file, bytes, "%s/%s/.libs/%s.so", folder, type, type);
  if (plugin_path_is_there(file, or_link)) return true;
  snprintf(file, bytes, "%s/runtimes/%s/.libs/%s.so", folder, type, type);
  return plugin_path_is_there(file, or_link);
}

/* The file in the first `n` folders. */
static bool plugin_path_find_among(const struct folders *folders, size_t n, const char *type, bool or_link, char *file,
                                   size_t bytes)
{
  for (size_t i = 0; i < n; i++)
    if (plugin_path_find_in(folders->items[i], type, or_link, file, bytes)) return true;
  return false;
}

/* The file in any folder: a file of a later folder comes before a link that leads nowhere. */
static bool plugin_path_find_anywhere(const struct folders *folders, const char *type, char *file, size_t bytes)
{
  return plugin_path_find_among(folders, folders->count, type, false, file, bytes) ||
         plugin_path_find_among(folders, folders->count, type, true, file, bytes);
}

enum hipmm_status plugin_path_find(const struct plugin_path *path, const char *type, char *file, size_t bytes)
{
  if (!plugin_path_is_type(type)) return error_set(HIPMM_E_PLUGIN, "\"%.64s\" is not a plugin's name", type);
  char text[1500] = "";
  struct folders folders = plugin_path_folders(path);
  if (folders.is_cut) {
    plugin_path_free_folders(&folders);
    return error_set(HIPMM_E_OUT_OF_MEMORY, "no host memory to look for the plugin %s.so", type);
  }
  bool found = plugin_path_find_anywhere(&folders, type, file, bytes);
  for (size_t i = 0; !found && i < folders.count; i++)
    text_append(text, sizeof text, "%s%s", i ? ", " : "", folders.items[i]);
  plugin_path_free_folders(&folders);
  if (found) return HIPMM_OK;
  /* The only one of hipmm's plugins that a build can lack: it needs CUDA's headers. */
  const char *remedy = strcmp(type, "nvidia") ? "" : "; hipmm info says what to install";
  return error_set(HIPMM_E_PLUGIN, "no plugin %s.so in %s%s", type, text, remedy);
}

bool plugin_exists(const struct plugin_path *path, const char *type)
{
  char file[PATH_MAX];
  struct folders folders = plugin_path_folders(path);
  bool exists =
      plugin_path_is_type(type) && (folders.is_cut || plugin_path_find_anywhere(&folders, type, file, sizeof file));
  plugin_path_free_folders(&folders);
  return exists;
}

/* Whether a file may be used that lies beside a folder, not in it: the folder was named, or is hipmm's, and the file's may be
 * anybody's. Takes the links out of its name, since others may change where they lead. `file` has PATH_MAX bytes. */
static bool plugin_path_trusts_beside(char *file)
{
  char folder[PATH_MAX];
  if (!realpath(file, folder)) return false;
  strcpy(file, folder);
  *strrchr(folder, '/') = '\0';
  return trust_installed(folder) && trust_installed(file);
}

bool plugin_find_beside(const char *const *names, size_t n, char *file)
{
  bool found = false;
  struct folders folders = plugin_path_folders(NULL);
  for (size_t i = 0; !found && i < folders.count * n; i++) {
    int length = snprintf(file, PATH_MAX, "%s/%s", folders.items[i / n], names[i % n]);
    found = length >= 0 && length < PATH_MAX && !access(file, R_OK) &&
            (strncmp(names[i % n], "../", 3) != 0 || plugin_path_trusts_beside(file));
  }
  plugin_path_free_folders(&folders);
  return found;
}

/* ---- Scan ---- */

/* A plugin file found in a folder. */
struct found_file {
  char *type, *file;
};

struct found_files {
  struct found_file *items;
  size_t count;
};

static int plugin_path_compare(const void *a, const void *b)
{
  return strcmp(((const struct found_file *)a)->type, ((const struct found_file *)b)->type);
}

static void plugin_path_add_file(struct found_files *files, const char *type, const char *file)
{
  struct found_file *items = realloc(files->items, (files->count + 1) * sizeof *items);
  if (!items) return;
  files->items = items;
  struct found_file found = {strdup(type), strdup(file)};
  if (found.type && found.file) {
    items[files->count++] = found;
  } else {
    free(found.type);
    free(found.file);
  }
}

/* Adds the plugins among the entries of `listed`: of the folder itself or, in a build tree, of its folder of runtimes.
 * An entry is a plugin if it is called TYPE.so, or is a build tree's folder TYPE with its .libs. */
static void plugin_path_list(struct found_files *files, const char *folder, const char *listed)
{
  DIR *directory = opendir(listed);
  if (!directory) return;
  for (struct dirent *entry; (entry = readdir(directory));) {
    char type[NAME_MAX + 1], file[PATH_MAX];
    snprintf(type, sizeof type, "%s", entry->d_name);
    char *suffix = strrchr(type, '.');
    if (suffix && !strcmp(suffix, ".so")) *suffix = '\0';
    if (plugin_path_is_type(type) && plugin_path_find_in(folder, type, true, file, sizeof file))
      plugin_path_add_file(files, type, file);
  }
  closedir(directory);
}

static struct found_files plugin_path_list_folder(const char *folder)
{
  struct found_files files = {0};
  char runtimes[PATH_MAX], file[PATH_MAX];
  bool is_builtin = !strcmp(folder, BUILTIN_FOLDER);
  for (size_t i = 0; is_builtin && builtin_type(i); i++)
    if (plugin_path_find_in(folder, builtin_type(i), false, file, sizeof file))
      plugin_path_add_file(&files, builtin_type(i), file);
  if (is_builtin) return files;
  plugin_path_list(&files, folder, folder);
  snprintf(runtimes, sizeof runtimes, "%s/runtimes", folder);
  plugin_path_list(&files, folder, runtimes);
  if (files.count) qsort(files.items, files.count, sizeof *files.items, plugin_path_compare);
  return files;
}

void plugin_path_visit(const struct plugin_path *path,
                       void (*visit)(void *closure, const char *type, const char *file, bool is_shadowed),
                       void *closure)
{
  char before[PATH_MAX];
  struct folders folders = plugin_path_folders(path);
  for (size_t f = 0; f < folders.count; f++) {
    struct found_files files = plugin_path_list_folder(folders.items[f]);
    for (size_t i = 0; i < files.count; i++) {
      const struct found_file *found = &files.items[i];
      visit(closure, found->type, found->file,
            plugin_path_find_among(&folders, f, found->type, false, before, sizeof before));
      free(found->type);
      free(found->file);
    }
    free(files.items);
  }
  plugin_path_free_folders(&folders);
}
