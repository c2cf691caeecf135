/* SPDX-License-Identifier: MIT */
/* Tests of core/plugin/plugin_path.c and plugin_load.c: where plugins are searched, which of several is loaded, and why
 * a file that is not a plugin is refused. */
#include "../../core/plugin/plugin.h"
#include "../support/support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Folders ---- */

/* Two folders for plugin files, and the test's own plugins. */
struct folders {
  char *first, *second, *bad, *saved;
};

static int make_folders(void **state)
{
  static struct folders folders;
  const char *top = getenv("top_builddir"), *path = getenv("HIPMM_PLUGIN_PATH");
  folders = (struct folders){new_folder(), new_folder(), path_in(top ? top : ".", "tests/bad/.libs"), NULL};
  folders.saved = strdup(path ? path : "");
  *state = &folders;
  return 0;
}

static int remove_folders(void **state)
{
  struct folders *folders = *state;
  setenv("HIPMM_PLUGIN_PATH", folders->saved, 1);
  remove_folder(folders->first);
  remove_folder(folders->second);
  free(folders->bad);
  free(folders->saved);
  return 0;
}

/* Copies one of the bad plugins into a folder, under another name. */
static char *put(const struct folders *folders, const char *from, const char *folder, const char *name)
{
  char *source = path_in(folders->bad, from), *target = path_in(folder, name);
  if (!copy_file(source, target)) fail_msg("%s cannot be copied", source);
  free(source);
  return target;
}

static void set_path(const char *first, const char *second)
{
  char *path;
  assert_true(asprintf(&path, "%s:%s", first, second) > 0);
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  free(path);
}

static void assert_found_at(const struct plugin_path *path, const char *type, const char *file)
{
  const struct plugin *plugin;
  assert_ok(plugin_get(path, type, &plugin));
  assert_string_equal(plugin->file, file);
  assert_string_equal(plugin->descriptor.type, type);
}

/* ---- Search ---- */

static void takes_the_first_folder_that_has_it(void **state)
{
  const struct folders *folders = *state;
  char *first = put(folders, "bare.so", folders->first, "bare.so");
  char *second = put(folders, "bare.so", folders->second, "bare.so");
  set_path(folders->first, folders->second);
  assert_found_at(NULL, "bare", first);
  set_path(folders->second, folders->first);
  assert_found_at(NULL, "bare", second);
  free(first);
  free(second);
}

static void prefers_the_environment_to_the_graph(void **state)
{
  const struct folders *folders = *state;
  char *first = put(folders, "witness.so", folders->first, "witness.so");
  char *second = put(folders, "witness.so", folders->second, "witness.so");
  const char *graphs[] = {folders->second};
  const struct plugin_path path = {graphs, 1};
  setenv("HIPMM_PLUGIN_PATH", folders->first, 1);
  assert_found_at(&path, "witness", first);
  unsetenv("HIPMM_PLUGIN_PATH");
  assert_found_at(&path, "witness", second);
  setenv("HIPMM_PLUGIN_PATH", "", 1);
  assert_found_at(&path, "witness", second);
  free(first);
  free(second);
}

static void takes_the_graphs_folders_in_order(void **state)
{
  const struct folders *folders = *state;
  char *second = put(folders, "single.so", folders->second, "single.so");
  const char *graphs[] = {"/nowhere", folders->first, folders->second};
  const struct plugin_path path = {graphs, 3};
  unsetenv("HIPMM_PLUGIN_PATH");
  assert_found_at(&path, "single", second);
  char *first = put(folders, "single.so", folders->first, "single.so");
  assert_found_at(&path, "single", first);
  free(first);
  free(second);
}

static void looks_into_a_build_tree(void **state)
{
  const struct folders *folders = *state;
  char *folder = path_in(folders->first, "fails"), *libs = path_in(folder, ".libs");
  assert_int_equal(mkdir(folder, 0777) | mkdir(libs, 0777), 0);
  char *nested = put(folders, "fails.so", libs, "fails.so");
  setenv("HIPMM_PLUGIN_PATH", folders->first, 1);
  assert_found_at(NULL, "fails", nested);
  char *flat = put(folders, "fails.so", folders->first, "fails.so");
  assert_found_at(NULL, "fails", flat);
  free(folder);
  free(libs);
  free(nested);
  free(flat);
}

