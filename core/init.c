/* SPDX-License-Identifier: MIT */
/* init.c: initialisation and finalisation. Both are counted, so that several users in one process share the table of
 * devices: the first initialisation opens the table, the last finalisation closes it. Called by applications and by
 * libraries in them. Builds no stack. */
#include "base/call_site.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "base/log.h"
#include "base/rank.h"
#include "base/trust.h"
#include "call/device_table.h"
#include "call/handle.h"
#include "container/storage.h"
#include "inspect/control.h"
#include "inspect/publish.h"
#include "inspect/report.h"
#include "runtime/hip.h"
#include "stack/stack_list.h"

#include <limits.h>
#include <string.h>

/* ---- Within a change (lifecycle.h) ---- */

/* Makes the device of the process's rank on its host current, if the graph asks for that and a launcher tells the rank. A
 * launcher may have left the process one device alone, or have started more ranks than there are devices. */
static enum hipmm_status init_choose_device(const struct graph *graph)
{
  int previous, rank = graph->follows_local_rank ? rank_on_host() : -1, n_devices = rank < 0 ? 0 : device_table_count();
  if (n_devices <= 0) return HIPMM_OK;
  log_line(HIPMM_LOG_INFO, "init", "local rank %d: device %d of %d is current", rank, rank % n_devices, n_devices);
  return device_table_enter(rank % n_devices, &previous);
}

/* An environment variable that is 1 or 0, or else what the graph says. */
static bool init_is_wanted(const char *variable, bool by_graph, const char *purpose)
{
  const char *text = environment_get(variable);
  if (!text || !*text) return by_graph;
  if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
    log_line(HIPMM_LOG_WARNING, "init", "%s is \"%.40s\"; write 1 %s, 0 not to", variable, text, purpose);
  return strcmp(text, "1") == 0;
}

/* A socket for other processes is what the user asks for: not a file that happens to lie in the working folder. */
static void init_control(const struct graph *graph)
{
  const char *variable = environment_get("HIPMM_CONTROL");
  bool is_by_graph = graph->is_controlled && !graph->was_found;
  if (init_is_wanted("HIPMM_CONTROL", is_by_graph, "to let hipmm ctl in"))
    control_begin();
  else if (graph->is_controlled && graph->was_found && (!variable || !*variable))
    log_line(HIPMM_LOG_WARNING, "control",
             "\"control\" opens a socket for other processes, which a graph that was only found (%s) does not allow; "
             "name the graph, as with HIPMM_CONFIG, or set HIPMM_CONTROL=1",
             graph->source);
}

/* Opens the table of devices over a graph, and takes over the reference to it. `is_any`: see init_change(). */
static enum hipmm_status init_open(struct graph *graph, bool is_any)
{
  enum hipmm_status status = hip_open(graph, atomic_load(&lifecycle_own_stacks) > 0);
  if (!status && !is_any) status = init_choose_device(graph);
  if (status) {
    graph_release(graph);
    return status;
  }
  call_site_settle(false);
  device_table_open(graph);
  report_watch_exit(graph);
  if (init_is_wanted("HIPMM_PUBLISH", graph->publishes, "to publish counters")) publish_begin();
  init_control(graph);
  return HIPMM_OK;
}

static enum hipmm_status init_refuse_other(const struct graph *present, const struct graph *graph)
{
#define INIT_ADVICE                                                                                             \
  "use the graph in use (hipmm_init_if_needed()), build a stack beside it (hipmm_stack_build_from_file()), or " \
  "call hipmm_finalize() before, %u time%s"
  bool is_file = *graph->source != '<';
  const char *plural = lifecycle_users == 1 ? "" : "s";
  if (strcmp(present->source, graph->source))
    return error_set(
        HIPMM_E_STATE,
        "hipmm is initialised already, with the graph of %s, and the graph of %s is another one; " INIT_ADVICE,
        present->source, graph->source, lifecycle_users, plural);
  if (is_file)
    return error_set(HIPMM_E_STATE,
                     "hipmm is initialised already, with the graph of %s, which has changed since; " INIT_ADVICE,
                     present->source, lifecycle_users, plural);
  return error_set(HIPMM_E_STATE, "hipmm is initialised already, with another graph than this one; " INIT_ADVICE,
                   lifecycle_users, plural);
}

