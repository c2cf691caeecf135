/* SPDX-License-Identifier: MIT */
/* movables.c: see spilling.h. A buffer that is unpinned becomes the hottest of the idle ones, and the coldest goes first, unless
 * the program's policy ranks another one higher. */
#include "../../core/base/deadline.h"
#include "../../core/base/lock_order.h"
#include "../../core/base/thread.h"
#include "../common/sizes.h"
#include "spilling.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- The lock ---- */

/* Waits until another thread has moved a buffer. With the lock. */
static enum hipmm_status movables_wait(struct spilling *spilling)
{
  enum hipmm_status status = spilling->services->check_wait(spilling->services);
  if (!status) pthread_cond_wait(&spilling->changed, &spilling->lock);
  return status;
}

/* Takes the lock, once nobody moves the buffer. After a failure it is not taken. */
static enum hipmm_status movables_lock(struct spilling *spilling, const struct movable *movable)
{
  enum hipmm_status status = HIPMM_OK;
  pthread_mutex_lock(&spilling->lock);
  while (!status && movable->is_moving) status = movables_wait(spilling);
  if (status) pthread_mutex_unlock(&spilling->lock);
  return status;
}

/* The buffer is on the device or not, and nobody moves it any more. With the lock. */
static void movables_settle(struct spilling *spilling, struct movable *movable, enum tier tier)
{
  movable->tier = (uint8_t)tier;
  movable->is_moving = false;
  pthread_cond_broadcast(&spilling->changed);
}

/* The thread may find a buffer, or room, that it has not found before. With the lock. */
static void movables_give_chance(struct spilling *spilling)
{
  spilling->chances++;
  if (spilling->has_thread) pthread_cond_broadcast(&spilling->changed);
}

/* Puts the buffer into the list of its tier. With the lock. */
static void movables_make_idle(struct spilling *spilling, struct movable *movable)
{
  struct movable_list *idle = &spilling->idle[movable->tier];
  struct movable *colder = idle->last;
  while (colder && colder->idle_since_ns > movable->idle_since_ns) colder = colder->previous;
  movable_list_insert(idle, colder, movable);
}

/* ---- Out ---- */

/* With the lock. */
static int64_t movables_rank(const struct spilling *spilling, const struct movable *movable, uint64_t now_ns)
{
  const struct hipmm_hooks *policy = spilling->options->policy;
  int64_t rank = 0;
  if (!policy) return rank;
  struct hipmm_event event = {.struct_size = sizeof event,
                              .kind = HIPMM_EVENT_RANK,
                              .device = spilling->services->device,
                              .resource = spilling->services->name,
                              .ptr = (void *)(uintptr_t)movable->handle,
                              .bytes = movable->bytes,
                              .idle_ns = now_ns - movable->idle_since_ns,
                              .rank = &rank};
  lock_order_enter_program();
  policy->callback(policy->arg, &event);
  lock_order_leave_program();
  return rank;
}

/* Whether the first buffer goes before the second. */
static bool movables_goes_first(const struct movable *first, const struct movable *second)
{
  return first->rank != second->rank ? first->rank > second->rank : first->idle_since_ns < second->idle_since_ns;
}

/* The buffer of a tier that goes first, of those for which there is room; NULL: none. All have the age that they had at `now_ns`: the
 * policy may take its time. With the lock. */
static struct movable *movables_choose(struct spilling *spilling, enum tier from, const bool *is_closed,
                                       uint64_t now_ns)
{
  struct movable *best = NULL, *movable = spilling->idle[from].first;
  for (; movable && (!best || spilling->options->policy); movable = movable->next) {
    movable->rank = movables_rank(spilling, movable, now_ns);
    if ((!best || movables_goes_first(movable, best)) && tiers_find_room(spilling, movable, is_closed)) best = movable;
  }
  return best;
}

/* The next buffer that this thread moves; NULL: none. Where pinned memory is full, one that is there goes to the file first, so
 * that it has room for the next; but not where the file would have no room left for that one, which may be larger. A buffer of the
 * device counts in its new tier at once, so that other threads do not move more in its place. With the lock. */