static void refuse_no_name(void *closure, const char *folder)
{
  (void)closure;
  assert_string_not_equal(folder, "");
}

static void ignores_empty_and_missing_folders(void **state)
{
  const struct folders *folders = *state;
  char *file = put(folders, "bare.so", folders->first, "bare.so"), *path;
  assert_true(asprintf(&path, "::/nowhere:%s::", folders->first) > 0);
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  assert_found_at(NULL, "bare", file);
  plugin_visit_folders(NULL, refuse_no_name, NULL);
  free(path);
  free(file);
}

/* Others may write where an unprivileged user's plugins are: who is trusted is up to the user. */
static void takes_a_plugin_of_any_folder(void **state)
{
  const struct folders *folders = *state;
  char *file = put(folders, "bare.so", folders->first, "bare.so");
  assert_int_equal(chmod(folders->first, 0777) + chmod(file, 0666), 0);
  setenv("HIPMM_PLUGIN_PATH", folders->first, 1);
  assert_found_at(NULL, "bare", file);
  free(file);
}

static void says_where_it_looked(void **state)
{
  const struct folders *folders = *state;
  const char *graphs[] = {folders->second};
  const struct plugin_path path = {graphs, 1};
  const struct plugin *plugin = NULL;
  setenv("HIPMM_PLUGIN_PATH", folders->first, 1);
  assert_status(plugin_get(&path, "nothing", &plugin), HIPMM_E_PLUGIN);
  assert_message("no plugin nothing.so in ");
  assert_message(folders->first);
  assert_message(folders->second);
  assert_true(strstr(hipmm_last_error_message(), folders->first) < strstr(hipmm_last_error_message(), folders->second));
  assert_message("/hipmm/1");
  assert_null(plugin);
  if (plugin_exists(&path, "nvidia")) return; /* hipmm is installed here */
  assert_status(plugin_get(&path, "nvidia", &plugin), HIPMM_E_PLUGIN);
  assert_message("; hipmm info says what to install");
}

/* Runtimes are plugins too, but not resources: the folder of the other plugins is missing. */
static void says_where_it_looked_when_only_runtimes_are_there(void **state)
{
  const struct folders *folders = *state;
  char *built =
      path_in(getenv("top_builddir") ? getenv("top_builddir") : ".", "plugins/runtimes/software/.libs/software.so");
  char *runtime = path_in(folders->first, "software.so");
  bool is_there = copy_file(built, runtime); /* in a build tree */
  free(built);
  free(runtime);
  if (!is_there) skip();
  setenv("HIPMM_PLUGIN_PATH", folders->first, 1);
  assert_int_not_equal(hipmm_init_from_string("{\"stack\": [\"zzzzzzzz\"]}"), HIPMM_OK);
  assert_message("zzzzzzzz");
  assert_null(strstr(hipmm_last_error_message(), "the types are  ")); /* those of an installed hipmm, if there is one */
}

static void refuses_names_that_lead_elsewhere(void **state)
{
  (void)state;
  static const char *const names[] = {
      "",        ".",           "..",
      ".hidden", "/etc/passwd", "../plugins/device",
      "a/b/c",   "device/",     "a123456789012345678901234567890123456789012345678901234567890123"};
  const struct plugin *plugin = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_status(plugin_get(NULL, names[i], &plugin), HIPMM_E_PLUGIN);
    assert_message("is not a plugin's name");
    assert_null(plugin);
  }
}

/* ---- Keeping ---- */

