/* SPDX-License-Identifier: MIT */
/* model.c: the run of model.h, from initialisation to the balance after hipmm_finalize(). worker.c has the work of its
 * threads. */
#include "../../../core/stack/instance.h"
#include "program.h"
#include "random.h"
#include "worker.h"

#include <hipmm/stream.h>
#include <stdio.h>
#include <string.h>

static void model_prepare(struct worker *worker, struct run *run, uint64_t seed, int number)
{
  memset(worker, 0, sizeof *worker);
  worker->run = run;
  worker->random = seed * 1000 + (uint64_t)number;
  worker->pattern = 30 * number;
  for (int i = 0; i < run->model->streams; i++)
    worker_check_hip(
        run, "hipHostMalloc",
        run->hip->HostMalloc((void **)&worker->copies[i], run->model->most_bytes, HIPMM_HIP_HOST_MALLOC_PORTABLE));
}

static void model_clean_up(struct worker *worker)
{
  for (int i = 0; i < worker->run->model->streams; i++) worker->run->hip->HostFree(worker->copies[i]);
}

static void model_run_threads(struct run *run, uint64_t seed)
{
  static struct worker workers[MODEL_MOST_THREADS];
  pthread_t threads[MODEL_MOST_THREADS];
  for (int i = 0; i < run->model->threads; i++) model_prepare(&workers[i], run, seed, i);
  for (int i = 0; i < run->model->threads; i++) {
    if (run->model->threads > 1)
      pthread_create(&threads[i], NULL, worker_run, &workers[i]);
    else
      worker_run(&workers[i]);
  }
  for (int i = 0; i < run->model->threads && run->model->threads > 1; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < run->model->threads; i++) model_clean_up(&workers[i]);
}

/* Everything has been freed: nothing is live, and nothing stays behind when it is trimmed. */
static void model_check_rest(struct run *run)
{
  int64_t live = 0, waits = 0;
  size_t now = 1;
  if (run->ranges.count) worker_fail_run(run, MODEL_REST, "%zu blocks were not freed", run->ranges.count);
  if (!hipmm_resource_query(run->resource, "stream_waits", &waits)) run->result.waits_of_streams += (uint64_t)waits;
  worker_check_hip(run, "hipDeviceSynchronize", run->hip->DeviceSynchronize());
  worker_check_status(run, "hipmm_resource_trim", hipmm_resource_trim(run->resource, 0), HIPMM_OK);
  worker_check_status(run, "hipmm_device_held_bytes", hipmm_device_held_bytes(run->model->device, &now, NULL),
                      HIPMM_OK);
  /* What a resource keeps is live to the one below it, which answers where the resource has no such value of its own. */
  const struct hipmm_plugin *plugin = &instance_from(run->resource)->node->plugin->descriptor;
  bool is_own = descriptor_row(plugin->values, plugin->n_values, "live_bytes") < plugin->n_values;
  bool is_asked = is_own || !run->model->keeps_memory;
  if (is_asked && !hipmm_resource_query(run->resource, "live_bytes", &live) && live)
    worker_fail_run(run, MODEL_REST, "%lld bytes are said to be live", (long long)live);
  if (now && !run->model->keeps_memory) worker_fail_run(run, MODEL_REST, "%zu bytes are held after a trim of all", now);
}

static void model_make_streams(struct run *run)
{
  uint64_t random = 1;
  worker_check_hip(run, "hipSetDevice", run->hip->SetDevice(run->model->device));
  for (int i = 0; i < run->model->streams; i++) {
    unsigned flags = run->model->has_defaults && i % 3 == 2 ? 0 : HIPMM_HIP_STREAM_NON_BLOCKING;
    run->streams[i] = i == 1 ? HIPMM_PER_THREAD_STREAM : NULL;
    if (worker_is_default_stream(run, i)) continue;
    worker_check_hip(run, "hipStreamCreate", run->hip->StreamCreateWithFlags(&run->streams[i], flags));
    if (random_chance(&random, 30) && run->model->no_streams)
      worker_check_status(run, "hipmm_stream_retain", hipmm_stream_retain(0, run->streams[i]), HIPMM_OK);
  }
}