static struct movable *movables_take_next(struct spilling *spilling, const bool *is_closed, enum tier *to_out)
{
  uint64_t now_ns = monotonic_ns();
  struct movable *movable = movables_choose(spilling, TIER_DEVICE, is_closed, now_ns), *colder = NULL;
  if (!movable) return NULL;
  *to_out = tiers_find_room(spilling, movable, is_closed);
  if (*to_out == TIER_FILE && tiers_may_be_pinned(spilling, movable->bytes))
    colder = movables_choose(spilling, TIER_PINNED, is_closed, now_ns);
  if (colder && movables_goes_first(colder, movable) &&
      spill_file_has_room(&spilling->file, colder->bytes + movable->bytes, spilling->options->file_limit))
    movable = colder;
  movable_list_remove(&spilling->idle[movable->tier], movable);
  tiers_take_room(spilling, movable, *to_out);
  if (movable->tier == TIER_DEVICE) spilling->bytes[TIER_DEVICE] -= movable->bytes;
  movable->is_moving = true;
  return movable;
}

/* With the lock. A buffer that could not be moved has its place again. */
static void movables_end_spill(struct spilling *spilling, struct movable *movable, enum tier to, bool is_good)
{
  enum tier from = (enum tier)movable->tier, left = is_good ? from : to;
  bool was_on_device = from == TIER_DEVICE;
  if (left != TIER_DEVICE) tiers_leave(spilling, movable, left);
  if (!is_good && was_on_device) spilling->bytes[TIER_DEVICE] += movable->bytes;
  spilling->spills += is_good && was_on_device;
  spilling->spilled_bytes += is_good && was_on_device ? movable->bytes : 0;
  spilling->demotions += is_good && !was_on_device;
  movables_settle(spilling, movable, is_good ? to : from);
  if (movable->tier != TIER_FILE) movables_make_idle(spilling, movable);
}

/* A tier that fails is not tried again by this call, but pinned memory once a buffer has left it. */
static uint64_t movables_spill_to(struct spilling *spilling, bool *is_closed, uint64_t bytes, hipmm_stream_t stream)
{
  uint64_t freed = 0;
  enum tier to;
  struct movable *movable;
  int previous = spilling->services->enter_device(spilling->services);
  pthread_mutex_lock(&spilling->lock);
  while (freed < bytes && (movable = movables_take_next(spilling, is_closed, &to))) {
    bool was_on_device = movable->tier == TIER_DEVICE;
    spilling->n_moving_out++;
    pthread_mutex_unlock(&spilling->lock);
    bool is_good = tiers_copy_out(spilling, movable, to, stream);
    pthread_mutex_lock(&spilling->lock);
    spilling->n_moving_out--;
    if (!is_good)
      is_closed[to] = true;
    else if (was_on_device)
      freed += movable->bytes;
    else
      is_closed[TIER_PINNED] = false;
    movables_end_spill(spilling, movable, to, is_good);
  }
  pthread_mutex_unlock(&spilling->lock);
  spilling->services->leave_device(spilling->services, previous);
  return freed;
}

uint64_t movables_spill(struct spilling *spilling, uint64_t bytes, hipmm_stream_t stream)
{
  bool is_closed[TIERS] = {false};
  return movables_spill_to(spilling, is_closed, bytes, stream);
}

/* Whether there may be more memory than before. Other threads may be moving all that can go. */
static bool movables_make_room(struct spilling *spilling, uint64_t bytes, hipmm_stream_t stream)
{
  pthread_mutex_lock(&spilling->lock);
  uint64_t spills = spilling->spills;
  pthread_mutex_unlock(&spilling->lock);
  if (movables_spill(spilling, bytes, stream)) return true;
  pthread_mutex_lock(&spilling->lock);
  while (spilling->n_moving_out && spilling->spills == spills && !movables_wait(spilling)) continue;
  bool is_more = spilling->spills != spills;
  pthread_mutex_unlock(&spilling->lock);
  return is_more;
}

static enum hipmm_status movables_explain(struct spilling *spilling, enum hipmm_status status)
{
  pthread_mutex_lock(&spilling->lock);
  uint64_t held = spilling->bytes[TIER_DEVICE];
  pthread_mutex_unlock(&spilling->lock);
  if (!held) return status;
  return spilling->services->explain(spilling->services, status,
                                     "nothing could be moved out of the way: {0:bytes} of movable buffers are on the "
                                     "device, and are pinned, or have no room in \"pinned\" and \"folder\"",
                                     held, 0, 0, 0);
}

