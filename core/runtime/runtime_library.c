/* SPDX-License-Identifier: MIT */
/* runtime_library.c: finds and opens the shared library of a runtime, and configures it if it is a plugin of hipmm.
 * Called by hip.c. Never calls the HIP API. */
#include "../base/environment.h"
#include "../base/text.h"
#include "../base/trust.h"
#include "../graph/graph.h"
#include "../option/option.h"
#include "../plugin/loaded_object.h"
#include "../plugin/plugin.h"
#include "hip.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum hipmm_status runtime_library_open(const char *file, void **library_out)
{
  bool is_path = strchr(file, '/') != NULL;
  enum hipmm_status status = is_path ? trust_check_named(file) : HIPMM_OK;
  if (!status && is_path && !access(file, F_OK)) status = plugin_check_file(file);
  if (status) return status;
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return error_set(HIPMM_E_NO_DEVICE, "%s", dlerror());
  *library_out = library;
  return HIPMM_OK;
}

#define AMD_STEM    "libamdhip64"
#define AMD_LIBRARY AMD_STEM ".so"

/* Of ROCm 10 and before, the latest first. */
static const char *const runtime_library_amd[] = {AMD_LIBRARY ".8", AMD_LIBRARY ".7", AMD_LIBRARY ".6",
                                                  AMD_LIBRARY ".5"};

static enum hipmm_status runtime_library_open_amd(void **library_out)
{
  char file[LOADED_FILE_BYTES];
  /* A library that the program uses already comes first, of whatever release: the program can use no other's memory. */
  if (loaded_find(AMD_STEM, 0, file) && (*library_out = dlopen(file, RTLD_NOW | RTLD_NOLOAD))) return HIPMM_OK;
  for (size_t i = 0; i < sizeof runtime_library_amd / sizeof *runtime_library_amd; i++)
    if (!runtime_library_open(runtime_library_amd[i], library_out)) return HIPMM_OK;
  return error_set(HIPMM_E_NO_DEVICE,
                   "runtime amd: libamdhip64.so.8, .7, .6 and .5 cannot be loaded; install ROCm's HIP "
                   "runtime, or add its folder to LD_LIBRARY_PATH");
}

/* Where there is no such file, the loader's message begins with the name as it was given; else with the path of the file, or
 * the name of another library that it needs. */
static bool runtime_library_exists_amd(void)
{
  for (size_t i = 0; i < sizeof runtime_library_amd / sizeof *runtime_library_amd; i++) {
    void *library = dlopen(runtime_library_amd[i], RTLD_LAZY | RTLD_LOCAL);
    const char *message = library ? "" : dlerror();
    if (library) dlclose(library);
    if (!message || strncmp(message, AMD_LIBRARY, sizeof AMD_LIBRARY - 1) != 0) return true;
  }
  return false;
}

bool runtime_library_exists(const struct graph *graph, const char *name)
{
  return strcmp(name, "amd") ? plugin_exists(&graph->plugin_path, name) : runtime_library_exists_amd();
}

/* HIPMM_SOFTWARE for "software", and so on. */
static void runtime_library_variable_of(const char *type, char *buffer, size_t bytes)
{
  snprintf(buffer, bytes, "HIPMM_%s", type);
  for (char *c = buffer; *c; c++) *c = (char)toupper((unsigned char)*c);
}

/* The configuration of a runtime, which may point into it while the runtime is in use. */
struct configuration {
  struct hipmm_services services;
  const struct hipmm_plugin *descriptor;
  char variable[64]; /* HIPMM_SOFTWARE, … */
  json_t *object;    /* what the graph says if it names this runtime, then the environment over it */
  json_t *overlay;   /* what the environment says; NULL if nothing */
  void *options;
};

static void runtime_library_free(struct configuration *configuration)
{
  if (!configuration) return;
  const struct hipmm_plugin *descriptor = configuration->descriptor;
  if (configuration->options) option_free(descriptor->options, descriptor->n_options, configuration->options);
  free(configuration->options);
  json_decref(configuration->overlay);
  json_decref(configuration->object);
  free(configuration);
}

