/* SPDX-License-Identifier: MIT */
/* rig.c: the helpers of rig.h. */
#include "rig.h"
#include "../../core/hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Stacks ---- */

static char *graph_text(const char *runtime_options, const char *graph)
{
  char *text;
  int length = asprintf(&text, "{'runtime': {'type': 'software', 'devices': 2, 'memory': '256MiB'%s%s}, %s}",
                        *runtime_options ? ", " : "", runtime_options, graph);
  if (length < 0) return NULL;
  for (char *at = text; *at; at++)
    if (*at == '\'') *at = '"';
  return text;
}

enum hipmm_status rig_try(const char *runtime_options, const char *graph)
{
  struct hipmm_resource *resource;
  char *text = graph_text(runtime_options, graph);
  enum hipmm_status status = hipmm_init_from_string(text);
  free(text);
  if (!status) status = hipmm_get_device_resource(0, &resource);
  if (!status) hipmm_resource_release(resource);
  return status;
}

void rig_start_with(const char *runtime_options, const char *graph)
{
  assert_ok(rig_try(runtime_options, graph));
}

void rig_start(const char *graph)
{
  rig_start_with("", graph);
}

int rig_setup(void **state)
{
  (void)state;
  software()->reset();
  return 0;
}

static bool nothing_is_lost(void)
{
  hipmm_finalize(); /* the test may have done it */
  uint64_t live = live_on_all_devices(), faults = faults_on_all_devices();
  if (live) print_error("%llu blocks were never given back\n", (unsigned long long)live);
  if (faults) print_error("%llu times work ran on memory that was gone\n", (unsigned long long)faults);
  return !live && !faults;
}

int rig_teardown(void **state)
{
  (void)state;
  return nothing_is_lost() ? 0 : -1;
}

const struct hipmm_hip *rig_hip(void)
{
  return hip_table();
}

struct hipmm_resource *rig_resource(const char *name)
{
  struct hipmm_resource *resource = NULL;
  if (!name) return NULL;
  assert_ok(hipmm_get_named_resource(0, name, &resource));
  hipmm_resource_release(resource); /* the table of devices keeps it */
  return resource;
}

int64_t rig_value(const char *resource, const char *value)
{
  int64_t number = -1;
  assert_ok(hipmm_resource_query(rig_resource(resource), value, &number));
  return number;
}

size_t rig_held_bytes(void)
{
  size_t now = 0, peak = 0;
  assert_ok(hipmm_device_held_bytes(0, &now, &peak));
  return now;
}

size_t rig_peak_held_bytes(void)
{
  size_t now = 0, peak = 0;
  assert_ok(hipmm_device_held_bytes(0, &now, &peak));
  return peak;
}

/* ---- Memory and streams ---- */

void *rig_allocate(size_t bytes, hipStream_t stream)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(NULL, bytes, stream, &ptr));
  assert_true(bytes == 0 || ptr);
  return ptr;
}

void rig_free(void *ptr, size_t bytes, hipStream_t stream)
{
  assert_ok(hipmm_deallocate(NULL, ptr, bytes, stream));
}

hipStream_t rig_stream(void)
{
  hipStream_t stream = NULL;
  assert_int_equal(rig_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0);
  return stream;
}

void rig_drop_stream(hipStream_t stream)
{
  assert_int_equal(rig_hip()->StreamDestroy(stream), 0);
}

/* ---- Failing calls ---- */

void rig_fail_call(const char *name, uint64_t nth, int code)
{
  assert_true(software()->schedule(name, nth, code));
}

/* Runs the body once; false if it could not even start. */
static bool run(const char *runtime_options, const char *graph, void (*body)(void))
{
  bool started = !rig_try(runtime_options, graph);
  if (started) body();
  return started;
}

static uint64_t count_calls(const char *runtime_options, const char *graph, void (*body)(void), const char *name)
{
  software()->reset();
  assert_true(run(runtime_options, graph, body));
  hipmm_finalize();
  return software()->calls(name);
}

unsigned rig_fail_each_call(const char *runtime_options, const char *graph, void (*body)(void))
{
  unsigned failed = 0;
  const char *name;
  for (size_t row = 0; (name = software()->call(row, NULL)); row++) {
    uint64_t n = count_calls(runtime_options, graph, body, name);
    for (uint64_t nth = 1; nth <= n; nth++, failed++) {
      software()->reset();
      rig_fail_call(name, nth, 0);
      run(runtime_options, graph, body);
      if (!nothing_is_lost()) fail_msg("when call %llu of %s failed", (unsigned long long)nth, name);
    }
  }
  software()->reset();
  return failed;
}
