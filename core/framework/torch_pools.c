/* SPDX-License-Identifier: MIT */
/* torch_pools.c: PyTorch's private pools. Called by the hooks of torch.c, only while there is a pool or for a block that
 * has a record. Never calls a resource under the lock. */
#include "torch_pools.h"
#include "../base/error.h"
#include "../base/log.h"
#include "../base/units.h"
#include "../inspect/publish.h"
#include "../runtime/hip.h"
#include "../stream/stream.h"

#include <stdio.h>
#include <stdlib.h>

struct torch_pool {
  struct hipmm_torch_pool id;
  int device;
  unsigned references; /* begun so often and not released; 0: the pool only has members left */
  size_t members;      /* blocks in PyTorch's hands, and allocations under way */
  struct cached *idle;
  struct torch_pool *next;
};

/* std::function<bool(hipStream_t)> as libstdc++ lays it out. */
struct filter {
  void *functor[2];
  bool (*manage)(void *to, const void *from, int operation); /* NULL: there is no function */
  bool (*invoke)(const void *functor, hipmm_stream_t *stream);
};

enum { FILTER_CLONE = 2, FILTER_DESTROY = 3 };

/* A pool was begun, and not ended. */
struct begun {
  struct torch_pool *pool;
  struct filter filter;
  pthread_t thread;
  bool is_first;    /* when it was begun, the pool had no other reference */
  bool is_doubtful; /* see torch_pools_doubt() */
  struct begun *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of torch_blocks.c */
static struct torch_pool *pools;
static struct begun *begun; /* the last comes first */
static unsigned generation; /* of the table of devices that all this is about */

static struct cached *torch_pools_take_list(struct cached **list)
{
  struct cached *taken = *list;
  *list = NULL;
  return taken;
}

static void torch_pools_drop_list(struct cached *list)
{
  while (list) {
    struct cached *cached = list;
    list = cached->next;
    torch_uses_free(cached->uses);
    free(cached);
  }
}

/* ---- Filters ---- */

static struct filter torch_pools_copy_filter(const struct filter *given)
{
  struct filter filter = {.manage = NULL};
  if (!given || !given->manage) return filter;
  given->manage(filter.functor, given->functor, FILTER_CLONE);
  filter.manage = given->manage;
  filter.invoke = given->invoke;
  return filter;
}

static void torch_pools_drop_filter(struct filter *filter)
{
  if (filter->manage) filter->manage(filter->functor, filter->functor, FILTER_DESTROY);
  filter->manage = NULL;
}

/* ---- What is begun ---- */

static void torch_pools_drop_begun(struct begun **link)
{
  struct begun *one = *link;
  *link = one->next;
  torch_pools_drop_filter(&one->filter);
  free(one);
}

/* Pools of stacks that are gone are dropped at the first call after that; their blocks went with the stacks. */
static void torch_pools_lock(void)
{
  pthread_mutex_lock(&lock);
  unsigned now = atomic_load(&device_table_generation);
  while (generation != now && pools) {
    struct torch_pool *pool = pools;
    pools = pool->next;
    torch_pools_drop_list(pool->idle);
    free(pool);
  }
  while (generation != now && begun) torch_pools_drop_begun(&begun);
  generation = now;
}

static struct torch_pool **torch_pools_find(int device, struct hipmm_torch_pool id)
{
  struct torch_pool **link = &pools;
  while (*link && ((*link)->device != device || (*link)->id.first != id.first || (*link)->id.second != id.second))
    link = &(*link)->next;
  return link;
}

static void torch_pools_remove_if_over(struct torch_pool *pool)
{
  if (pool->references || pool->members) return;
  *torch_pools_find(pool->device, pool->id) = pool->next;
  free(pool);
}

/* ---- Streams that end ---- */

static bool torch_pools_end_stream_in_all(int device, hipmm_stream_t stream, bool forgets)
{
  torch_pools_lock();
  bool any = torch_waiting_end_stream(device, stream, forgets);
  for (struct torch_pool *pool = pools; pool; pool = pool->next)
    any = torch_cached_end_stream(pool->idle, device, stream, forgets) || any;
  pthread_mutex_unlock(&lock);
  return any;
}

/* The cached blocks stay where they are, and a later stream with this handle must not take them for its own. So their work is
 * waited for while there is a stream to wait for, and from then on they are of the default stream. */
static void torch_pools_end_stream(int device, hipmm_stream_t stream)
{
  if (!torch_pools_end_stream_in_all(device, stream, false)) return;
  int previous = hip_enter_device(device);
  if (!hipmm_stream_is_captured(hip_table(), stream) && hip_table()->StreamSynchronize(stream))
    hip_table()->GetLastError();
  hip_leave_device(device, previous);
  torch_pools_end_stream_in_all(device, stream, true);
}

static struct publish_private torch_pools_count(int device)
{
  struct publish_private counts = {0};
  torch_pools_lock();
  for (const struct torch_pool *pool = pools; pool; pool = pool->next) {
    if (pool->device != device) continue;
    counts.pools++;
    counts.blocks += pool->members;
    for (const struct cached *cached = pool->idle; cached; cached = cached->next) counts.idle_bytes += cached->bytes;
  }
  pthread_mutex_unlock(&lock);
  return counts;
}

void torch_pools_explain(int device)
{
  char text[200], size[UNITS_TEXT_BYTES];
  uint64_t idle = torch_pools_count(device).idle_bytes;
  if (!idle) return;
  snprintf(text, sizeof text,
           "; of what is used, private pools keep %s idle for their captured graphs, and free it with these",
           units_format_bytes(idle, size, sizeof size));
  error_add(text);
}

/* ---- Begin, end, release ---- */

void torch_pool_begin(struct framework_device *device, struct hipmm_torch_pool id, const void *filter)
{
  struct begun *one = calloc(1, sizeof *one);
  publish_set_private(torch_pools_count);
  torch_pools_lock();
  struct torch_pool *pool = one ? *torch_pools_find(device->device, id) : NULL;
  if (one && !pool && (pool = calloc(1, sizeof *pool))) {
    *pool = (struct torch_pool){.id = id, .device = device->device, .next = pools};
    pools = pool;
  }
  if (pool) {
    *one = (struct begun){.pool = pool, .thread = pthread_self(), .is_first = !pool->references++, .next = begun};
    one->filter = torch_pools_copy_filter(filter);
    begun = one;
    atomic_fetch_add(&device->n_apart, 1);
  }
  pthread_mutex_unlock(&lock);
  if (pool) return;
  free(one);
  log_line(HIPMM_LOG_ERROR, "torch", "no host memory for a private pool: its memory is shared");
}

/* The last begin of the pool by this thread that was not ended; else by any thread. The end of the list: there is none. */
static struct begun **torch_pools_last_begun(const struct torch_pool *pool)
{
  struct begun **of_any = NULL, **link = &begun;
  for (; *link; link = &(*link)->next) {
    if ((*link)->pool != pool) continue;
    if (pthread_equal((*link)->thread, pthread_self())) return link;
    if (!of_any) of_any = link;
  }
  return of_any ? of_any : link;
}

static bool torch_pools_end_one(struct framework_device *device, const struct torch_pool *pool)
{
  struct begun **link = torch_pools_last_begun(pool);
  if (!*link) return false;
  torch_pools_drop_begun(link);
  atomic_fetch_sub(&device->n_apart, 1);
  return true;
}

/* The pool was released between a begin and its end. Either another graph of the pool is gone, or the graph whose capture
 * failed: then PyTorch has called no end. So from now on the pool takes what is allocated on streams that are being
 * captured, and nothing else. The filter may refer to the graph that is gone, and is not called any more. */
static void torch_pools_doubt(const struct torch_pool *pool)
{
  for (struct begun *one = begun; one; one = one->next) {
    if (one->pool != pool || one->is_first) continue;
    one->is_doubtful = true;
    torch_pools_drop_filter(&one->filter);
  }
}

static void torch_pools_free_list(struct framework_device *device, struct cached *list)
{
  while (list) {
    struct cached *cached = list;
    list = cached->next;
    torch_cached_free(device, cached);
  }
}

void torch_pool_end(struct framework_device *device, struct hipmm_torch_pool id)
{
  torch_pools_lock();
  const struct torch_pool *pool = *torch_pools_find(device->device, id);
  if (pool) torch_pools_end_one(device, pool);
  pthread_mutex_unlock(&lock);
  torch_waiting_free(device, false);
}

void torch_pool_release(struct framework_device *device, struct hipmm_torch_pool id)
{
  struct cached *idle = NULL;
  torch_pools_lock();
  struct torch_pool *pool = *torch_pools_find(device->device, id);
  if (pool && pool->references && !--pool->references) {
    while (torch_pools_end_one(device, pool)) continue;
    idle = torch_pools_take_list(&pool->idle);
    torch_pools_remove_if_over(pool);
  } else if (pool) {
    torch_pools_doubt(pool);
  }
  pthread_mutex_unlock(&lock);
  torch_pools_free_list(device, idle);
  torch_waiting_free(device, false);
}

/* ---- Allocating ---- */

/* What the resource says of a block: whether it is live, and of this size. HIPMM_OK where no resource can tell. */
static enum hipmm_status torch_pools_check(const struct framework_device *device, const void *ptr, size_t bytes)
{
  struct hipmm_block block;
  enum hipmm_status status = instance_find(instance_from(framework_owner(device, ptr)), ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED) return HIPMM_OK;
  if (status || block.bytes == bytes) return status;
  return error_refuse(HIPMM_E_SIZE, NULL, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                      (uintptr_t)ptr, block.bytes, bytes);
}

static void *torch_pools_pop(struct torch_pool *pool, size_t bytes, hipmm_stream_t stream)
{
  struct cached **link = &pool->idle;
  while (*link && ((*link)->bytes != bytes || (*link)->stream != stream || (*link)->uses)) link = &(*link)->next;
  if (!*link) return NULL;
  struct cached *cached = *link;
  void *ptr = cached->ptr;
  *link = cached->next;
  free(cached);
  torch_block_set_pool(ptr, pool); /* the block has a record already */
  pool->members++;
  return ptr;
}

/* The resource does not know the block any more: the program freed it with hipmm_deallocate(). */
static void torch_pools_forget_block(struct framework_device *device, struct torch_pool *pool, void *ptr, size_t bytes)
{
  log_line(HIPMM_LOG_ERROR, "torch",
           "%p of a private pool was freed by other means than hipmm_torch_free(); the pool does not use it any more",
           ptr);
  framework_uncount(device, bytes);
  torch_pools_lock();
  torch_uses_free(torch_block_remove(ptr));
  pool->members--;
  torch_pools_remove_if_over(pool);
  pthread_mutex_unlock(&lock);
}

/* PyTorch's filter asks HIP about the stream, and throws an exception if the answer is an error, which is that of a default
 * stream that waits for a captured one. */
static bool torch_pools_takes(struct begun *one, hipmm_stream_t stream)
{
  int device = one->pool->device;
  if (one->is_doubtful) return hip_is_captured(device, stream);
  if (!one->filter.manage) return true;
  if ((uintptr_t)stream <= 2 && hip_is_captured(device, stream)) return false;
  return one->filter.invoke(one->filter.functor, &stream);
}

/* The pool that an allocation belongs to; NULL: none. The pool that was begun last comes first. One without a filter takes
 * what its own thread allocates, and what other threads allocate that have begun none. */
static struct torch_pool *torch_pools_choose(const struct framework_device *device, hipmm_stream_t stream)
{
  struct torch_pool *of_others = NULL;
  for (struct begun *one = begun; one; one = one->next) {
    bool is_told = one->filter.manage || pthread_equal(one->thread, pthread_self());
    if (one->pool->device != device->device || (!is_told && of_others) || !torch_pools_takes(one, stream)) continue;
    if (is_told) return one->pool;
    of_others = one->pool;
  }
  return of_others;
}

void *torch_pool_allocate(struct framework_device *device, size_t bytes, hipmm_stream_t stream,
                          struct torch_pool **pool_out)
{
  for (;;) {
    torch_pools_lock();
    struct torch_pool *pool = torch_pools_choose(device, stream);
    void *ptr = pool ? torch_pools_pop(pool, bytes, stream) : NULL;
    if (pool && !ptr) pool->members++;
    pthread_mutex_unlock(&lock);
    *pool_out = pool;
    if (!ptr || !torch_pools_check(device, ptr, bytes)) return ptr;
    torch_pools_forget_block(device, pool, ptr, bytes);
  }
}

bool torch_pool_adopt(struct torch_pool *pool, void *ptr)
{
  torch_pools_lock();
  bool is_recorded = ptr && torch_block_set_pool(ptr, pool);
  if (!is_recorded) pool->members--;
  torch_pools_remove_if_over(pool);
  pthread_mutex_unlock(&lock);
  return is_recorded;
}

/* ---- Freeing ---- */

/* The block is cached: NULL, without host memory for its entry, and then it stays allocated for ever: another use of it would not
 * be safe. */
static struct cached *torch_pools_cache(int device, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  stream_watch_ends(torch_pools_end_stream);
  struct torch_use *uses = torch_block_set_cached(ptr);
  struct cached *cached = malloc(sizeof *cached);
  if (cached) {
    *cached = (struct cached){.ptr = ptr, .bytes = bytes, .device = device, .stream = stream, .uses = uses};
    return cached;
  }
  log_line(HIPMM_LOG_ERROR, "torch", "no host memory to cache a block: %zu bytes are lost", bytes);
  torch_uses_free(uses);
  return NULL;
}

/* Of a block that is not cached. The lock is held. True: the resource gets it now. */
static bool torch_pools_give_up(struct framework_device *device, const struct torch_block *block, void *ptr,
                                size_t bytes, hipmm_stream_t stream)
{
  struct torch_pool *pool = block->pool;
  bool is_kept = pool && pool->references;
  struct cached *cached = NULL;
  if (is_kept || block->uses) cached = torch_pools_cache(device->device, ptr, bytes, stream);
  if (cached && is_kept) {
    cached->next = pool->idle;
    pool->idle = cached;
  } else if (cached) {
    torch_waiting_add(device, cached);
  }
  if (!is_kept && !block->uses) torch_block_remove(ptr);
  if (pool) pool->members--;
  if (pool) torch_pools_remove_if_over(pool);
  return !is_kept && !block->uses;
}

/* All in one hold of the lock, and the record of a cached block never goes: of two threads that free one block, one
 * finds it cached. */
void torch_pool_free(struct framework_device *device, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  if (torch_pools_check(device, ptr, bytes) == HIPMM_E_SIZE) {
    framework_log_failure("torch", "a block is not freed");
    return; /* its record stays */
  }
  torch_pools_lock();
  struct torch_block block = torch_block_find(ptr);
  bool is_given_up = !block.is_cached && torch_pools_give_up(device, &block, ptr, bytes, stream);
  pthread_mutex_unlock(&lock);
  if (block.is_cached) {
    error_set(HIPMM_E_POINTER, "%p was freed before", ptr);
    framework_log_failure("torch", "a block is not freed");
  } else if (is_given_up) {
    torch_uses_settle(NULL, device->device, stream);
    framework_free(device, ptr, bytes, stream);
  } else if (block.uses) {
    torch_waiting_look(device);
  }
}
