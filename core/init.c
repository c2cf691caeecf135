/* SPDX-License-Identifier: MIT */
/* init.c: initialisation and finalisation. Both are counted, so that several users in one process share the table of
 * devices: the first initialisation opens the table, the last finalisation closes it. Called by applications and by
 * libraries in them. Builds no stack. */
#include "base/environment.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "base/log.h"
#include "base/rank.h"
#include "base/trust.h"
#include "call/device_table.h"
#include "call/handle.h"
#include "container/storage.h"
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

/* Opens the table of devices over a graph, and takes over the reference to it. `is_any`: see init_change(). */
static enum hipmm_status init_open(struct graph *graph, bool is_any)
{
  enum hipmm_status status = hip_open(graph, atomic_load(&lifecycle_own_stacks) > 0);
  if (!status && !is_any) status = init_choose_device(graph);
  if (status) {
    graph_release(graph);
    return status;
  }
  device_table_open(graph);
  report_watch_exit(graph);
  if (publish_is_wanted(graph->publishes)) publish_begin();
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
static enum hipmm_status init_read(const char *file, const char *json, bool is_any)
{
  struct graph *graph = NULL;
  bool is_first = !lifecycle_users;
  enum hipmm_status status = graph_load(file, json, &graph);
  if (status) return status;
  return is_first ? init_open(graph, is_any) : init_join(graph);
}

/* ---- Public functions ---- */

/* What fails on the way to success, such as a runtime that "auto" finds no device of, is not the caller's failure.
 * `is_any`: whatever graph is in use will do, and the caller may be a framework: the thread's device stays. */
static enum hipmm_status init_change(const char *file, const char *json, bool is_any)
{
  const struct error_record before = error_mark();
  enum hipmm_status status = lifecycle_begin_change();
  if (status) return status;
  if (!is_any || !lifecycle_users) status = init_read(file, json, is_any);
  if (!status) lifecycle_users++;
  lifecycle_end_change(lifecycle_users ? LIFECYCLE_READY : LIFECYCLE_BEFORE);
  if (!status) error_return_to_mark(&before);
  return status;
}

static enum hipmm_status init_search(bool is_any)
{
  char buffer[PATH_MAX];
  const char *file = trust_find_config(buffer, sizeof buffer);
  const char *variable = environment_get("HIPMM_CONFIG");
  log_line(HIPMM_LOG_INFO, "config", "%s", file ? file : "no file found: the built-in graph");
  enum hipmm_status status = init_change(file, NULL, is_any);
  return status == HIPMM_E_IO && variable && *variable ? error_blame_variable("HIPMM_CONFIG", status) : status;
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
  return init_change(path, NULL, false);
}

enum hipmm_status hipmm_init_from_string(const char *json)
{
  if (!json && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "json is NULL");
  return init_change(NULL, json, false);
}

/* ---- Finalisation ---- */

static void init_close(void)
{
  lifecycle_await_calls();
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