/* Whether the device could have so many bytes if all buffers that are not pinned were moved. */
static bool movables_may_fit(struct spilling *spilling, uint64_t bytes)
{
  const struct hipmm_hip *hip = spilling->services->hip;
  size_t unused, total;
  int previous = spilling->services->enter_device(spilling->services), code = hip->MemGetInfo(&unused, &total);
  if (code) hip->GetLastError();
  spilling->services->leave_device(spilling->services, previous);
  pthread_mutex_lock(&spilling->lock);
  uint64_t pinned = spilling->bytes[TIER_DEVICE];
  for (struct movable *movable = spilling->idle[TIER_DEVICE].first; movable; movable = movable->next)
    pinned -= movable->bytes;
  pthread_mutex_unlock(&spilling->lock);
  return code || (pinned <= total && bytes <= total - pinned);
}

/* The last attempt leaves the message of the upstream in place of one about a tier. For a captured stream nothing is moved: what is
 * freed on it would belong to its graph. */
enum hipmm_status movables_obtain(struct spilling *spilling, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                  void **ptr_out)
{
  for (bool has_room = true;; has_room = movables_make_room(spilling, bytes, stream)) {
    enum hipmm_status status = hipmm_upstream_allocate(spilling->upstream, bytes, alignment, stream, ptr_out);
    if (!hipmm_is_out_of_memory(status) || !hipmm_may_wait(spilling->services, status)) return status;
    if (!has_room) return movables_explain(spilling, status);
    if (hipmm_stream_is_captured(spilling->services->hip, stream) || !movables_may_fit(spilling, bytes)) return status;
  }
}

/* ---- Ahead of need ---- */

enum { MOST_EXIT_MS = 5000 }; /* for a move that waits for a lock of the thread that ends the process */

/* When the process ends, threads may still run, but the runtime may be gone: no move begins then. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t idle;
  unsigned n_moves;
  bool has_ended;
  pid_t process;
} ahead = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

/* A fork's child does not have the threads. */
static void movables_leave(void)
{
  struct timespec until = deadline_in_ms(CLOCK_REALTIME, MOST_EXIT_MS);
  if (getpid() != ahead.process) return;
  pthread_mutex_lock(&ahead.lock);
  ahead.has_ended = true;
  while (ahead.n_moves && !pthread_cond_timedwait(&ahead.idle, &ahead.lock, &until)) continue;
  pthread_mutex_unlock(&ahead.lock);
}

static void movables_watch_exit(void)
{
  ahead.process = getpid();
  atexit(movables_leave);
}

static bool movables_begin_move(void)
{
  pthread_mutex_lock(&ahead.lock);
  bool may_move = !ahead.has_ended;
  ahead.n_moves += may_move;
  pthread_mutex_unlock(&ahead.lock);
  return may_move;
}

static void movables_end_move(void)
{
  pthread_mutex_lock(&ahead.lock);
  if (!--ahead.n_moves) pthread_cond_broadcast(&ahead.idle);
  pthread_mutex_unlock(&ahead.lock);
}

/* Moves a buffer, and returns its bytes. After a failure the file is left to those who need memory: a write that succeeds opens it
 * again. */
static uint64_t movables_move_ahead(struct spilling *spilling, bool has_failed)
{
  bool is_closed[TIERS] = {[TIER_FILE] = has_failed};
  if (!movables_begin_move()) return 0;
  uint64_t freed = movables_spill_to(spilling, is_closed, 1, NULL);
  movables_end_move();
  return freed;
}

/* What cannot be moved now may be when there is a new chance, which may come while the lock is free. */
static void *movables_run_thread(void *spilling_)
{
  struct spilling *spilling = spilling_;
  pthread_mutex_lock(&spilling->lock);
  while (!spilling->is_ending) {
    uint64_t chances = spilling->chances, freed = 0;
    if (spilling->bytes[TIER_DEVICE] > spilling->options->high_water && spilling->idle[TIER_DEVICE].first) {
      bool has_failed = spilling->file.warned;
      pthread_mutex_unlock(&spilling->lock);
      freed = movables_move_ahead(spilling, has_failed);
      pthread_mutex_lock(&spilling->lock);
    }
    while (!freed && spilling->chances == chances && !spilling->is_ending)
      pthread_cond_wait(&spilling->changed, &spilling->lock);
  }
  pthread_mutex_unlock(&spilling->lock);
  return NULL;
}

