/* SPDX-License-Identifier: MIT */
/* recording.c: an adaptor that records each allocation and free in a compact binary file (core/base/record_format.h), for
 * `hipmm convert`, `report`, `replay` and the commands that read logs.
 *
 * As in `logging`, the event of an allocation is recorded after it succeeded and the event of a free before it is
 * forwarded, so the events of an address are in true order with any number of threads (see clock.h). */
#include "../common/descriptor.h"
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_EVENT_BYTES = 16 };

/* If more places change between two events, all places are recorded anew. */
enum { RECORDING_CHANGES = 128 };

struct recording_options {
  const char *file;
  uint32_t enabled;
  uint64_t rotate_size;
  int64_t rotate_files, keep_last;
  struct stack_options stack;
};

/* Memory that a resource has, and where. */
struct recording_place {
  const char *holder;
  const void *ptr;
  int64_t bytes;
};

struct recording {
  struct hipmm_resource *upstream;
  atomic_bool is_enabled;
  atomic_bool is_saved; /* what is kept, at the first allocation without memory */
  /* 0 there: events are plain. While the recording is enabled, without stacks, its clock is the processor's counter and
   * nothing is new, it is services->tags_used: so that tags cost nothing until there is one. Else it is `always`. */
  const uint32_t *_Atomic is_special;
  atomic_bool is_held_new;     /* since the last event, or where it is: see recording_notify_of_held() */
  atomic_bool are_places_due;  /* all places, at the next event */
  pthread_mutex_t places_lock; /* the next four */
  bool is_visiting;            /* a thread collects all places, and takes the changes then */
  bool omits_places;           /* they would leave too little room for events: until all places are due again */
  uint32_t n_changes;
  struct recording_place changes[RECORDING_CHANGES]; /* since the last event */
  uint64_t most_place_bytes;                         /* that all places may take in the record; 0: any number */
  atomic_uint_fast64_t due_ns;                       /* when the device is next asked for its free memory */
  struct recorder recorder;
};

/* The device is asked for its free memory at most so often, and only when what is held has changed. */
enum { RECORDING_FREE_NS = 10000000 };

/* ---- Held memory ---- */

static const uint32_t always = 1;

static void recording_settle(struct recording *recording)
{
  const struct recorder *recorder = &recording->recorder;
  const bool is_plain = !recorder->stack.stacks && recorder->file.uses_counter;
  atomic_store(&recording->is_special, is_plain ? recorder->services->tags_used : &always);
  if (!atomic_load(&recording->is_enabled) || atomic_load(&recording->is_held_new))
    atomic_store(&recording->is_special, &always); /* also if another thread has just changed them */
}

static inline bool recording_is_plain(struct recording *recording)
{
  const uint32_t *is_special = atomic_load_explicit(&recording->is_special, memory_order_relaxed);
  return !__atomic_load_n(is_special, __ATOMIC_RELAXED);
}

/* The next event records what is held, and is not plain. */
static void recording_expect_held(struct recording *recording)
{
  atomic_store(&recording->is_held_new, true);
  atomic_store(&recording->is_special, &always);
}

/* Called under locks of resources below, so that the next event records it. If two threads change
 * what is held at once, the older sum may come last; the next change corrects it. */
static void recording_notify_of_held(void *closure, const char *source, int64_t bytes, int64_t held_bytes)
{
  struct recording *recording = closure;
  (void)source, (void)bytes;
  atomic_store_explicit(&recording->recorder.file.held_bytes, held_bytes, memory_order_relaxed);
  recording_expect_held(recording);
}

/* The same for where it is. */
static void recording_notify_of_place(void *closure, const char *holder, const void *ptr, int64_t bytes)
{
  struct recording *recording = closure;
  pthread_mutex_lock(&recording->places_lock);
  if (recording->n_changes < RECORDING_CHANGES)
    recording->changes[recording->n_changes++] = (struct recording_place){holder, ptr, bytes};
  else
    atomic_store(&recording->are_places_due, true);
  pthread_mutex_unlock(&recording->places_lock);
  recording_expect_held(recording);
}