/* For a further user: its graph must be the graph in use. Releases it. */
static enum hipmm_status init_join(struct graph *graph)
{
  const struct graph *present = device_table_graph_in_use();
  enum hipmm_status status = HIPMM_OK;
  if (!graph_is_same(present, graph)) status = init_refuse_other(present, graph);
  if (!status) status = hip_check(graph);
  if (!status) log_line(HIPMM_LOG_INFO, "init", "initialised already, with the same graph (%s)", present->source);
  graph_release(graph);
  return status;
}

/* Reads a graph from `file`, or from `json`, or takes the built-in one when both are NULL. */
static enum hipmm_status init_read(const char *file, const char *json, bool was_found, bool is_any)
{
  struct graph *graph = NULL;
  bool is_first = !lifecycle_users;
  enum hipmm_status status = graph_load(file, json, &graph);
  if (status) return status;
  graph->was_found = was_found;
  if (is_first) graph_add_flight(graph);
  return is_first ? init_open(graph, is_any) : init_join(graph);
}

/* ---- Public functions ---- */

/* What fails on the way to success, such as a runtime that "auto" finds no device of, is not the caller's failure.
 * `was_found`: nobody named the file. `is_any`: any graph in use will do, and the thread's device stays, since the caller may be
 * a framework. */
static enum hipmm_status init_change(const char *file, const char *json, bool was_found, bool is_any)
{
  const struct error_record before = error_mark();
  enum hipmm_status status = lifecycle_begin_change();
  if (status) return status;
  if (!is_any || !lifecycle_users) status = init_read(file, json, was_found, is_any);
  if (!status) lifecycle_users++;
  lifecycle_end_change(lifecycle_users ? LIFECYCLE_READY : LIFECYCLE_BEFORE);
  if (!status) error_return_to_mark(&before);
  return status;
}

static enum hipmm_status init_search(bool is_any)
{
  char buffer[PATH_MAX];
  const char *variable = environment_get("HIPMM_CONFIG"), *text = variable && graph_is_text(variable) ? variable : NULL;
  const char *file = text ? NULL : trust_find_config(buffer, sizeof buffer);
  log_line(HIPMM_LOG_INFO, "config", "%s",
           text   ? "the graph in HIPMM_CONFIG"
           : file ? file
                  : "no file found: the built-in graph");
  bool is_named =
      variable && *variable && !environment_get("HIPMM_RUN_FOUND"); /* else `hipmm run` names what it found */
  enum hipmm_status status = init_change(file, text, file && !is_named, is_any);
  bool is_of_variable = text ? status == HIPMM_E_CONFIG : status == HIPMM_E_IO && variable && *variable;
  return is_of_variable ? error_blame_variable("HIPMM_CONFIG", status) : status;
}

enum hipmm_status hipmm_init(void)
{
  return init_search(false);
}

enum hipmm_status hipmm_init_if_needed(void)
{
  return init_search(true);
}

enum hipmm_status hipmm_init_from_file(const char *path)
{
  if (!path && !lifecycle_refuses_calls())
    return error_set(HIPMM_E_ARGUMENT, "path is NULL; hipmm_init() searches for a file");
  return init_change(path, NULL, false, false);
}

enum hipmm_status hipmm_init_from_string(const char *json)
{
  if (!json && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "json is NULL");
  return init_change(NULL, json, false, false);
}

/* ---- Finalisation ---- */

static void init_close(void)
{
  lifecycle_await_calls();
  control_end();
  publish_end();
  report_write(device_table_graph_in_use());
  storage_free_waiting();
  pinned_resource_close();
  device_table_close();
  handle_release_idle();
  stack_await_pins();
  resource_warn_of_held();
}

enum hipmm_status hipmm_finalize(void)
{
  enum hipmm_status status = lifecycle_begin_change();
  if (status) return status;
  status = lifecycle_check();
  if (!status && !--lifecycle_users) init_close();
  lifecycle_end_change(lifecycle_users ? LIFECYCLE_READY : LIFECYCLE_BEFORE);
  return status;
}
