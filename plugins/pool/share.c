/* SPDX-License-Identifier: MIT */
/* share.c: handles of blocks for other processes. A handle names this process and an export, and stays valid until the block is
 * freed. The other process asks for the block's memory over the socket of peer_socket.h. Only then this process makes the chunks'
 * descriptors, so that a handle that nobody opens keeps no memory. All pools of the process share one table of exports, whose
 * lock is taken before a pool's. */
#include "../common/share_handle.h"
#include "allocate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct export
{
  uint64_t id;
  struct pool *pool;
  const void *ptr;
};

static struct {
  pthread_mutex_t lock;
  struct export *items;
  size_t n, room;
  uint64_t last_id;
} exports = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the pool's lock: the block of the export, if it was not freed since. */
static struct block *share_block_of(const struct export *export)
{
  struct block *block =
      block_of(&export->pool->arena.heap.blocks, block_at(&export->pool->arena.heap.blocks, export->ptr, 0));
  return block_state(block) == BLOCK_LIVE && block->exported == BLOCK_HAS_HANDLE ? block : NULL;
}

/* ---- Answers, on the thread behind the socket ---- */

/* With the pool's lock. */
static bool share_export_chunks(struct pool *pool, const struct block *block, struct share_answer *answer,
                                struct peer_files *files)
{
  const struct chunks *chunks = &pool->arena.backing.granules.chunks;
  uint64_t at = block->start, end = at + block->bytes, begin;
  for (uint32_t id; (id = chunks_next(chunks, &at, end, &begin));) {
    const struct chunk *chunk = chunk_of(chunks, id);
    int file;
    if (!chunk->handle || chunk->is_away || files->count == PEER_MOST_FILES) return false;
    if (chunks->ops->export_chunk(chunks->upstream->self, chunk->handle, &file)) return false;
    answer->part_bytes[files->count] = chunk_bytes(chunks, id);
    files->files[files->count++] = file;
  }
  answer->block = (struct hipmm_share_block){.bytes = block->requested, .n_parts = files->count};
  return files->count > 0;
}

/* The lock of the table is held. NULL: it worked; else why not. */
static const char *share_find(uint64_t id, struct share_answer *answer, struct peer_files *files)
{
  const struct export *export = NULL;
  for (size_t i = 0; i < exports.n; i++)
    if (exports.items[i].id == id) export = &exports.items[i];
  if (!export || biased_lock_enter(&export->pool->arena.lock, export->pool->arena.services))
    return "the block of the handle was freed, or never was";
  const struct block *block = share_block_of(export);
  bool is_exported = block && share_export_chunks(export->pool, block, answer, files);
  biased_lock_release(&export->pool->arena.lock);
  if (!block) return "the block of the handle was freed";
  return is_exported ? NULL
                     : "the block's memory cannot be exported now: its pool is suspended, or descriptors ran out";
}

static bool share_answer(const struct peer_message *request, struct peer_message *message, struct peer_files *files)
{
  uint64_t id;
  struct share_answer answer = {.block = {0}};
  const char *problem = "a message of another size";
  if (request->header.bytes == sizeof id) {
    memcpy(&id, request->data, sizeof id);
    pthread_mutex_lock(&exports.lock);
    problem = share_find(id, &answer, files);
    pthread_mutex_unlock(&exports.lock);
  }
  message->header.bytes = sizeof answer;
  memcpy(message->data, &answer, sizeof answer);
  if (problem) strcpy(message->data, problem);
  return !problem;
}

/* ---- Handles ---- */

/* Removes what is no export any more of the pool, or all of it. The pool's lock is held. */
static void share_drop(const struct pool *pool, bool is_all)
{
  size_t n = 0;
  for (size_t i = 0; i < exports.n; i++)
    if (exports.items[i].pool != pool || (!is_all && share_block_of(&exports.items[i])))
      exports.items[n++] = exports.items[i];
  exports.n = n;
}