/* All places are recorded with the next event: what was recorded of them so far is not in the same file, or incomplete. */
static void recording_renew_places(struct recording *recording)
{
  atomic_store(&recording->are_places_due, true);
  recording_expect_held(recording);
}

static void recording_part_begins(struct record_file *file)
{
  recording_renew_places((struct recording *)((char *)file - offsetof(struct recording, recorder.file)));
}

/* UINT64_MAX: it is not due, or not known. */
static uint64_t recording_device_free(struct recording *recording)
{
  const struct hipmm_services *services = recording->recorder.services;
  const uint64_t now = monotonic_ns();
  uint_fast64_t due = atomic_load_explicit(&recording->due_ns, memory_order_relaxed);
  size_t free_bytes = 0, total_bytes;
  if (now < due || !atomic_compare_exchange_strong_explicit(&recording->due_ns, &due, now + RECORDING_FREE_NS,
                                                            memory_order_relaxed, memory_order_relaxed))
    return UINT64_MAX;
  int previous = services->enter_device(services), code = services->hip->MemGetInfo(&free_bytes, &total_bytes);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  return code ? UINT64_MAX : free_bytes;
}

struct recording_places {
  struct recording_place *items;
  size_t n, capacity;
  uint64_t bytes, ticks; /* `bytes` in the record */
  bool has_failed;       /* without host memory */
};

static void recording_collect_place(void *closure, const char *holder, const void *ptr, int64_t bytes)
{
  struct recording_places *places = closure;
  places->bytes += 2 + sizeof(struct record_place) + 1 + (holder ? strlen(holder) : 0);
  if (places->n == places->capacity) {
    const size_t capacity = 2 * places->capacity + RECORDING_CHANGES;
    struct recording_place *larger = realloc(places->items, capacity * sizeof *larger);
    places->has_failed = places->has_failed || !larger;
    if (!larger) return;
    places->items = larger;
    places->capacity = capacity;
  }
  places->items[places->n++] = (struct recording_place){holder, ptr, bytes};
}

/* All places. Whether they leave enough room for events; else only the first is left, which says that those before are forgotten. */
static bool recording_visit_places(const struct recording *recording, struct recording_places *places)
{
  const struct hipmm_services *services = recording->recorder.services;
  recording_collect_place(places, NULL, NULL, RECORD_NOWHERE);
  if (services->visit_places(services, recording_collect_place, places)) places->has_failed = true;
  if (!recording->most_place_bytes || places->bytes <= recording->most_place_bytes) return true;
  places->n = 1;
  return false;
}

/* What has changed since the last event; or all places, and after them what has changed while they were visited: in this order it
 * does not matter whether a visit found a place before or after its change. */
static void recording_take_places(struct recording *recording, struct recording_places *places)
{
  pthread_mutex_lock(&recording->places_lock);
  bool is_mine = !recording->is_visiting, is_due = is_mine && atomic_exchange(&recording->are_places_due, false);
  if (is_due) recording->n_changes = 0;
  if (is_due) recording->is_visiting = true;
  pthread_mutex_unlock(&recording->places_lock);
  bool omits_places = is_due && !recording_visit_places(recording, places);
  pthread_mutex_lock(&recording->places_lock);
  if (is_due) recording->omits_places = omits_places;
  for (uint32_t i = 0; is_mine && !recording->omits_places && i < recording->n_changes; i++) {
    const struct recording_place *change = &recording->changes[i];
    recording_collect_place(places, change->holder, change->ptr, change->bytes);
  }
  if (is_mine) recording->n_changes = 0;
  if (is_due) recording->is_visiting = false;
  places->ticks = clock_ticks(recording->recorder.file.uses_counter); /* the order of threads that take some */
  pthread_mutex_unlock(&recording->places_lock);
}

static void recording_add_places(struct recording *recording)
{
  struct recording_places places = {0};
  recording_take_places(recording, &places);
  for (size_t i = 0; !places.has_failed && i < places.n; i++) {
    const struct recording_place *place = &places.items[i];
    recorder_add_place(&recording->recorder, place->holder,
                       (struct record_place){places.ticks, (uintptr_t)place->ptr, place->bytes});
  }
  free(places.items);
  if (places.has_failed) recording_renew_places(recording);
}

