/* SPDX-License-Identifier: MIT */
/* recorder.c: see recorder.h. */
#include "recorder.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A full disk is tried again after so many events of a thread. */
enum { RECORDER_RETRY_EVENTS = 4096 };

/* The room that an event needs with its tags. What is written before it, such as the text of its stack, leaves that room: both
 * are in one file then. */
enum { RECORDER_EVENT_BYTES = 2 + 1 + RECORD_MOST_TAG_BYTES + 1 + RECORD_PUT_BYTES };

_Static_assert(HIPMM_MOST_TAG_BYTES <= RECORD_MOST_TAG_BYTES, "a record has room for the tags of a thread");

static struct recorder_thread *recorder_first(struct recorder *recorder)
{
  return atomic_load_explicit(&recorder->threads, memory_order_acquire);
}

/* ---- Blocks of a thread ---- */

static uint32_t recorder_system_thread(void)
{
  return (uint32_t)syscall(SYS_gettid);
}

static uint64_t recorder_events_of(struct recorder_thread *thread)
{
  return atomic_load_explicit(&thread->events, memory_order_relaxed);
}

/* Moves the thread's full block into the file, and begins a block, the same if possible. False if the file cannot grow: the
 * events of the block are lost then. */
static bool recorder_begin_block(struct recorder *recorder, struct recorder_thread *thread)
{
  struct record_file *file = &recorder->file;
  uint32_t system_thread = recorder_system_thread();
  struct record_block *block = thread->block;
  if (block && !record_file_copy_block(file, block)) {
    uint64_t lost = recorder_events_of(thread) - thread->events_before;
    thread->lost_since_block += lost;
    atomic_fetch_add_explicit(&thread->lost_events, lost, memory_order_relaxed);
    atomic_fetch_sub_explicit(&thread->events, lost, memory_order_relaxed);
  }
  if (block && !record_file_reuse_block(file, block, system_thread, thread->lost_since_block, thread->generation)) {
    record_block_release(block, true);
    block = NULL;
  }
  if (!block) block = record_file_map_block(file, system_thread, thread->lost_since_block, &thread->generation);
  thread->block = block;
  thread->at = thread->end = NULL;
  if (!block) return false;
  thread->lost_since_block = 0;
  thread->events_before = recorder_events_of(thread);
  thread->context = (struct record_context){.ticks = block->ticks};
  thread->tags[0] = '\0';
  thread->at = (char *)(block + 1);
  thread->end = (char *)block + RECORD_BLOCK_BYTES;
  return true;
}

/* Room for `bytes` in the thread's block, or in a new one. False, and the event is lost, if the file cannot grow. */
static bool recorder_make_room(struct recorder *recorder, struct recorder_thread *thread, size_t bytes)
{
  if (thread->block && (size_t)(thread->end - thread->at) >= bytes) return true;
  if (thread->lost_since_block % RECORDER_RETRY_EVENTS == 0 && recorder_begin_block(recorder, thread)) return true;
  thread->lost_since_block++;
  atomic_fetch_add_explicit(&thread->lost_events, 1, memory_order_relaxed);
  return false;
}

/* The thread takes what a thread that ended has left, or else a new one. NULL without host memory. */
static struct recorder_thread *recorder_new_thread(struct recorder *recorder, uint64_t number)
{
  const struct hipmm_services *services = recorder->services;
  struct recorder_thread *thread;
  pthread_mutex_lock(&recorder->lock);
  for (thread = recorder_first(recorder); thread; thread = thread->next) {
    uint_fast64_t nobody = 0;
    if (atomic_compare_exchange_strong_explicit(&thread->owner, &nobody, number, memory_order_acquire,
                                                memory_order_relaxed))
      break;
  }
  bool is_new = !thread;
  if (is_new) thread = services->host_allocate(services, sizeof *thread);
  if (is_new && thread) {
    atomic_init(&thread->owner, number);
    thread->next = recorder_first(recorder);
    atomic_store_explicit(&recorder->threads, thread, memory_order_release);
  }
  pthread_mutex_unlock(&recorder->lock);
  uint32_t system_thread = recorder_system_thread();
  if (thread && !is_new && thread->block && thread->end - thread->at >= RECORD_PUT_BYTES)
    thread->at = record_put_meta(thread->at, RECORD_META_THREAD, &system_thread, sizeof system_thread);
  return thread;
}

/* The calling thread's; NULL without host memory. */
static struct recorder_thread *recorder_thread_now(struct recorder *recorder)
{
  struct recorder_thread *thread = thread_recall(recorder->serial, recorder);
  if (thread) return thread;
  uint64_t number = thread_number();
  for (thread = recorder_first(recorder); thread; thread = thread->next)
    if (atomic_load_explicit(&thread->owner, memory_order_relaxed) == number) break;
  if (!thread) thread = recorder_new_thread(recorder, number);
  if (thread) thread_remember(recorder->serial, recorder, thread);
  return thread;
}