/* With the first stream already gone where the configuration allows that: finalize must do without it. */
static void model_destroy_streams(struct run *run)
{
  for (int i = 0; i < run->model->streams; i++) {
    if (worker_is_default_stream(run, i)) continue;
    if (run->model->retires || run->model->no_streams) hipmm_stream_retire(run->model->device, run->streams[i]);
    worker_check_hip(run, "hipStreamDestroy", run->hip->StreamDestroy(run->streams[i]));
  }
}

static bool model_begin(struct run *run, uint64_t seed)
{
  const struct model *model = run->model;
  char graph[1500];
  snprintf(graph, sizeof graph,
           "{\"runtime\": {%s\"type\": \"software\", \"memory\": \"256MiB\", \"scheduler\": \"%s\", \"seed\": %llu, "
           "\"devices\": %d%s}, \"%s\": %s}",
           model->runtime ? model->runtime : "", model->scheduler, (unsigned long long)seed, model->device + 1,
           model->checks_streams ? ", \"check_streams\": true" : "", model->resources ? "resources" : "stack",
           model->resources ? model->resources : model->stack);
  enum hipmm_status status = hipmm_init_from_string(graph);
  run->hip = hip_table();
  if (!status) worker_check_hip(run, "hipSetDevice", run->hip->SetDevice(model->device));
  if (!status) program_begin(model->region_bytes);
  if (!status) status = hipmm_resource_get_for_device(model->device, &run->resource);
  worker_check_status(run, "initialisation", status, HIPMM_OK);
  run->result.status = status;
  return !status;
}

/* The first line of the report, and the two calls that it is about. */
static void model_tell_race(struct run *run, const char *report)
{
  const char *start = strstr(report, "race: "), *now = strstr(report, "\n  now: "),
             *before = strstr(report, "\n  before: ");
  if (!start || !now || !before) start = now = before = "      ?\n";
  start += strlen("race: ");
  now += strlen("\n  ");
  before += strlen("\n  ");
  worker_fail_run(run, MODEL_ORDER, "%.*s (%.*s; %.*s)", (int)strcspn(start, "\n"), start, (int)strcspn(now, "\n"), now,
                  (int)strcspn(before, "\n"), before);
}

/* Reports of earlier runs in this process come first. */
static void model_look_at_races(struct run *run)
{
  static size_t n_seen;
  const char *report;
  for (; run->model->checks_streams && (report = software()->race(n_seen, NULL)); n_seen++)
    model_tell_race(run, report);
}

/* The balance: the runtime has everything back. */
static void model_end(struct run *run)
{
  worker_check_status(run, "hipmm_finalize", hipmm_finalize(), HIPMM_OK);
  program_end();
  if (run->model->device) run->hip->SetDevice(0);
  uint64_t lost = software_live(), faults = software_faults();
  if (lost) worker_fail_run(run, MODEL_REST, "%llu blocks or handles were not given back", (unsigned long long)lost);
  model_look_at_races(run);
  if (faults)
    worker_fail_run(run, MODEL_ORDER, "%llu times work ran on memory that was gone", (unsigned long long)faults);
  software()->reset();
}

struct model_result model_run(const struct model *model, uint64_t seed)
{
  struct run run = {.model = model};
  ranges_open(&run.ranges);
  pthread_rwlock_init(&run.streams_lock, NULL);
  pthread_mutex_init(&run.result_lock, NULL);
  if (model_begin(&run, seed)) {
    model_make_streams(&run);
    model_run_threads(&run, seed);
    if (!worker_has_failed(&run)) model_check_rest(&run);
    model_destroy_streams(&run);
    hipmm_resource_release(run.resource);
  }
  model_end(&run);
  ranges_close(&run.ranges);
  pthread_rwlock_destroy(&run.streams_lock);
  pthread_mutex_destroy(&run.result_lock);
  return run.result;
}