/* Records what is held, and where it is, if that has changed. */
static void recording_add_held(struct recording *recording)
{
  struct recorder *recorder = &recording->recorder;
  if (!atomic_exchange(&recording->is_held_new, false)) return;
  const uint64_t bytes = (uint64_t)atomic_load_explicit(&recorder->file.held_bytes, memory_order_relaxed);
  const uint64_t device_free_bytes = recording_device_free(recording);
  recorder_add_held(recorder, (struct record_held){clock_ticks(recorder->file.uses_counter), bytes, device_free_bytes});
  recording_add_places(recording);
  recording_settle(recording);
}

/* ---- Allocating and freeing ---- */

/* An event that is recorded in the general way; nothing while the recording is off. */
static __attribute__((noinline)) void recording_add(struct recording *recording, enum record_action action,
                                                    const void *ptr, size_t bytes, hipmm_stream_t stream,
                                                    const void *from)
{
  struct recorder *recorder = &recording->recorder;
  if (!atomic_load_explicit(&recording->is_enabled, memory_order_relaxed)) return;
  recording_add_held(recording);
  uint32_t stack = from ? recorder_take_stack(recorder, action == RECORD_ALLOCATE ? bytes : SIZE_MAX, from) : 0;
  recorder_add(recorder, (struct record_event){action, clock_ticks(recorder->file.uses_counter), (uintptr_t)ptr, bytes,
                                               (uintptr_t)stream, stack});
}

/* The call has failed for good: nobody above this resource tries again, as far as the core knows. */
static __attribute__((noinline)) void recording_save(struct recording *recording)
{
  struct record_file *file = &recording->recorder.file;
  const struct hipmm_services *services = file->services;
  if (!file->kept_blocks || atomic_exchange(&recording->is_saved, true)) return;
  int code = record_file_save(file);
  if (code)
    services->log(services, HIPMM_LOG_WARNING, "out of memory, and the last events cannot be written to %.500s: %s",
                  file->name, output_file_reason(code));
  else
    services->log(services, HIPMM_LOG_WARNING,
                  "out of memory: the last allocations and frees are in %.500s, for `hipmm report`", file->name);
}

static enum hipmm_status recording_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                            void **ptr_out)
{
  struct recording *recording = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(recording->upstream, bytes, alignment, stream, &ptr);
  if (__builtin_expect(status != HIPMM_OK, 0)) {
    if (!hipmm_is_tried_again(recording->recorder.services, status)) {
      atomic_store_explicit(&recording->due_ns, 0, memory_order_relaxed); /* what the device has left then */
      atomic_store(&recording->is_held_new, true);
      recording_add(recording, RECORD_ALLOCATE_FAILURE, ptr, bytes, stream, __builtin_return_address(0));
      if (hipmm_is_out_of_memory(status)) recording_save(recording);
    }
    return status;
  }
  if (__builtin_expect(recording_is_plain(recording), 1))
    recorder_add_now(&recording->recorder, RECORD_ALLOCATE, ptr, bytes, stream);
  else
    recording_add(recording, RECORD_ALLOCATE, ptr, bytes, stream, __builtin_return_address(0));
  *ptr_out = ptr;
  return HIPMM_OK;
}

static enum hipmm_status recording_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                              hipmm_stream_t stream)
{
  struct recording *recording = self;
  if (__builtin_expect(recording_is_plain(recording), 1))
    recorder_add_now(&recording->recorder, RECORD_FREE, ptr, bytes, stream);
  else
    recording_add(recording, RECORD_FREE, ptr, bytes, stream, NULL);
  enum hipmm_status status = hipmm_upstream_deallocate(recording->upstream, ptr, bytes, alignment, stream);
  if (__builtin_expect(status != HIPMM_OK, 0)) recording_add(recording, RECORD_FREE_FAILURE, ptr, bytes, stream, NULL);
  return status;
}

