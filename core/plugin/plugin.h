/* SPDX-License-Identifier: MIT */
/* plugin.h: finds and loads plugins. The only user of libltdl. A plugin once loaded stays for the process's life. */
#ifndef HIPMM_CORE_PLUGIN_PLUGIN_H
#define HIPMM_CORE_PLUGIN_PLUGIN_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* A loaded plugin. `descriptor` is a copy of its own in this hipmm's layout: ops complete, tables with our strides. */
struct plugin {
  struct hipmm_plugin descriptor;
  char *file;
  struct plugin *next;
};

/* Where plugins are looked for, first hit wins: HIPMM_PLUGIN_PATH, the graph's folders, the build tree or installation
 * around this library, the configured folder. Set-user-id programs skip the environment. */
struct plugin_path {
  const char *const *folders; /* the graph's plugin_path */
  size_t n_folders;
};

/* Finds `type` and loads it. Otherwise the thread's error record says where it was looked for and, if a file was found,
 * why it was refused. */
enum hipmm_status plugin_get(const struct plugin_path *path, const char *type, const struct plugin **plugin_out);

/* Whether there is a file for `type`, good or bad. */
bool plugin_exists(const struct plugin_path *path, const char *type);

/* The first file of these names, relative to the folders that plugins are looked for in (those of a graph aside). */
bool plugin_find_beside(const char *const *names, size_t n, char *file, size_t bytes);

/* A file that plugin_scan saw. */
struct plugin_candidate {
  const char *type; /* the file's stem */
  const char *file;
  const struct plugin *plugin; /* NULL: refused */
  const char *refusal;         /* why; NULL: loaded */
  int shadowed;                /* 1: another file of this type comes before it on the path */
};

/* Visits every plugin file on the path, sorted by folder order, then name. */
void plugin_scan(const struct plugin_path *path, void (*visit)(void *closure, const struct plugin_candidate *candidate),
                 void *closure);

/* All that can be had, sorted by type: an array to be freed with free(); NULL where there is none. */
const struct plugin **plugin_all(const struct plugin_path *path, size_t *count_out);

#endif