/* Leaves room for an event. */
static void recorder_add_meta(struct recorder *recorder, enum record_meta meta, const void *data, size_t bytes)
{
  struct recorder_thread *thread = recorder_thread_now(recorder);
  if (thread && recorder_make_room(recorder, thread, 2 + bytes + 1 + RECORDER_EVENT_BYTES))
    thread->at = record_put_meta(thread->at, meta, data, bytes);
}

void recorder_add_held(struct recorder *recorder, struct record_held held)
{
  recorder_add_meta(recorder, RECORD_META_HELD, &held, sizeof held);
}

void recorder_add_place(struct recorder *recorder, const char *holder, struct record_place place)
{
  char data[sizeof place + 1 + RECORD_MOST_NAME_BYTES];
  size_t bytes = holder ? strnlen(holder, RECORD_MOST_NAME_BYTES) : 0;
  memcpy(data, &place, sizeof place);
  data[sizeof place] = (char)bytes;
  if (bytes) memcpy(data + sizeof place + 1, holder, bytes);
  recorder_add_meta(recorder, RECORD_META_PLACE, data, sizeof place + 1 + bytes);
}

void recorder_add(struct recorder *recorder, struct record_event event)
{
  struct recorder_thread *thread = recorder_thread_now(recorder);
  const char *tags = hipmm_tags(recorder->services);
  if (!thread) {
    atomic_fetch_add_explicit(&recorder->lost_events, 1, memory_order_relaxed);
  } else if (recorder_make_room(recorder, thread, RECORDER_EVENT_BYTES)) {
    if (strcmp(thread->tags, tags) != 0) {
      thread->at = record_put_tags(thread->at, tags);
      strcpy(thread->tags, tags);
    }
    thread->at = record_put(thread->at, &thread->context, &event);
    recorder_count_event(thread);
  }
  /* Nobody would be told when the thread needs it no more. */
  if (thread && !thread_register()) atomic_store_explicit(&thread->owner, 0, memory_order_release);
}

static void recorder_thread_ended(struct thread_watch *watch, uint64_t number)
{
  struct recorder *recorder = (struct recorder *)((char *)watch - offsetof(struct recorder, threads_watch));
  for (struct recorder_thread *thread = recorder_first(recorder); thread; thread = thread->next) {
    uint_fast64_t owner = number;
    atomic_compare_exchange_strong_explicit(&thread->owner, &owner, 0, memory_order_release, memory_order_relaxed);
  }
}

/* ---- Stack traces ---- */

struct recorder_text {
  uint32_t number, length;
  char text[RECORD_MOST_TEXT_BYTES];
};

static void recorder_add_line(void *closure, const char *line)
{
  struct recorder_text *text = closure;
  size_t length = strlen(line);
  if (text->length + length + 1 > sizeof text->text) return;
  memcpy(text->text + text->length, line, length);
  text->text[text->length + length] = '\n';
  text->length += (uint32_t)length + 1;
}

/* The place that says which file has the text of a trace; NULL without host memory. Under the lock. */
static uint32_t *recorder_generation_of(struct recorder *recorder, uint32_t number)
{
  const struct hipmm_services *services = recorder->services;
  if (number < recorder->n_generations) return &recorder->generations[number];
  uint32_t count = 2 * number + 64;
  uint32_t *larger = services->host_allocate(services, count * sizeof *larger);
  if (!larger) return NULL;
  if (recorder->generations) {
    memcpy(larger, recorder->generations, recorder->n_generations * sizeof *larger);
    services->host_free(services, recorder->generations, recorder->n_generations * sizeof *larger);
  }
  recorder->generations = larger;
  recorder->n_generations = count;
  return &recorder->generations[number];
}

/* Where only the last events are kept, texts have blocks of their own, which stay. False if the file cannot grow. */
static bool recorder_keep_text(struct recorder *recorder, const struct recorder_text *text, size_t bytes)
{
  uint32_t generation;
  pthread_mutex_lock(&recorder->lock);
  if (recorder->texts && (char *)recorder->texts + RECORD_BLOCK_BYTES - recorder->texts_at <= (ptrdiff_t)(2 + bytes)) {
    record_block_release(recorder->texts, false);
    recorder->texts = NULL;
  }
  if (!recorder->texts) {
    recorder->texts = record_file_map_block(&recorder->file, 0, 0, &generation);
    recorder->texts_at = (char *)(recorder->texts + 1);
  }
  bool has_room = recorder->texts;
  if (has_room) recorder->texts_at = record_put_meta(recorder->texts_at, RECORD_META_STACK, text, bytes);
  pthread_mutex_unlock(&recorder->lock);
  return has_room;
}