bool movables_start_thread(struct spilling *spilling)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, movables_watch_exit);
  spilling->has_thread = !thread_start(&spilling->thread, NULL, movables_run_thread, spilling);
  return spilling->has_thread;
}

/* ---- In ---- */

static enum hipmm_status movables_refuse_capture(const struct spilling *spilling, const char *text)
{
  return spilling->services->refuse(spilling->services, HIPMM_E_STATE, text, 0, 0, 0);
}

/* A buffer on the device, or of 0 bytes. The captured stream's work runs later, so it can wait for nothing now. With the lock. */
static enum hipmm_status movables_add_pin(struct spilling *spilling, struct movable *movable, hipmm_stream_t stream)
{
  const struct hipmm_services *services = spilling->services;
  bool is_captured = hipmm_stream_is_captured(services->hip, stream);
  if (is_captured && !movable->pins)
    return movables_refuse_capture(spilling,
                                   "cannot pin a movable buffer for a stream that is captured; pin it before the "
                                   "capture, and unpin it after the last launch of the graph");
  int code = movable->was_used && !is_captured ? services->hip->StreamWaitEvent(stream, movable->last_use, 0)
                                               : HIPMM_HIP_SUCCESS;
  if (code) return services->refuse_hip(services, "hipStreamWaitEvent", code, 0);
  if (!movable->pins++ && movable->tier == TIER_DEVICE) movable_list_remove(&spilling->idle[TIER_DEVICE], movable);
  return HIPMM_OK;
}

/* The buffer is this thread's to move. Without the lock. */
static enum hipmm_status movables_bring_in(struct spilling *spilling, struct movable *movable, hipmm_stream_t stream)
{
  void *memory = NULL;
  enum hipmm_status status = HIPMM_OK;
  if (hipmm_stream_is_captured(spilling->services->hip, stream))
    status = movables_refuse_capture(spilling,
                                     "cannot bring a movable buffer back while the stream is captured; pin it before "
                                     "the capture, and unpin it after the last launch of the graph");
  if (!status) status = movables_obtain(spilling, movable->bytes, HIPMM_ALIGNMENT, stream, &memory);
  if (status) return status;
  status = tiers_copy_in(spilling, movable, memory, stream);
  if (!status)
    movable->memory = memory;
  else
    tiers_drop(spilling, spilling->upstream, memory, movable->bytes, stream);
  return status;
}

/* With the lock. */
static void movables_end_restore(struct spilling *spilling, struct movable *movable, enum hipmm_status status)
{
  if (!status) {
    bool was_spilled = movable->tier != TIER_NONE;
    if (was_spilled) tiers_leave(spilling, movable, (enum tier)movable->tier);
    if (!was_spilled) spilling->live_bytes += movable->bytes;
    movables_give_chance(spilling);
    spilling->bytes[TIER_DEVICE] += movable->bytes;
    spilling->restores += was_spilled;
    spilling->restored_bytes += was_spilled ? movable->bytes : 0;
    movable->was_used = true;
    movable->pins = 1;
  } else if (movable->tier == TIER_PINNED) {
    movables_make_idle(spilling, movable);
  }
  movables_settle(spilling, movable, status ? (enum tier)movable->tier : TIER_DEVICE);
}

static enum hipmm_status movables_pin(void *self, void *movable_, hipmm_stream_t stream, void **ptr_out)
{
  struct spilling *spilling = self;
  struct movable *movable = movable_;
  enum hipmm_status status = movables_lock(spilling, movable);
  if (status) return status;
  int previous = spilling->services->enter_device(spilling->services);
  if (movable->tier == TIER_DEVICE || !movable->bytes) {
    status = movables_add_pin(spilling, movable, stream);
  } else {
    if (movable->tier == TIER_PINNED) movable_list_remove(&spilling->idle[TIER_PINNED], movable);
    movable->is_moving = true;
    pthread_mutex_unlock(&spilling->lock);
    status = movables_bring_in(spilling, movable, stream);
    pthread_mutex_lock(&spilling->lock);
    movables_end_restore(spilling, movable, status);
  }
  if (!status) *ptr_out = movable->memory;
  pthread_mutex_unlock(&spilling->lock);
  spilling->services->leave_device(spilling->services, previous);
  return status;
}