/* ---- Values and actions ---- */

enum recording_value { EVENTS, LOST_EVENTS, FILE_BYTES, METADATA_BYTES, N_VALUES };

static const struct hipmm_feature recording_values[N_VALUES] = {
    [EVENTS] = {"events", "events", "Events recorded so far"},
    [LOST_EVENTS] = {"lost_events", "events", "Events that could not be recorded, since the file could not grow"},
    [FILE_BYTES] = {"file_bytes", "bytes", "Size of the file that is written now; with keep_last, of the memory"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory of the recording itself, without what maps the file"},
};

static void recording_count(struct recording *recording, int64_t *values_out)
{
  struct recorder_counts counts = recorder_count(&recording->recorder);
  values_out[EVENTS] = counts.events;
  values_out[LOST_EVENTS] = counts.lost_events;
  values_out[FILE_BYTES] = counts.file_bytes;
  values_out[METADATA_BYTES] = counts.metadata_bytes;
}

static enum hipmm_status recording_query(void *self, size_t index, int64_t *value_out)
{
  int64_t values[N_VALUES];
  recording_count(self, values);
  *value_out = values[index];
  return HIPMM_OK;
}

static const struct hipmm_feature recording_actions[] = {
    {.name = "flush",
     .doc =
         "Waits until the disk has all events so far. Without it only a crash of the whole system loses events. With "
         "keep_last, writes the file now"},
};

/* There is one action. */
static enum hipmm_status recording_perform(void *self, size_t index, int64_t *values_out)
{
  struct recording *recording = self;
  const struct hipmm_services *services = recording->recorder.services;
  (void)index;
  struct record_file *file = &recording->recorder.file;
  int code = file->kept_blocks ? record_file_save(file) : record_file_flush(file);
  recording_count(recording, values_out);
  if (!code) return HIPMM_OK;
  return services->fail(services, HIPMM_E_IO, "file", "cannot flush the record: %s", output_file_reason(code));
}

/* ---- Life ---- */

static void recording_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct recording_options *given = options;
  const char *other = validation->same_as(validation, "file");
  log_file_validate(validation, "file", given->file);
  if (!*given->file) validation->error(validation, "file", "the name of a file is missing");
  if (given->rotate_size && given->rotate_size < 4 * RECORD_BLOCK_BYTES)
    validation->error(validation, "rotate_size", "%llu bytes are too few; write 0 or at least \"256KiB\"",
                      (unsigned long long)given->rotate_size);
  if (given->rotate_size && given->keep_last)
    validation->error(validation, "keep_last", "nothing is rotated with keep_last; leave \"rotate_size\" out");
  if (other)
    validation->error(validation, "file",
                      "resource \"%s\" of the same stack writes \"%.500s\" too; give each a file of its own", other,
                      given->file);
}

static void recording_enable(struct recording *recording, bool is_enabled)
{
  if (is_enabled) recording_renew_places(recording);
  atomic_store(&recording->is_enabled, is_enabled);
  recording_settle(recording);
}

struct recording_opening {
  const struct hipmm_services *services;
  const struct recording_options *given;
  struct recording *recording;
};

static enum hipmm_status recording_open(void *closure, const char *name, enum log_file_clash *clash_out)
{
  const struct recording_opening *opening = closure;
  const struct log_file_spec spec = {name, 0, opening->given->rotate_size, opening->given->rotate_files};
  return recorder_open(&opening->recording->recorder, opening->services, &spec, clash_out);
}