/* The graph's own options were checked when it was read, so an error is one of the environment. */
static bool runtime_library_read_options(const struct graph *graph, struct configuration *configuration,
                                         struct diagnostics *diagnostics)
{
  const struct hipmm_plugin *descriptor = configuration->descriptor;
  const char *variable = configuration->variable, *text = environment_get(variable);
  static const char *const keys[] = {"type", NULL};
  struct option_context context = {.diagnostics = diagnostics,
                                   .path = text ? variable : "/runtime",
                                   .keys = keys,
                                   .owner = descriptor->type,
                                   .takes_objects = true};
  configuration->overlay = text ? json_object() : NULL;
  if (text) diagnostics->source = NULL;
  if (text &&
      !option_overlay(descriptor->options, descriptor->n_options, variable, text, configuration->overlay, diagnostics))
    return false;
  bool is_whole = strcmp(graph->runtime, descriptor->type) != 0 ||
                  !json_object_update(configuration->object, graph->runtime_object);
  if (text) is_whole &= !json_object_update(configuration->object, configuration->overlay);
  if (!is_whole) {
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, context.path, "no host memory for the options");
    return false;
  }
  return option_fill_valid(descriptor, configuration->object, &context, NULL, configuration->options);
}

/* Adds to the thread's error where its option was given: in the environment or in the graph. */
static enum hipmm_status runtime_library_locate(const struct graph *graph, const struct configuration *configuration,
                                                enum hipmm_status status)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  if (!error.path[0]) return status;
  bool is_variable = json_object_get(configuration->overlay, error.path + 1) != NULL;
  return error_locate(status, error.resource, is_variable ? "" : graph->source,
                      is_variable ? configuration->variable : "/runtime");
}

/* Fills the options and configures the runtime. The configuration lives until the next one replaces it. */
static enum hipmm_status runtime_library_configure_with(const struct graph *graph, struct configuration *configuration)
{
  static struct configuration *current;
  const struct hipmm_plugin *descriptor = configuration->descriptor;
  struct diagnostics diagnostics = {.source = graph->source};
  void *self;
  if (!configuration->options || !configuration->object) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  bool is_good = runtime_library_read_options(graph, configuration, &diagnostics);
  enum hipmm_status status = is_good ? HIPMM_OK : diagnostics_raise(&diagnostics);
  diagnostics_clear(&diagnostics);
  if (status) return status;
  status = descriptor->create(&configuration->services, configuration->options, NULL, 0, &self);
  if (status) return runtime_library_locate(graph, configuration, status);
  runtime_library_free(current);
  current = configuration;
  return HIPMM_OK;
}

static enum hipmm_status runtime_library_configure(const struct graph *graph, const struct hipmm_plugin *descriptor)
{
  struct configuration *configuration = calloc(1, sizeof *configuration);
  if (!configuration) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  configuration->services = services_plain(descriptor->type);
  configuration->descriptor = descriptor;
  configuration->object = json_object();
  configuration->options = calloc(1, descriptor->options_bytes + 1);
  runtime_library_variable_of(descriptor->type, configuration->variable, sizeof configuration->variable);
  enum hipmm_status status = runtime_library_configure_with(graph, configuration);
  if (status) runtime_library_free(configuration);
  return status;
}

/* A runtime in the graph was checked when the graph was read: this one is in HIPMM_RUNTIME. */
static enum hipmm_status runtime_library_refuse_unknown(const char *word, const char *nearest)
{
  char shown[TEXT_QUOTE_BYTES];
  text_quote(word, shown, sizeof shown);
  if (nearest)
    return error_set(HIPMM_E_PLUGIN, "HIPMM_RUNTIME: unknown runtime %s; did you mean \"%s\"?", shown, nearest);
  return error_set(HIPMM_E_PLUGIN, "HIPMM_RUNTIME: unknown runtime %s; " GRAPH_RUNTIME_FORMS, shown);
}

static enum hipmm_status runtime_library_open_plugin(const struct graph *graph, const char *type, void **library_out)
{
  const struct plugin *plugin;
  const char *nearest = graph_near_runtime(type);
  bool is_known = (nearest && !strcmp(nearest, type)) || plugin_exists(&graph->plugin_path, type);
  enum hipmm_status status =
      is_known ? plugin_get(&graph->plugin_path, type, &plugin) : runtime_library_refuse_unknown(type, nearest);
  if (status) return status;
  if (plugin->descriptor.role != HIPMM_ROLE_RUNTIME)
    return error_set(HIPMM_E_CONFIG, "runtime \"%s\": %s is a resource type, not a runtime; " GRAPH_RUNTIME_FORMS, type,
                     plugin->file);
  status = runtime_library_configure(graph, &plugin->descriptor);
  return status ? status : runtime_library_open(plugin->file, library_out);
}

enum hipmm_status runtime_library_load(const struct graph *graph, const char *name, void **library_out)
{
  if (strchr(name, '/')) return runtime_library_open(name, library_out);
  if (!strcmp(name, "amd")) return runtime_library_open_amd(library_out);
  return runtime_library_open_plugin(graph, name, library_out);
}
