/* SPDX-License-Identifier: MIT */
/* checks.c: see checks.h. Called by the hooks of work, by streams.c, by checks_hip.c, and at the end of the process. */
#include "checks.h"

#include "../../core/base/environment.h"
#include "../../core/runtime/hip.h"
#include "contexts.h"
#include "devices.h"
#include "next_symbol.h"

#include <string.h>

/* As ThreadSanitizer has it. */
enum { EXIT_RACES = 66 };

__attribute__((constructor)) static void checks_prepare(void)
{
  const char *wanted = environment_get("HIPMM_RUN_CHECK");
  if (wanted && !strcmp(wanted, "1")) races_start(false);
}

bool checks_are_on(void)
{
  return races_are_on();
}

/* ---- Streams ---- */

struct race_stream checks_stream(int device, hipmm_stream_t stream)
{
  static char default_keys[DEVICES_MOST];
  static _Thread_local char thread_keys[DEVICES_MOST];
  int number = device >= 0 && device < DEVICES_MOST ? device : 0;
  struct race_stream named = {.key = stream, .handle = stream, .device = device, .kind = RACE_STREAM_BLOCKING};
  if ((uintptr_t)stream <= 1) {
    named.key = &default_keys[number];
    named.kind = RACE_STREAM_LEGACY;
  } else if ((uintptr_t)stream == 2) {
    named.key = &thread_keys[number];
  }
  return named;
}

/* A function whose name ends so takes the default stream for the thread's own. */
static bool checks_is_per_thread(enum hook hook)
{
  const char *suffix = strrchr(hook_name(hook), '_');
  return suffix && (!strcmp(suffix, "_ptsz") || !strcmp(suffix, "_ptds") || !strcmp(suffix, "_spt"));
}

/* False where the stream is being captured: its work does not run now. */
static bool checks_find_stream(enum hook hook, hipmm_stream_t stream, struct race_stream *named_out)
{
  int code;
  enum family family = hook_family(hook);
  if (!stream && checks_is_per_thread(hook)) stream = (hipmm_stream_t)2;
  if (next_is_capturing(family, stream, &code)) return false;
  *named_out = checks_stream(contexts_current_device(family), stream);
  return true;
}

/* A stream that was created out of sight counts as a blocking one. */
void checks_add_stream(int device, hipmm_stream_t stream, unsigned flags)
{
  enum { NON_BLOCKING = 1 };
  if (!checks_are_on()) return;
  struct race_stream named = checks_stream(device, stream);
  if (flags & NON_BLOCKING) named.kind = RACE_STREAM_APART;
  races_add_stream(&named);
}

void checks_end_stream(hipmm_stream_t stream)
{
  if (checks_are_on() && (uintptr_t)stream > 2) races_end_stream(stream);
}

/* ---- Work ---- */

void checks_copy(enum hook hook, void *to, const void *from, size_t bytes, hipmm_stream_t stream)
{
  struct race_stream named;
  if (!bytes || !checks_find_stream(hook, stream, &named)) return;
  races_work(&named, hook_name(hook), (struct race_access){.start = to, .bytes = to ? bytes : 0},
             (struct race_access){.start = (void *)(uintptr_t)from, .bytes = from ? bytes : 0});
}

/* From the start of the first row to the end of the last. */
static struct race_access checks_rows(const void *start, size_t pitch, size_t width, size_t height)
{
  return (struct race_access){.start = (void *)(uintptr_t)start,
                              .bytes = (height - 1) * pitch + width,
                              .width = width,
                              .pitch = height > 1 ? pitch : 0};
}

void checks_copy_rows(enum hook hook, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height, hipmm_stream_t stream)
{
  struct race_stream named;
  if (!width || !height || !checks_find_stream(hook, stream, &named)) return;
  races_work(&named, hook_name(hook), checks_rows(to, to_pitch, width, height),
             checks_rows(from, from_pitch, width, height));
}

void checks_record(enum hook hook, hipmm_hip_event_t event, hipmm_stream_t stream)
{
  struct race_stream named;
  if (checks_find_stream(hook, stream, &named)) races_record(&named, event);
}

void checks_wait(enum hook hook, hipmm_stream_t stream, hipmm_hip_event_t event)
{
  struct race_stream named;
  if (checks_find_stream(hook, stream, &named)) races_wait(&named, event);
}

void checks_end_event(hipmm_hip_event_t event)
{
  races_end_event(event);
}

void checks_host_after_event(hipmm_hip_event_t event)
{
  races_host_after_event(event);
}

void checks_host_after_events(hipmm_hip_event_t event, hipmm_hip_event_t other)
{
  races_host_after_event(event);
  races_host_after_event(other);
}

void checks_host_after_stream(enum hook hook, hipmm_stream_t stream)
{
  struct race_stream named;
  if (checks_find_stream(hook, stream, &named)) races_host_after_stream(&named);
}

/* Memory that the runtime knows has a device pointer; of other memory, old releases of HIP make an error. */
static bool checks_is_pageable(enum family family, void *ptr)
{
  bool is_hip = family == FAMILY_HIP;
  enum hook query = is_hip ? HOOK_hipPointerGetAttributes : HOOK_cudaPointerGetAttributes;
  next_function last = next_find(is_hip ? HOOK_hipGetLastError : HOOK_cudaGetLastError);
  struct {
    int type, device;
    void *device_pointer, *room[16];
  } attributes = {0, 0, NULL, {NULL}};
  if (family == FAMILY_DRIVER || !next_find(query) || !last) return false;
  int code = next_two_pointers(query, &attributes, ptr);
  if (code) ((int (*)(void))last)();
  return code || !attributes.device_pointer;
}

void checks_host_after_copy(enum hook hook, void *to, hipmm_stream_t stream)
{
  struct race_stream named;
  if (checks_find_stream(hook, stream, &named) && checks_is_pageable(hook_family(hook), to))
    races_host_after_stream(&named);
}

void checks_host_after_device(enum hook hook)
{
  races_host_after_device(contexts_current_device(hook_family(hook)));
}

/* ---- What was found ---- */

const char *checks_report(size_t index, const char **kind_out)
{
  const char *(*function)(size_t, const char **) = races_report;
  void *address = checks_are_on() ? NULL : hip_symbol("hipmm_software_race");
  if (address) memcpy(&function, &address, sizeof function);
  return function(index, kind_out);
}

static size_t (*_Atomic count_races)(void) = races_count;

void checks_find_end(void)
{
  size_t (*function)(void);
  void *address = checks_are_on() ? NULL : hip_symbol("hipmm_software_race_count");
  if (!address) return;
  memcpy(&function, &address, sizeof function);
  atomic_store(&count_races, function);
}

int checks_finish(int status)
{
  const char *wanted = environment_get("HIPMM_RUN_CHECK");
  if (!wanted || !*wanted) return status;
  if (checks_are_on()) races_summarise();
  return !status && atomic_load(&count_races)() ? EXIT_RACES : status;
}
