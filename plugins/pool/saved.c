/* SPDX-License-Identifier: MIT */
/* saved.c: see saved.h. Memory of hipHostMalloc would be simpler: a driver writes and pins it page by page in one thread,
 * 2 GiB a second on an H200's host, where a copy moves 50. Huge pages that several threads commit, each a piece of its
 * own, and that are pinned afterwards, keep up with the copies. */
#include "saved.h"
#include "../../core/base/host_memory.h"
#include "../../core/base/thread.h"
#include "allocate.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

static const uint64_t PIECE_BYTES = 64ull << 20, PAGE_BYTES = 4096;

static uint64_t saved_piece_bytes(const struct saved *saved, uint64_t piece)
{
  uint64_t left = saved->bytes - piece * PIECE_BYTES;
  return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* ---- What is saved ---- */

/* Finds the ranges of the allocated blocks, writes them unless `ranges` is NULL, and returns how many there are. */
static uint64_t saved_find_ranges(const struct blocks *blocks, struct saved_range *ranges)
{
  uint64_t n = 0, end = 0;
  for (uint32_t first = 1; first < blocks->count; first++) {
    bool is_new = true; /* a region begins here */
    if (block_state(block_of(blocks, first)) == BLOCK_UNUSED || block_of(blocks, first)->before) continue;
    for (uint32_t id = first; id; id = block_of(blocks, id)->after) {
      const struct block *block = block_of(blocks, id);
      if (block_state(block) == BLOCK_FREE) continue;
      if (is_new || block->start - end >= blocks->granule_bytes) {
        if (ranges) ranges[n].start = block->start;
        n++;
      }
      is_new = false;
      end = block->start + block->bytes;
      if (ranges) ranges[n - 1].bytes = end - ranges[n - 1].start;
    }
  }
  return n;
}

static enum hipmm_status saved_plan(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  struct saved *saved = &pool->saved;
  saved->n_ranges = saved_find_ranges(&pool->heap.blocks, NULL);
  if (!saved->n_ranges) return HIPMM_OK;
  saved->ranges = services->host_allocate(services, saved->n_ranges * sizeof *saved->ranges);
  if (saved->ranges) saved_find_ranges(&pool->heap.blocks, saved->ranges);
  for (uint64_t i = 0; saved->ranges && i < saved->n_ranges; i++) {
    saved->ranges[i].offset = saved->bytes;
    saved->bytes += saved->ranges[i].bytes;
  }
  saved->n_pieces = (saved->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  if (saved->ranges) saved->is_pinned = services->host_allocate(services, saved->n_pieces * sizeof *saved->is_pinned);
  if (saved->is_pinned) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's records", 0, 0, 0);
}

/* Addresses without memory. A fork would copy what is pinned, and the child has no use for it. */
static enum hipmm_status saved_reserve(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  struct saved *saved = &pool->saved;
  uint64_t available = host_memory_available("");
  available -= available / 16; /* stays for the rest of the machine */
  if (saved->bytes > available)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the host has {0:bytes} left for it", available, 0, 0);
  void *ptr = mmap(NULL, saved->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the host has no addresses left for it", 0, 0, 0);
  madvise(ptr, saved->bytes, MADV_HUGEPAGE);
  madvise(ptr, saved->bytes, MADV_DONTFORK);
  saved->content = ptr;
  return HIPMM_OK;
}

/* No later call could try again, so a call that fails is repeated once. What stays pinned is not unmapped. */
void saved_close(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  struct saved *saved = &pool->saved;
  for (uint64_t i = 0; saved->content && i < saved->n_pieces; i++) {
    char *piece = saved->content + i * PIECE_BYTES;
    if (saved->is_pinned[i] && services->hip->HostUnregister(piece) && services->hip->HostUnregister(piece))
      services->hip->GetLastError();
    else
      munmap(piece, saved_piece_bytes(saved, i));
  }
  services->host_free(services, saved->is_pinned, saved->n_pieces * sizeof *saved->is_pinned);
  services->host_free(services, saved->ranges, saved->n_ranges * sizeof *saved->ranges);
  *saved = (struct saved){0};
}

/* ---- Copies ---- */

/* What the threads of one direction share. */
struct copying {
  struct pool *pool;
  bool is_restoring;
  atomic_uint_fast64_t next_piece;
  atomic_bool has_failed;
  const char *call; /* the first that failed */
  int code;
  uint64_t bytes;
};

/* Returns whether the call succeeded. The first failure ends the work of all threads. */
static bool copying_check(struct copying *copying, const char *call, int code, uint64_t bytes)
{
  if (!code) return true;
  if (atomic_exchange(&copying->has_failed, true)) return false;
  copying->call = call;
  copying->code = code;
  copying->bytes = bytes;
  return false;
}

/* What is written first is committed by several threads at a time; pinning would commit it in one thread after the other. */
static bool copying_pin(struct copying *copying, uint64_t piece)
{
  struct saved *saved = &copying->pool->saved;
  char *content = saved->content + piece * PIECE_BYTES;
  uint64_t bytes = saved_piece_bytes(saved, piece);
  if (saved->is_pinned[piece]) return true;
  for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) ((volatile char *)content)[i] = 0;
  int code = copying->pool->services->hip->HostRegister(content, bytes, HIPMM_HIP_HOST_REGISTER_PORTABLE);
  saved->is_pinned[piece] = !code;
  return copying_check(copying, "hipHostRegister", code, bytes);
}

/* Chunk by chunk. What was freed since it was saved may be uncommitted, and an exported chunk has its content still. */
static bool copying_run_range(struct copying *copying, uint64_t start, uint64_t bytes, char *host,
                              hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = copying->pool->services->hip;
  const struct chunks *chunks = &copying->pool->backing.granules.chunks;
  uint64_t end = start + bytes, at = start, begin;
  bool good = true;
  for (uint32_t chunk; good && (chunk = chunks_next(chunks, &at, end, &begin));) {
    uint64_t from = begin > start ? begin : start, stop = at < end ? at : end;
    if (chunk_of(chunks, chunk)->is_exported) continue;
    void *device = (void *)(uintptr_t)from, *saved = host + (from - start);
    good =
        copying_check(copying, "hipMemcpyAsync",
                      hip->MemcpyAsync(copying->is_restoring ? device : saved, copying->is_restoring ? saved : device,
                                       stop - from, HIPMM_HIP_MEMCPY_DEFAULT, stream),
                      0);
  }
  return good;
}

/* The first range whose content ends after `offset`. */
static uint64_t saved_find_range(const struct saved *saved, uint64_t offset)
{
  uint64_t low = 0, high = saved->n_ranges;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (saved->ranges[middle].offset + saved->ranges[middle].bytes > offset)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static bool copying_run_piece(struct copying *copying, uint64_t piece, hipmm_stream_t stream)
{
  const struct saved *saved = &copying->pool->saved;
  uint64_t begin = piece * PIECE_BYTES, end = begin + saved_piece_bytes(saved, piece);
  bool good = copying_pin(copying, piece);
  for (uint64_t i = saved_find_range(saved, begin); good && i < saved->n_ranges && saved->ranges[i].offset < end; i++) {
    const struct saved_range *range = &saved->ranges[i];
    uint64_t from = range->offset > begin ? range->offset : begin, to = range->offset + range->bytes;
    if (to > end) to = end;
    good = copying_run_range(copying, range->start + (from - range->offset), to - from, saved->content + from, stream);
  }
  return good;
}

/* One thread's part. Its stream is non-blocking: it waits for no other stream, and can be used while others are
 * captured. */
static void *copying_run(void *arg)
{
  struct copying *copying = arg;
  const struct hipmm_services *services = copying->pool->services;
  int previous = services->enter_device(services), code;
  hipmm_stream_t stream;
  if (copying_check(copying, "hipStreamCreateWithFlags",
                    services->hip->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0)) {
    uint64_t piece;
    while (!atomic_load(&copying->has_failed) &&
           (piece = atomic_fetch_add(&copying->next_piece, 1)) < copying->pool->saved.n_pieces)
      copying_run_piece(copying, piece, stream);
    code = services->hip->StreamSynchronize(stream);
    if (code) services->hip->StreamSynchronize(stream); /* copies may go on */
    copying_check(copying, "hipStreamSynchronize", code, 0);
    if (services->hip->StreamDestroy(stream)) services->hip->GetLastError();
  }
  services->leave_device(services, previous);
  return NULL;
}

/* By the calling thread and as many more as can be had. */
static enum hipmm_status saved_copy(struct pool *pool, bool is_restoring)
{
  const struct hipmm_services *services = pool->services;
  struct copying copying = {.pool = pool, .is_restoring = is_restoring};
  pthread_t threads[MOST_THREADS];
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t n = 0, most = pool->saved.n_pieces;
  if (!pool->saved.n_pieces) return HIPMM_OK;
  if (processors > 0 && most > (uint64_t)processors) most = (uint64_t)processors;
  if (most > MOST_THREADS) most = MOST_THREADS;
  while (n + 1 < most && !thread_start(&threads[n], NULL, copying_run, &copying)) n++;
  copying_run(&copying);
  while (n) pthread_join(threads[--n], NULL);
  if (!copying.has_failed) return HIPMM_OK;
  return services->refuse_hip(services, copying.call, copying.code, copying.bytes);
}

/* ---- For suspend.c ---- */

enum hipmm_status saved_open(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status = saved_plan(pool);
  if (!status && pool->saved.bytes && (!services->hip->HostRegister || !services->hip->HostUnregister))
    status = services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                            "this runtime does not export hipHostRegister; discard the content");
  if (!status && pool->saved.bytes) status = saved_reserve(pool);
  if (!status) status = saved_copy(pool, false);
  if (hipmm_is_out_of_memory(status))
    services->explain(services, status,
                      "stays in use: there is too little host memory to save {0:bytes}; free host memory, or "
                      "discard the content",
                      pool->saved.bytes, 0, 0, 0);
  if (status) saved_close(pool);
  return status;
}

enum hipmm_status saved_restore(struct pool *pool)
{
  return saved_copy(pool, true);
}