/* Both locks are held. 0: no host memory. An export of the same address was of an earlier block. */
static uint64_t share_id_of(struct pool *pool, struct block *block, const void *ptr)
{
  for (size_t i = 0; i < exports.n; i++)
    if (exports.items[i].pool == pool && exports.items[i].ptr == ptr && share_block_of(&exports.items[i]))
      return exports.items[i].id;
  block->exported = BLOCK_EXPORTED; /* so that no older export is its own */
  share_drop(pool, false);
  if (exports.n == exports.room) {
    size_t room = exports.room ? 2 * exports.room : 16;
    struct export *items = realloc(exports.items, room * sizeof *items);
    if (!items) return 0;
    exports.items = items;
    exports.room = room;
  }
  block->exported = BLOCK_HAS_HANDLE;
  exports.items[exports.n++] = (struct export){++exports.last_id, pool, ptr};
  return exports.last_id;
}

static enum hipmm_status share_refuse(const struct pool *pool, const void *ptr)
{
  const struct hipmm_services *services = pool->arena.services;
  if (pool->whole_bytes == UINT64_MAX)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "%p lies in memory that was not mapped for other processes; write \"exportable\": true for "
                          "the pool, or \"ipc\": \"legacy\" where the other process has no hipmm",
                          ptr);
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                        "the block at %p shares its memory with other blocks, and another process would reach them "
                        "too; allocate at least %llu bytes for what is shared",
                        ptr, (unsigned long long)pool->whole_bytes);
}

/* Both locks are held. */
static enum hipmm_status share_make(struct pool *pool, const void *ptr, struct share_handle *handle)
{
  const struct hipmm_services *services = pool->arena.services;
  struct block *block = block_of(&pool->arena.heap.blocks, block_at(&pool->arena.heap.blocks, ptr, 0));
  if (!block->is_own) return share_refuse(pool, ptr);
  handle->id = share_id_of(pool, block, ptr);
  handle->bytes = block->requested;
  return handle->id ? HIPMM_OK : services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for a handle");
}

static enum hipmm_status share_make_locked(struct pool *pool, const void *ptr, struct share_handle *handle)
{
  pthread_mutex_lock(&exports.lock);
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (!status) {
    status = share_make(pool, ptr, handle);
    biased_lock_release(&pool->arena.lock);
  }
  pthread_mutex_unlock(&exports.lock);
  return status;
}

static enum hipmm_status share_export_pointer(void *self, const void *ptr, struct hipmm_share_pointer *pointer_out)
{
  struct pool *pool = self;
  const struct hipmm_services *services = pool->arena.services;
  struct share_handle handle = {.id = 0};
  char reason[PEER_REASON_BYTES];
  enum hipmm_status status = share_make_locked(pool, ptr, &handle);
  if (status) return status;
  /* Now that there is an export, no pool ends the socket. */
  if (!peer_serve(PEER_BLOCK, share_answer, &handle.owner, reason))
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "%s", reason);
  memcpy(handle.magic, SHARE_FORMAT_MAGIC, sizeof handle.magic);
  if (services->hip->DeviceGetUuid && services->hip->DeviceGetUuid(handle.device, services->device))
    services->hip->GetLastError();
  pointer_out->bytes = handle.bytes;
  memcpy(pointer_out->data, &handle, sizeof handle);
  return HIPMM_OK;
}

static bool share_has_any(void)
{
  pthread_mutex_lock(&exports.lock);
  bool has_any = exports.n > 0;
  pthread_mutex_unlock(&exports.lock);
  return has_any;
}

void share_close(struct pool *pool)
{
  pthread_mutex_lock(&exports.lock);
  bool had_any = exports.n > 0;
  share_drop(pool, true);
  pthread_mutex_unlock(&exports.lock);
  if (had_any) peer_end(share_has_any);
}

const struct hipmm_sharing pool_sharing = {
    .struct_size = sizeof pool_sharing, .export_pointer = share_export_pointer, .allocate = pool_allocate_exportable};