/* The event comes after all earlier uses too: the stream waits for those of other streams. With the lock. */
static enum hipmm_status movables_note_use(struct spilling *spilling, struct movable *movable, hipmm_stream_t stream)
{
  const struct hipmm_services *services = spilling->services;
  if (hipmm_stream_is_captured(services->hip, stream))
    return movables_refuse_capture(spilling,
                                   "cannot unpin a movable buffer while the stream is captured; unpin it after the "
                                   "last launch of the graph");
  int code = movable->was_used ? services->hip->StreamWaitEvent(stream, movable->last_use, 0) : HIPMM_HIP_SUCCESS;
  if (code) return services->refuse_hip(services, "hipStreamWaitEvent", code, 0);
  code = services->hip->EventRecord(movable->last_use, stream);
  if (code) return services->refuse_hip(services, "hipEventRecord", code, 0);
  movable->was_used = true;
  return HIPMM_OK;
}

static enum hipmm_status movables_unpin(void *self, void *movable_, hipmm_stream_t stream)
{
  struct spilling *spilling = self;
  struct movable *movable = movable_;
  enum hipmm_status status;
  int previous = spilling->services->enter_device(spilling->services);
  pthread_mutex_lock(&spilling->lock); /* nobody moves a pinned buffer */
  if (movable->is_moving || !movable->pins)
    status = spilling->services->refuse(spilling->services, HIPMM_E_STATE, "the movable buffer is not pinned", 0, 0, 0);
  else
    status = movables_note_use(spilling, movable, stream);
  if (!status && !--movable->pins && movable->tier == TIER_DEVICE) {
    movable->idle_since_ns = monotonic_ns();
    movables_make_idle(spilling, movable);
    movables_give_chance(spilling);
  }
  pthread_mutex_unlock(&spilling->lock);
  spilling->services->leave_device(spilling->services, previous);
  return status;
}

/* ---- Life ---- */

static enum hipmm_status movables_create(void *self, size_t bytes, void *movable_)
{
  struct spilling *spilling = self;
  struct movable *movable = movable_;
  const struct hipmm_services *services = spilling->services;
  enum hipmm_status status = sizes_check(services, bytes, HIPMM_ALIGNMENT);
  if (status) return status;
  int previous = services->enter_device(services);
  int code = services->hip->EventCreateWithFlags(&movable->last_use, HIPMM_HIP_EVENT_DISABLE_TIMING);
  if (code) status = services->refuse_hip(services, "hipEventCreateWithFlags", code, 0);
  services->leave_device(services, previous);
  movable->bytes = bytes;
  return status;
}

/* With the lock, which it gives back. Nobody else uses the buffer any more. */
static enum hipmm_status movables_free(struct spilling *spilling, struct movable *movable)
{
  const struct hipmm_hip *hip = spilling->services->hip;
  enum tier tier = (enum tier)movable->tier;
  bool is_listed = tier == TIER_DEVICE || tier == TIER_PINNED;
  if (is_listed) movable_list_remove(&spilling->idle[tier], movable);
  pthread_mutex_unlock(&spilling->lock);
  enum hipmm_status status = tiers_free(spilling, movable);
  if (!status && hip->EventDestroy(movable->last_use)) hip->GetLastError();
  pthread_mutex_lock(&spilling->lock);
  if (status && is_listed) movables_make_idle(spilling, movable);
  if (!status && tier) {
    spilling->live_bytes -= movable->bytes;
    tiers_leave(spilling, movable, tier);
    movables_give_chance(spilling);
  }
  pthread_mutex_unlock(&spilling->lock);
  return status;
}

static enum hipmm_status movables_destroy(void *self, void *movable_)
{
  struct spilling *spilling = self;
  struct movable *movable = movable_;
  enum hipmm_status status = movables_lock(spilling, movable);
  if (status) return status;
  if (movable->pins) {
    pthread_mutex_unlock(&spilling->lock);
    return spilling->services->refuse(spilling->services, HIPMM_E_STATE,
                                      "the movable buffer is pinned {0} times; unpin it before it is destroyed",
                                      movable->pins, 0, 0);
  }
  int previous = spilling->services->enter_device(spilling->services);
  status = movables_free(spilling, movable);
  spilling->services->leave_device(spilling->services, previous);
  return status;
}

const struct hipmm_moving movables_functions = {
    .struct_size = sizeof movables_functions,
    .create = movables_create,
    .destroy = movables_destroy,
    .pin = movables_pin,
    .unpin = movables_unpin,
};
