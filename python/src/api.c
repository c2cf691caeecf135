/* SPDX-License-Identifier: MIT */
/* api.c: see api.h. Called when the module is imported. */
#include "extension.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define API_LINKED(name) .name = hipmm_##name,
struct api api = {API_FUNCTIONS(API_LINKED)};

static void *(*function_of_run)(const char *name); /* NULL: the functions are the package's */

const char *api_file(void)
{
  static char file[PATH_MAX];
  Dl_info info;
  void *function;
  memcpy(&function, &api.version, sizeof function);
  return dladdr(function, &info) && info.dli_fname && realpath(info.dli_fname, file) ? file : NULL;
}

bool api_is_of_run(void)
{
  return function_of_run != NULL;
}

void *api_function(const char *name)
{
  const char *file = function_of_run ? NULL : api_file();
  void *library = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  void *function = function_of_run ? function_of_run(name) : library ? dlsym(library, name) : NULL;
  if (library) dlclose(library); /* the extension itself keeps it */
  return function;
}

#define API_ROW(name) {"hipmm_" #name, offsetof(struct api, name)},
static const struct {
  const char *name;
  size_t offset;
} rows[] = {API_FUNCTIONS(API_ROW)};

/* False if a function is missing. */
static bool api_find(void *(*find)(const char *name), struct api *api_out)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    void *function = find(rows[i].name);
    if (!function) return false;
    memcpy((char *)api_out + rows[i].offset, &function, sizeof function);
  }
  return true;
}

/* `hipmm run` names its object in HIPMM_RUN_PYTHON, if Python is to be served. */
void api_choose(void)
{
  const char *file = getenv("HIPMM_RUN_PYTHON");
  void *object = file && *file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  void *found[2] = {object ? dlsym(object, "hipmm_run_attach") : NULL,
                    object ? dlsym(object, "hipmm_run_function") : NULL};
  int (*attach)(int version);
  void *(*find)(const char *name);
  struct api of_run;
  memcpy(&attach, &found[0], sizeof attach);
  memcpy(&find, &found[1], sizeof find);
  if (!attach || !find || !attach(HIPMM_VERSION) || !api_find(find, &of_run)) return;
  api = of_run;
  function_of_run = find;
}