/* Writes the text of the trace, unless the file of the thread's block has it. Leaves room for an event. False if the file
 * cannot grow. */
static bool recorder_write_text(struct recorder *recorder, struct recorder_thread *thread, uint32_t number)
{
  struct recorder_text text = {.number = number};
  pthread_mutex_lock(&recorder->lock);
  const uint32_t *generation = recorder_generation_of(recorder, number);
  bool is_there = generation && *generation == thread->generation;
  pthread_mutex_unlock(&recorder->lock);
  if (is_there) return true;
  stack_traces_write(&recorder->traces, number, recorder_add_line, &text);
  size_t bytes = 2 * sizeof(uint32_t) + text.length;
  if (recorder->file.kept_blocks) {
    if (!recorder_keep_text(recorder, &text, bytes)) return false;
  } else {
    if (!recorder_make_room(recorder, thread, 2 + bytes + RECORDER_EVENT_BYTES)) return false;
    thread->at = record_put_meta(thread->at, RECORD_META_STACK, &text, bytes);
  }
  pthread_mutex_lock(&recorder->lock);
  uint32_t *written = recorder_generation_of(recorder, number);
  if (written) *written = thread->generation;
  pthread_mutex_unlock(&recorder->lock);
  return true;
}

uint32_t recorder_take_stack(struct recorder *recorder, size_t bytes, const void *from)
{
  uint32_t number = stack_traces_take(&recorder->traces, &recorder->stack, bytes, from);
  struct recorder_thread *thread = number ? recorder_thread_now(recorder) : NULL;
  if (!thread || !recorder_make_room(recorder, thread, RECORDER_EVENT_BYTES)) return 0;
  return recorder_write_text(recorder, thread, number) ? number : 0;
}

/* ---- Life ---- */

enum hipmm_status recorder_open(struct recorder *recorder, const struct hipmm_services *services,
                                const struct log_file_spec *spec, enum log_file_clash *clash_out)
{
  recorder->file.stack_sample = recorder->stack.stacks ? recorder->stack.stack_sample : 0;
  enum hipmm_status status = record_file_open(&recorder->file, services, spec, clash_out);
  if (status) return status;
  recorder->services = services;
  recorder->serial = thread_new_owner();
  recorder->memory_index = thread_memory_index(recorder->serial, recorder);
  pthread_mutex_init(&recorder->lock, NULL);
  stack_traces_open(&recorder->traces, services);
  recorder->traces.is_for_file = true;
  recorder->threads_watch.ended = recorder_thread_ended;
  thread_watch_open(&recorder->threads_watch);
  return HIPMM_OK;
}

/* A block in a file that was rotated away goes into the present file. */
static void recorder_end_block(struct recorder *recorder, struct recorder_thread *thread)
{
  bool is_copied =
      thread->generation != recorder->file.generation && record_file_copy_block(&recorder->file, thread->block);
  record_block_release(thread->block, is_copied);
}

void recorder_close(struct recorder *recorder)
{
  const struct hipmm_services *services = recorder->services;
  thread_watch_close(&recorder->threads_watch);
  for (struct recorder_thread *thread = recorder_first(recorder), *next; thread; thread = next) {
    next = thread->next;
    if (thread->block) recorder_end_block(recorder, thread);
    services->host_free(services, thread, sizeof *thread);
  }
  if (recorder->texts) record_block_release(recorder->texts, false);
  if (recorder->generations)
    services->host_free(services, recorder->generations, recorder->n_generations * sizeof *recorder->generations);
  stack_traces_close(&recorder->traces);
  record_file_close(&recorder->file);
  pthread_mutex_destroy(&recorder->lock);
}

struct recorder_counts recorder_count(struct recorder *recorder)
{
  struct recorder_counts counts = {.lost_events =
                                       (int64_t)atomic_load_explicit(&recorder->lost_events, memory_order_relaxed)};
  for (struct recorder_thread *thread = recorder_first(recorder); thread; thread = thread->next) {
    counts.events += (int64_t)atomic_load_explicit(&thread->events, memory_order_relaxed);
    counts.lost_events += (int64_t)atomic_load_explicit(&thread->lost_events, memory_order_relaxed);
    counts.metadata_bytes += (int64_t)sizeof *thread;
  }
  pthread_mutex_lock(&recorder->file.lock);
  counts.file_bytes = (int64_t)recorder->file.bytes;
  pthread_mutex_unlock(&recorder->file.lock);
  pthread_mutex_lock(&recorder->lock);
  counts.metadata_bytes += (int64_t)(recorder->n_generations * sizeof *recorder->generations);
  pthread_mutex_unlock(&recorder->lock);
  counts.metadata_bytes += stack_traces_metadata_bytes(&recorder->traces);
  return counts;
}