static void keeps_what_it_loaded(void **state)
{
  const struct folders *folders = *state;
  const struct plugin *first, *again;
  setenv("HIPMM_PLUGIN_PATH", folders->bad, 1);
  assert_ok(plugin_get(NULL, "bare", &first));
  assert_ok(plugin_get(NULL, "bare", &again));
  assert_ptr_equal(first, again);
  void *handle = dlopen(first->file, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(handle);
  const struct hipmm_plugin *descriptor = dlsym(handle, "hipmm_plugin");
  for (int i = 0; i < 8; i++) dlclose(handle);   /* more often than it was opened */
  assert_string_equal(descriptor->type, "bare"); /* still there */
  assert_string_equal(again->descriptor.version, "0.1");
}

enum { THREADS = 8 };

static void *get_bare(void *closure)
{
  const struct plugin **plugin = closure;
  return plugin_get(NULL, "bare", plugin) ? closure : NULL;
}

static void loads_once_for_many_threads(void **state)
{
  const struct folders *folders = *state;
  char *file = put(folders, "bare.so", folders->first, "bare.so");
  pthread_t threads[THREADS];
  const struct plugin *plugins[THREADS];
  setenv("HIPMM_PLUGIN_PATH", folders->first, 1);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, get_bare, &plugins[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  for (int i = 1; i < THREADS; i++) assert_ptr_equal(plugins[i], plugins[0]);
  free(file);
}

/* ---- Scanning ---- */

struct scan {
  const char *folder, *other;
  char text[2000]; /* a line per file of the two folders: type, whether loaded, whether shadowed, in which of the two */
};

static void note(void *closure, const struct plugin_candidate *candidate)
{
  struct scan *scan = closure;
  bool in_first = !strncmp(candidate->file, scan->folder, strlen(scan->folder));
  if (!in_first && strncmp(candidate->file, scan->other, strlen(scan->other))) return;
  size_t used = strlen(scan->text);
  snprintf(scan->text + used, sizeof scan->text - used, "%s %s%s %s\n", candidate->type,
           candidate->plugin ? "loaded" : "refused", candidate->shadowed ? " shadowed" : "",
           in_first ? "first" : "second");
  if (!candidate->plugin) assert_contains(candidate->refusal, candidate->file);
}

static void scans_all_folders(void **state)
{
  const struct folders *folders = *state;
  struct scan scan = {.folder = folders->first, .other = folders->second};
  free(put(folders, "witness.so", folders->first, "witness.so"));
  free(put(folders, "bare.so", folders->first, "bare.so"));
  free(put(folders, "bare.so", folders->second, "bare.so"));
  free(put(folders, "bare.so", folders->second, "naked.so"));
  free(put(folders, "bare.so", folders->second, ".bare.so"));
  free(put(folders, "bare.so", folders->second, "bare.so.1"));
  char *path;
  assert_true(asprintf(&path, "%s:%s:%s", folders->first, folders->second, folders->first) > 0);
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  plugin_scan(NULL, note, &scan);
  assert_string_equal(scan.text, "bare loaded first\n"
                                 "witness loaded first\n"
                                 "bare loaded shadowed second\n"
                                 "naked refused second\n");
  free(path);
}

static void lists_each_type_once(void **state)
{
  const struct folders *folders = *state;
  free(put(folders, "bare.so", folders->first, "bare.so"));
  free(put(folders, "bare.so", folders->second, "bare.so"));
  free(put(folders, "bare.so", folders->second, "naked.so"));
  char *path;
  assert_true(asprintf(&path, "%s:%s:%s", folders->first, folders->second, folders->saved) > 0);
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  size_t count = 0, bare = 0, pool = 0;
  const struct plugin **all = plugin_all(NULL, &count);
  assert_non_null(all);
  for (size_t i = 0; i < count; i++) {
    const char *type = all[i]->descriptor.type;
    assert_true(i == 0 || strcmp(all[i - 1]->descriptor.type, type) < 0);
    bare += !strcmp(type, "bare");
    pool += !strcmp(type, "pool");
    assert_string_not_equal(type, "naked");
  }
  assert_int_equal(bare, 1);
  assert_int_equal(pool, 1);
  free(all);
  free(path);
}

/* ---- The zoo ---- */

/* Makes the file that the name says in the folder. */
static void make_text(const struct folders *folders, const char *file)
{
  (void)folders;
  static const char text[] = "#!/bin/sh\n# This is longer than the header of an ELF file, which has 64 bytes.\n";
  assert_true(write_file(file, text, sizeof text - 1));
}

static void note_import(void *closure, const char *name, bool is_library)
{
  strcat(strcat(strcat(closure, is_library ? "needs " : ""), name), "\n");
}

static void tells_what_a_file_imports(void **state)
{
  const struct folders *folders = *state;
  char text[8192] = "", none[8] = "", *file = path_in(folders->bad, "single.so"),
       *other = path_in(folders->first, "x.so");
  elf_file_visit_imports(file, note_import, text);
  assert_contains(text, "needs libc.so.6\n");
  assert_contains(text, "sched_yield\n");
  assert_null(strstr(text, "single_LTX_hipmm_plugin"));
  make_text(folders, other);
  elf_file_visit_imports(other, note_import, none);
  elf_file_visit_imports("/nowhere/x.so", note_import, none);
  assert_string_equal(none, "");
  free(file);
  free(other);
}

struct animal {
  const char *name, *type;
  void (*make)(const struct folders *folders, const char *file);
  enum hipmm_status status;
  const char *message;
};

static void make_empty(const struct folders *folders, const char *file)
{
  (void)folders;
  assert_true(write_file(file, "", 0));
}

/* A copy of a good plugin with changed bytes. */
static void make_spoiled(const struct folders *folders, const char *file, void (*spoil)(char *data, size_t *bytes))
{
  size_t bytes;
  char *source = path_in(folders->bad, "single.so"), *data = read_file(source, &bytes);
  assert_non_null(data);
  spoil(data, &bytes);
  assert_true(write_file(file, data, bytes));
  free(data);
  free(source);
}

static void cut_off(char *data, size_t *bytes)
{
  (void)data;
  *bytes = 100;
}

/* The file looks whole to the dynamic linker, which maps it and dies of SIGBUS when it reads what is not there. */
static void cut_off_after_a_quarter(char *data, size_t *bytes)
{
  (void)data;
  *bytes /= 4;
}

/* Only the section headers, which are the end of the file, lack something. */
static void cut_off_at_end(char *data, size_t *bytes)
{
  (void)data;
  *bytes -= 10;
}

static void make_cut_off(const struct folders *folders, const char *file)
{
  make_spoiled(folders, file, cut_off);
}

static void make_quarter(const struct folders *folders, const char *file)
{
  make_spoiled(folders, file, cut_off_after_a_quarter);
}

static void make_almost_whole(const struct folders *folders, const char *file)
{
  make_spoiled(folders, file, cut_off_at_end);
}

/* The machine of an ELF file. */
static void put_another_machine(char *data, size_t *bytes)
{
  assert_true(*bytes > 20);
  data[18] = (char)183;
}

static void make_of_another_machine(const struct folders *folders, const char *file)
{
  make_spoiled(folders, file, put_another_machine);
}

/* Replaces the dependency that every shared object has by one that does not exist. */
static void rename_dependency(char *data, size_t *bytes)
{
  char *found = memmem(data, *bytes, "libc.so.6", 10);
  assert_non_null(found);
  memcpy(found, "libc.so.X", 10);
}

static void make_lacking_a_dependency(const struct folders *folders, const char *file)
{
  make_spoiled(folders, file, rename_dependency);
}

static void make_folder(const struct folders *folders, const char *file)
{
  (void)folders;
  assert_int_equal(mkdir(file, 0777), 0);
}

static void make_pipe(const struct folders *folders, const char *file)
{
  (void)folders;
  assert_int_equal(mkfifo(file, 0666), 0);
}

static void make_bare(const struct folders *folders, const char *file)
{
  char *source = path_in(folders->bad, "bare.so");
  assert_true(copy_file(source, file));
  free(source);
}

static void make_no_descriptor(const struct folders *folders, const char *file)
{
  char *source = path_in(folders->bad, "no_descriptor.so");
  assert_true(copy_file(source, file));
  free(source);
}

static void make_link_to_nothing(const struct folders *folders, const char *file)
{
  (void)folders;
  assert_int_equal(symlink("/nowhere/plugin.so", file), 0);
}

static const struct animal zoo[] = {
    {"refuses a text", "text", make_text, HIPMM_E_PLUGIN, "invalid ELF header"},
    {"refuses an empty file", "empty", make_empty, HIPMM_E_PLUGIN, "file too short"},
    {"refuses a file that was cut off", "cut", make_cut_off, HIPMM_E_PLUGIN, "cut.so"},
    {"refuses a file that has its headers alone", "quarter", make_quarter, HIPMM_E_PLUGIN,
     "quarter.so: the file is cut off: its segments end"},
    {"refuses a file that lacks its end", "short", make_almost_whole, HIPMM_E_PLUGIN,
     "short.so: the file is cut off: its section headers end at byte"},
    {"refuses a plugin of another machine", "alien", make_of_another_machine, HIPMM_E_PLUGIN, "alien.so"},
    {"refuses a plugin that lacks a dependency", "lonely", make_lacking_a_dependency, HIPMM_E_PLUGIN,
     "libc.so.X: cannot open shared object file"},
    {"refuses a folder", "folder", make_folder, HIPMM_E_PLUGIN, "folder.so: not a regular file"},
    {"refuses a named pipe without waiting for it", "pipe", make_pipe, HIPMM_E_PLUGIN, "pipe.so: not a regular file"},
    {"refuses a plugin under another's name", "naked", make_bare, HIPMM_E_PLUGIN_ABI,
     "describes \"bare\"; the file must be called bare.so"},
    {"refuses a link that leads nowhere", "broken", make_link_to_nothing, HIPMM_E_PLUGIN,
     "broken.so: is a link to /nowhere/plugin.so, which does not exist"},
    {"refuses a plugin with an undefined symbol", "undefined_symbol", NULL, HIPMM_E_PLUGIN, "nobody_has_this"},
    {"refuses a shared object that is no plugin", "no_descriptor", NULL, HIPMM_E_PLUGIN_ABI,
     "no_descriptor.so: no plugin descriptor: it exports neither no_descriptor_LTX_hipmm_plugin nor hipmm_plugin"},
    {"says which name it looks for", "no-such.name", make_no_descriptor, HIPMM_E_PLUGIN_ABI,
     "exports neither no_such_LTX_hipmm_plugin nor hipmm_plugin"},
    {"refuses a plugin that claims more than it has", "claims", NULL, HIPMM_E_PLUGIN_ABI,
     "claims.so: its option table, said to have 1000000 rows"},
    {"refuses a plugin of another ABI", "other_abi", NULL, HIPMM_E_PLUGIN_ABI,
     "other_abi.so: speaks plugin ABI 2, this hipmm speaks 1"},
};

static void assert_names_once(const char *message, const char *file)
{
  const char *first = strstr(message, file);
  assert_non_null(first);
  assert_null(strstr(first + 1, file));
}

static void refuses(void **state)
{
  const struct animal *row = *state;
  void *folders_state;
  make_folders(&folders_state);
  const struct folders *folders = folders_state;
  const struct plugin *plugin = NULL;
  char *base, *file;
  assert_true(asprintf(&base, "%s.so", row->type) > 0);
  file = path_in(folders->first, base);
  if (row->make) row->make(folders, file);
  setenv("HIPMM_PLUGIN_PATH", row->make ? folders->first : folders->bad, 1);
  for (int i = 0; i < 2; i++) { /* having failed once it fails again */
    assert_status(plugin_get(NULL, row->type, &plugin), row->status);
    assert_message(row->message);
    assert_null(plugin);
    if (row->make) assert_names_once(hipmm_last_error_message(), file);
  }
  free(base);
  free(file);
  remove_folders(&folders_state);
}

#define folder_test(name) cmocka_unit_test_setup_teardown(name, make_folders, remove_folders)

int main(void)
{
  struct CMUnitTest tests[40] = {
      folder_test(takes_the_first_folder_that_has_it),
      folder_test(prefers_the_environment_to_the_graph),
      folder_test(takes_the_graphs_folders_in_order),
      folder_test(looks_into_a_build_tree),
      folder_test(ignores_empty_and_missing_folders),
      folder_test(takes_a_plugin_of_any_folder),
      folder_test(says_where_it_looked),
      folder_test(says_where_it_looked_when_only_runtimes_are_there),
      folder_test(refuses_names_that_lead_elsewhere),
      folder_test(keeps_what_it_loaded),
      folder_test(loads_once_for_many_threads),
      folder_test(scans_all_folders),
      folder_test(lists_each_type_once),
      folder_test(tells_what_a_file_imports),
  };
  size_t n = 14;
  for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++)
    tests[n++] =
        (struct CMUnitTest){.name = zoo[i].name, .test_func = refuses, .initial_state = (void *)(uintptr_t)&zoo[i]};
  return _cmocka_run_group_tests("plugin", tests, n, NULL, NULL);
}