static enum hipmm_status recording_create(const struct hipmm_services *services, const void *options,
                                          struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct recording_options *given = options;
  (void)n_upstreams; /* one, as the descriptor says */
  struct recording *recording = services->host_allocate(services, sizeof *recording);
  if (!recording)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  recording->upstream = upstreams[0];
  stack_options_set(&recording->recorder.stack, &given->stack, services);
  recording->recorder.file.kept_blocks =
      ((uint64_t)given->keep_last * USUAL_EVENT_BYTES + RECORD_BLOCK_BYTES - 1) / RECORD_BLOCK_BYTES;
  recording->most_place_bytes =
      (given->keep_last ? recording->recorder.file.kept_blocks * RECORD_BLOCK_BYTES : given->rotate_size) / 4;
  recording->recorder.file.part_begins = recording_part_begins;
  pthread_mutex_init(&recording->places_lock, NULL);
  struct recording_opening opening = {services, given, recording};
  enum hipmm_status status = log_file_open_own(services, "recording", given->file, recording_open, &opening);
  if (!status) {
    status = services->watch_held(services, recording_notify_of_held, recording_notify_of_place, recording);
    if (status) recorder_close(&recording->recorder);
  }
  if (status) {
    pthread_mutex_destroy(&recording->places_lock);
    services->host_free(services, recording, sizeof *recording);
    return status;
  }
  recording_enable(recording, given->enabled);
  *self_out = recording;
  return HIPMM_OK;
}

/* Only `enabled` may change. */
static enum hipmm_status recording_reconfigure(void *self, const char *option, const void *options)
{
  struct recording *recording = self;
  const struct recording_options *given = options;
  (void)option;
  recording_enable(recording, given->enabled);
  return HIPMM_OK;
}

static void recording_destroy(void *self)
{
  struct recording *recording = self;
  const struct hipmm_services *services = recording->recorder.services;
  services->unwatch_held(services);
  if (atomic_load(&recording->is_enabled)) recording_add_held(recording);
  recorder_close(&recording->recorder);
  pthread_mutex_destroy(&recording->places_lock);
  services->host_free(services, recording, sizeof *recording);
}

static const struct hipmm_option recording_option_table[] = {
    {.name = "file",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct recording_options, file),
     .initial = "hipmm.%r.record",
     .doc = "Name of the file, which is overwritten: a record has the clock of one process, so that nothing can be "
            "appended, and `hipmm convert` joins several. " LOG_FILE_NAMES
            ". It must be a regular file that nobody shortens while it is written"},
    {.name = "rotate_size",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct recording_options, rotate_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "The most that one file has, besides 64 KiB for each thread; then it is renamed to FILE.1, an older FILE.1 "
            "to FILE.2 and so on, and a new file begins. 0: one file of any size; else at least 256KiB"},
    {.name = "rotate_files",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct recording_options, rotate_files),
     .initial = "1",
     .unit = "files",
     .doc = "How many renamed files stay; the oldest is overwritten",
     .minimum = "1",
     .maximum = "1000"},
    STACK_OPTIONS(recording_options, 0, "512KiB", "32", ", and of those that fail"),
    {.name = "keep_last",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct recording_options, keep_last),
     .initial = "0",
     .unit = "events",
     .doc =
         "Keeps about so many last events in memory, 16 bytes each besides 64 KiB for each thread and the texts of all "
         "stacks, and writes the file when an allocation first fails for lack of memory, and at the action flush. 0: "
         "writes all events to the file",
     .minimum = "0",
     .maximum = "100000000"},
    {.name = "enabled",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct recording_options, enabled),
     .initial = "true",
     .doc = "Whether events are recorded; the file is created in any case. A block that is allocated while this is off "
            "and freed while it is on has an event only for its free"},
};

static const struct hipmm_ops recording_ops = {
    .struct_size = sizeof recording_ops,
    .allocate = recording_allocate,
    .deallocate = recording_deallocate,
    .query = recording_query,
    .perform = recording_perform,
    .reconfigure = recording_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin recording_LTX_hipmm_plugin;

const struct hipmm_plugin recording_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(recording_option_table, struct recording_options),
    .type = "recording",
    .version = "1.0",
    .doc = "Records allocations and frees in a compact binary file, for some nanoseconds each, and what the sources of "
           "the device hold then",
    PLUGIN_VALUES(recording_values),
    PLUGIN_ACTIONS(recording_actions),
    .ops = &recording_ops,
    .create = recording_create,
    .destroy = recording_destroy,
    .validate = recording_validate,
};
