/* SPDX-License-Identifier: MIT */
/* plugin.h: finds plugin files (plugin_path.c), loads them (plugin_load.c), and what that takes. A plugin once loaded stays
 * for the process's life. All functions are thread-safe. */
#ifndef HIPMM_CORE_PLUGIN_PLUGIN_H
#define HIPMM_CORE_PLUGIN_PLUGIN_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* A loaded plugin. `descriptor` is a copy in this hipmm's layout: ops complete, tables with this hipmm's strides. */
struct plugin {
  struct hipmm_plugin descriptor;
  char *file;
  struct plugin *next;
};

/* The folders to search for plugins; the first hit counts. The order is HIPMM_PLUGIN_PATH, the folders here, the
 * plugins that are linked in (builtin.c), the build tree or installation around this library, the configured folder. A
 * set-user-id process skips the environment. Where a function takes a path, NULL adds no folders. */
struct plugin_path {
  const char *const *folders; /* the graph's plugin_path */
  size_t n_folders;
};

/* Finds the plugin of a type and loads it. On failure the error record names the folders that were searched or, if a
 * file was found, why the file was refused. */
enum hipmm_status plugin_get(const struct plugin_path *path, const char *type, const struct plugin **plugin_out);

/* Whether there is a file for `type`, good or bad. True without the host memory to look for it: plugin_get() then tells. */
bool plugin_exists(const struct plugin_path *path, const char *type);

/* A file that plugin_scan() found. */
struct plugin_candidate {
  const char *type; /* the file's stem */
  const char *file;
  const struct plugin *plugin; /* NULL: refused */
  const char *refusal;         /* why; NULL: loaded */
  int shadowed;                /* 1: another file of this type comes before it on the path */
};

/* Loads every plugin file on the path and visits it, in the order of the folders, then of the types. */
void plugin_scan(const struct plugin_path *path, void (*visit)(void *closure, const struct plugin_candidate *candidate),
                 void *closure);

/* All plugins on the path that could be loaded, in the order of their types. The caller frees the array with free();
 * NULL for none. */
const struct plugin **plugin_all(const struct plugin_path *path, size_t *count_out);

/* Visits the folders that are searched, in order, whether they exist or not. */
void plugin_visit_folders(const struct plugin_path *path, void (*visit)(void *closure, const char *folder),
                          void *closure);

/* Refuses a file that dlopen() would wait for, or read beyond the end of: one that is not regular, or is cut off. */
enum hipmm_status plugin_check_file(const char *file);

/* ---- Files beside the plugins ---- */

/* Finds the first readable file of these names, relative to the folders that are searched for plugins; a name that
 * leads out of them ("../…") counts if no other user can change the file. `file` has PATH_MAX bytes. */
bool plugin_find_beside(const char *const *names, size_t n, char *file);

/* Says where the plugins lie, relative to the folder of the file that this code is linked into: a list of folders ended
 * by NULL, which lasts for the process's life. For an object that lies elsewhere than the library does. To be called
 * before any other function here. */
void plugin_set_places(const char *const *places);

/* ---- Between plugin_path.c and plugin_load.c ---- */

/* Finds the file of a type; HIPMM_E_PLUGIN with the thread's error set if there is none, or `type` is no file name. */
enum hipmm_status plugin_path_find(const struct plugin_path *path, const char *type, char *file, size_t bytes);

/* Visits the files that plugin_scan() loads. `is_shadowed`: as in struct plugin_candidate. */
void plugin_path_visit(const struct plugin_path *path,
                       void (*visit)(void *closure, const char *type, const char *file, bool is_shadowed),
                       void *closure);

/* ---- builtin.c: plugins that are linked into the process, rather than loaded from files ---- */

/* The place of these plugins among the folders that are searched, and what the name of their file begins with. */
#define BUILTIN_FOLDER "(built in)"

/* The descriptor of a type; NULL if it is not linked in. */
const struct hipmm_plugin *builtin_find(const char *type);

/* The type at `index`, from 0; NULL past the last. */
const char *builtin_type(size_t index);

/* Adds a plugin, which must last for the process's life; for programs that bring one of their own. To be called before
 * any graph is read, by one thread; at most 4. */
void builtin_add(const struct hipmm_plugin *descriptor);

/* ---- elf_file.c: a shared object as a file, without loading it ---- */

/* Whether the file has all that its headers promise. The dynamic linker maps what they promise, and a page behind the
 * file's end would end the process with SIGBUS. HIPMM_E_PLUGIN, with the reason in the error record, if something is
 * cut off. HIPMM_OK for a file that is no ELF file of this machine: the dynamic linker refuses it. */
enum hipmm_status elf_file_check(const char *file);

/* Visits the names that the file needs from others: undefined symbols, and libraries (`is_library`). Nothing of a file
 * that cannot be read. */
void elf_file_visit_imports(const char *file, void (*visit)(void *closure, const char *name, bool is_library),
                            void *closure);

/* ---- descriptor.c: checks a plugin's descriptor, and copies it into this hipmm's layout ---- */

/* The flags that this hipmm knows. */
enum {
  DESCRIPTOR_FLAGS = HIPMM_PLUGIN_NOT_THREAD_SAFE | HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_HANDS_ON |
                     HIPMM_PLUGIN_KEEPS_MEMORY | HIPMM_PLUGIN_DEVICE_MEMORY | HIPMM_PLUGIN_HOST_ALONE |
                     HIPMM_PLUGIN_FREE_WAITS | HIPMM_PLUGIN_ACCESSES_MEMORY | HIPMM_PLUGIN_RECOUNTS |
                     HIPMM_PLUGIN_UNDIVIDED
};

/* Checks `foreign`, the descriptor in `file`, which must describe `type`, and copies it to `descriptor_out`: tables
 * with this hipmm's strides, optional ops filled in. The tables are allocated; descriptor_release() frees them. */
enum hipmm_status descriptor_adopt(const void *foreign, const char *file, const char *type,
                                   struct hipmm_plugin *descriptor_out);

/* Whether the type implements trim. */
bool descriptor_trims(const struct hipmm_plugin *descriptor);

/* The row called `name` of a table of values or actions; `n` if there is none. */
uint32_t descriptor_row(const struct hipmm_feature *rows, uint32_t n, const char *name);

/* Frees the tables of a copied descriptor. */
void descriptor_release(const struct hipmm_plugin *descriptor);

/* ---- services.c: the services that every plugin gets, runtime or resource ---- */

/* A table without device, HIP and block map: fail, refuse, log and host memory only. `name` must outlive the table. */
struct hipmm_services services_plain(const char *name);

/* While it is set, fail() appends the thread's record to its message, as the reason: for `create`, at whose start there is
 * no record. Returns what it was. */
bool services_keep_reason(bool keeps);

#endif
