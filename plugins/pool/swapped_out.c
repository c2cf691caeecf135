/* SPDX-License-Identifier: MIT */
/* swapped_out.c: see allocate.h. Memory of hipHostMalloc would be simpler: a driver writes and pins it page by page
 * in one thread, 2 GiB a second on an H200's host, where a copy moves 50. Huge pages that several threads commit, each
 * a piece of its own, and that are pinned afterwards, keep up with the copies. */
#include "../../core/base/host_memory.h"
#include "../../core/base/thread.h"
#include "allocate.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

static const uint64_t PIECE_BYTES = 64ull << 20, PAGE_BYTES = 4096;

static uint64_t swapped_out_piece_bytes(const struct swapped_out *swapped_out, uint64_t piece)
{
  uint64_t left = swapped_out->bytes - piece * PIECE_BYTES;
  return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* ---- What is saved ---- */

/* Finds the ranges of the allocated blocks, writes them unless `ranges` is NULL, and returns how many there are. */
static uint64_t swapped_out_find_ranges(const struct blocks *blocks, struct swapped_out_range *ranges)
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

static enum hipmm_status swapped_out_plan(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  swapped_out->n_ranges = swapped_out_find_ranges(&pool->heap.blocks, NULL);
  if (!swapped_out->n_ranges) return HIPMM_OK;
  swapped_out->ranges = services->host_allocate(services, swapped_out->n_ranges * sizeof *swapped_out->ranges);
  if (swapped_out->ranges) swapped_out_find_ranges(&pool->heap.blocks, swapped_out->ranges);
  for (uint64_t i = 0; swapped_out->ranges && i < swapped_out->n_ranges; i++) {
    swapped_out->ranges[i].offset = swapped_out->bytes;
    swapped_out->bytes += swapped_out->ranges[i].bytes;
  }
  swapped_out->n_pieces = (swapped_out->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  if (swapped_out->ranges)
    swapped_out->is_pinned = services->host_allocate(services, swapped_out->n_pieces * sizeof *swapped_out->is_pinned);
  if (swapped_out->is_pinned) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's records", 0, 0, 0);
}

/* Addresses without memory. A fork would copy what is pinned, and the child has no use for it. */
static enum hipmm_status swapped_out_reserve(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  uint64_t available = host_memory_available("");
  available -= available / 16; /* stays for the rest of the machine */
  if (swapped_out->bytes > available)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the host has {0:bytes} left for it", available, 0, 0);
  void *ptr =
      mmap(NULL, swapped_out->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the host has no addresses left for it", 0, 0, 0);
  madvise(ptr, swapped_out->bytes, MADV_HUGEPAGE);
  madvise(ptr, swapped_out->bytes, MADV_DONTFORK);
  swapped_out->content = ptr;
  return HIPMM_OK;
}

/* No later call could try again, so a call that fails is repeated once. What stays pinned is not unmapped. */
void swapped_out_close(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  for (uint64_t i = 0; swapped_out->content && i < swapped_out->n_pieces; i++) {
    char *piece = swapped_out->content + i * PIECE_BYTES;
    if (swapped_out->is_pinned[i] && services->hip->HostUnregister(piece) && services->hip->HostUnregister(piece))
      services->hip->GetLastError();
    else
      munmap(piece, swapped_out_piece_bytes(swapped_out, i));
  }
  services->host_free(services, swapped_out->is_pinned, swapped_out->n_pieces * sizeof *swapped_out->is_pinned);
  services->host_free(services, swapped_out->ranges, swapped_out->n_ranges * sizeof *swapped_out->ranges);
  *swapped_out = (struct swapped_out){0};
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
  struct swapped_out *swapped_out = &copying->pool->swapped_out;
  char *content = swapped_out->content + piece * PIECE_BYTES;
  uint64_t bytes = swapped_out_piece_bytes(swapped_out, piece);
  if (swapped_out->is_pinned[piece]) return true;
  for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) ((volatile char *)content)[i] = 0;
  int code = copying->pool->services->hip->HostRegister(content, bytes, HIPMM_HIP_HOST_REGISTER_PORTABLE);
  swapped_out->is_pinned[piece] = !code;
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
    void *device = (void *)(uintptr_t)from, *swapped_out = host + (from - start);
    good = copying_check(copying, "hipMemcpyAsync",
                         hip->MemcpyAsync(copying->is_restoring ? device : swapped_out,
                                          copying->is_restoring ? swapped_out : device, stop - from,
                                          HIPMM_HIP_MEMCPY_DEFAULT, stream),
                         0);
  }
  return good;
}

/* The first range whose content ends after `offset`. */
static uint64_t swapped_out_find_range(const struct swapped_out *swapped_out, uint64_t offset)
{
  uint64_t low = 0, high = swapped_out->n_ranges;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (swapped_out->ranges[middle].offset + swapped_out->ranges[middle].bytes > offset)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static bool copying_run_piece(struct copying *copying, uint64_t piece, hipmm_stream_t stream)
{
  const struct swapped_out *swapped_out = &copying->pool->swapped_out;
  uint64_t begin = piece * PIECE_BYTES, end = begin + swapped_out_piece_bytes(swapped_out, piece);
  bool good = copying_pin(copying, piece);
  for (uint64_t i = swapped_out_find_range(swapped_out, begin);
       good && i < swapped_out->n_ranges && swapped_out->ranges[i].offset < end; i++) {
    const struct swapped_out_range *range = &swapped_out->ranges[i];
    uint64_t from = range->offset > begin ? range->offset : begin, to = range->offset + range->bytes;
    if (to > end) to = end;
    good = copying_run_range(copying, range->start + (from - range->offset), to - from, swapped_out->content + from,
                             stream);
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
           (piece = atomic_fetch_add(&copying->next_piece, 1)) < copying->pool->swapped_out.n_pieces)
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
static enum hipmm_status swapped_out_copy(struct pool *pool, bool is_restoring)
{
  const struct hipmm_services *services = pool->services;
  struct copying copying = {.pool = pool, .is_restoring = is_restoring};
  pthread_t threads[MOST_THREADS];
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t n = 0, most = pool->swapped_out.n_pieces;
  if (!pool->swapped_out.n_pieces) return HIPMM_OK;
  if (processors > 0 && most > (uint64_t)processors) most = (uint64_t)processors;
  if (most > MOST_THREADS) most = MOST_THREADS;
  while (n + 1 < most && !thread_start(&threads[n], NULL, copying_run, &copying)) n++;
  copying_run(&copying);
  while (n) pthread_join(threads[--n], NULL);
  if (!copying.has_failed) return HIPMM_OK;
  return services->refuse_hip(services, copying.call, copying.code, copying.bytes);
}

/* ---- For suspend.c ---- */

enum hipmm_status swapped_out_open(struct pool *pool)
{
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status = swapped_out_plan(pool);
  if (!status && pool->swapped_out.bytes && (!services->hip->HostRegister || !services->hip->HostUnregister))
    status = services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                            "this runtime does not export hipHostRegister; discard the content");
  if (!status && pool->swapped_out.bytes) status = swapped_out_reserve(pool);
  if (!status) status = swapped_out_copy(pool, false);
  if (hipmm_is_out_of_memory(status))
    services->explain(services, status,
                      "stays in use: there is too little host memory to save {0:bytes}; free host memory, or "
                      "discard the content",
                      pool->swapped_out.bytes, 0, 0, 0);
  if (status) swapped_out_close(pool);
  return status;
}

enum hipmm_status swapped_out_restore(struct pool *pool)
{
  return swapped_out_copy(pool, true);
}
