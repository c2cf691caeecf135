/* SPDX-License-Identifier: MIT */
/* swapped_out.c: see allocate.h. Memory of hipHostMalloc would be simpler: a driver writes and pins it page by page
 * in one thread, 2 GiB a second on an H200's host, where a copy moves 50. Huge pages that several threads commit, each
 * a piece of its own, and that are pinned afterwards, keep up with the copies. */
#include "../../core/base/host_memory.h"
#include "allocate.h"

#include <sys/mman.h>
#include <unistd.h>

static const uint64_t PIECE_BYTES = 64ull << 20, PAGE_BYTES = 4096;

static uint64_t swapped_out_piece_bytes(const struct swapped_out *swapped_out, uint64_t piece)
{
  uint64_t left = swapped_out->bytes - piece * PIECE_BYTES;
  return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* ---- What is saved ---- */

/* Finds the ranges of the allocated blocks, writes them unless `ranges` is NULL, and returns how many there are. */
static uint64_t swapped_out_find_blocks(const struct heap *heap, struct swapped_out_range *ranges)
{
  const struct blocks *blocks = &heap->blocks;
  uint64_t n = 0, end = 0;
  for (uint32_t first = BLOCK_NONE; (first = heap_next_region(heap, first));) {
    bool is_new = true; /* a region begins here */
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

/* The same, and of what spans have committed. */
static uint64_t swapped_out_find_ranges(const struct pool *pool, struct swapped_out_range *ranges)
{
  uint64_t n = swapped_out_find_blocks(&pool->arena.heap, ranges);
  for (const struct key_tree_node *span = NULL; (span = spans_next(&pool->spans, span));) {
    uint64_t start, end = 0;
    for (; span_next_run(pool, span, &start, &end); n++)
      if (ranges) ranges[n] = (struct swapped_out_range){.start = start, .bytes = end - start};
  }
  return n;
}

static enum hipmm_status swapped_out_plan(struct pool *pool)
{
  const struct hipmm_services *services = pool->arena.services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  swapped_out->n_ranges = swapped_out_find_ranges(pool, NULL);
  if (!swapped_out->n_ranges) return HIPMM_OK;
  swapped_out->ranges = services->host_allocate(services, swapped_out->n_ranges * sizeof *swapped_out->ranges);
  if (swapped_out->ranges) swapped_out_find_ranges(pool, swapped_out->ranges);
  for (uint64_t i = 0; swapped_out->ranges && i < swapped_out->n_ranges; i++) {
    swapped_out->ranges[i].offset = swapped_out->bytes;
    swapped_out->bytes += swapped_out->ranges[i].bytes;
  }
  swapped_out->n_pieces = (swapped_out->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  if (swapped_out->ranges) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's records", 0, 0, 0);
}

/* No later call could try again, so a call that fails is repeated once. What stays pinned is not unmapped. */
static void swapped_out_unmap(struct pool *pool)
{
  const struct hipmm_services *services = pool->arena.services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  for (uint64_t i = 0; swapped_out->content && i < swapped_out->n_mapped; i++) {
    char *piece = swapped_out->content + i * PIECE_BYTES;
    if (swapped_out->is_pinned[i] && services->hip->HostUnregister(piece) && services->hip->HostUnregister(piece))
      services->hip->GetLastError();
    else
      munmap(piece, PIECE_BYTES);
  }
  services->host_free(services, swapped_out->is_pinned, swapped_out->n_mapped * sizeof *swapped_out->is_pinned);
  swapped_out->content = NULL;
  swapped_out->is_pinned = NULL;
  swapped_out->n_mapped = 0;
}

/* Addresses without memory. A fork would copy what is pinned, and the child has no use for it. */
static enum hipmm_status swapped_out_reserve(struct pool *pool)
{
  const struct hipmm_services *services = pool->arena.services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  if (swapped_out->n_mapped >= swapped_out->n_pieces) return HIPMM_OK; /* kept */
  swapped_out_unmap(pool);
  uint64_t bytes = swapped_out->n_pieces * PIECE_BYTES, available = host_memory_available("");
  available -= available / 16; /* stays for the rest of the machine */
  if ((pool->save_to == SAVE_TO_PINNED_KEPT ? bytes : swapped_out->bytes) > available) /* see copying_pin() */
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the host has {0:bytes} left for it", available, 0, 0);
  swapped_out->is_pinned = services->host_allocate(services, swapped_out->n_pieces * sizeof *swapped_out->is_pinned);
  if (!swapped_out->is_pinned)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's records", 0, 0, 0);
  swapped_out->n_mapped = swapped_out->n_pieces;
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "out of host memory: no addresses are left for it", 0, 0,
                            0);
  madvise(ptr, bytes, MADV_HUGEPAGE);
  madvise(ptr, bytes, MADV_DONTFORK);
  swapped_out->content = ptr;
  return HIPMM_OK;
}

/* ---- Copies ---- */

struct copying {
  struct content_copy copy; /* first; without a file, only its stager runs */
  struct pool *pool;
};

/* What is written first is committed by several threads at a time; pinning would commit it in one thread after the other. What
 * is kept is pinned whole, since the next content may need all of the piece. */
static bool copying_pin(struct copying *copying, uint64_t piece)
{
  struct swapped_out *swapped_out = &copying->pool->swapped_out;
  char *content = swapped_out->content + piece * PIECE_BYTES;
  uint32_t save_to = copying->pool->save_to;
  uint64_t bytes = save_to == SAVE_TO_PINNED_KEPT ? PIECE_BYTES : swapped_out_piece_bytes(swapped_out, piece);
  if (swapped_out->is_pinned[piece] || save_to == SAVE_TO_PAGEABLE) return true;
  for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) ((volatile char *)content)[i] = 0;
  int code = copying->pool->arena.services->hip->HostRegister(content, bytes, HIPMM_HIP_HOST_REGISTER_PORTABLE);
  swapped_out->is_pinned[piece] = !code;
  return stager_check(&copying->copy.stager, "hipHostRegister", code, bytes);
}

/* Chunk by chunk. What was freed since it was saved may be uncommitted, and an exported chunk has its content still. */
static bool copying_run_range(struct copying *copying, uint64_t start, uint64_t bytes, char *host,
                              hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = copying->pool->arena.services->hip;
  const struct chunks *chunks = &copying->pool->arena.backing.granules.chunks;
  uint64_t end = start + bytes, at = start, begin;
  bool good = true;
  for (uint32_t chunk; good && (chunk = chunks_next(chunks, &at, end, &begin));) {
    uint64_t from = begin > start ? begin : start, stop = at < end ? at : end;
    if (chunk_of(chunks, chunk)->is_exported) continue;
    void *device = (void *)(uintptr_t)from, *swapped_out = host + (from - start);
    good = stager_check(&copying->copy.stager, "hipMemcpyAsync",
                        hip->MemcpyAsync(copying->copy.is_write ? swapped_out : device,
                                         copying->copy.is_write ? device : swapped_out, stop - from,
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

/* The content at [begin, end), which `host` has. */
static bool copying_run_part(struct copying *copying, uint64_t begin, uint64_t end, char *host, hipmm_stream_t stream)
{
  const struct swapped_out *swapped_out = &copying->pool->swapped_out;
  bool good = true;
  for (uint64_t i = swapped_out_find_range(swapped_out, begin);
       good && i < swapped_out->n_ranges && swapped_out->ranges[i].offset < end; i++) {
    const struct swapped_out_range *range = &swapped_out->ranges[i];
    uint64_t from = range->offset > begin ? range->offset : begin, to = range->offset + range->bytes;
    if (to > end) to = end;
    good = copying_run_range(copying, range->start + (from - range->offset), to - from, host + (from - begin), stream);
  }
  return good;
}

static bool copying_run_piece(struct stager *stager, uint64_t piece, unsigned thread, hipmm_stream_t stream)
{
  struct copying *copying = (struct copying *)stager;
  const struct swapped_out *swapped_out = &copying->pool->swapped_out;
  uint64_t begin = piece * PIECE_BYTES, end = begin + swapped_out_piece_bytes(swapped_out, piece);
  (void)thread;
  return copying_pin(copying, piece) && copying_run_part(copying, begin, end, swapped_out->content + begin, stream);
}

static bool copying_run_block(struct content_copy *copy, char *block, uint64_t at, uint64_t bytes,
                              hipmm_stream_t stream)
{
  return copying_run_part((struct copying *)copy, at, at + bytes, block, stream);
}

static enum hipmm_status swapped_out_copy_file(struct copying *copying)
{
  const struct hipmm_services *services = copying->pool->arena.services;
  struct content_copy *copy = &copying->copy;
  enum hipmm_status status = content_file_copy(copy);
  if (status != HIPMM_E_IO) return status;
  return services->fail(services, status, NULL, "cannot %s %llu bytes %s a file in \"%.500s\": %s%s",
                        copy->is_write ? "save" : "read", (unsigned long long)copy->bytes,
                        copy->is_write ? "to" : "from", copy->file->folder, output_file_reason(copy->code),
                        copy->is_write ? "; the pool stays in use: make room there, or discard the content" : "");
}

static enum hipmm_status swapped_out_copy(struct pool *pool, bool is_restoring)
{
  const struct hipmm_services *services = pool->arena.services;
  struct swapped_out *swapped_out = &pool->swapped_out;
  struct copying copying = {
      .copy = {.stager = {.services = services, .copy_piece = copying_run_piece, .n_pieces = swapped_out->n_pieces},
               .file = &swapped_out->file,
               .bytes = swapped_out->bytes,
               .is_write = !is_restoring,
               .copy_block = copying_run_block},
      .pool = pool};
  struct stager *stager = &copying.copy.stager;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (pool->save_to == SAVE_TO_FILE) return swapped_out_copy_file(&copying);
  if (stager_run(stager, processors > 0 ? (unsigned)processors : STAGER_MOST_THREADS)) return HIPMM_OK;
  return services->refuse_hip(services, stager->call, stager->code, stager->bytes);
}

/* ---- For suspend.c ---- */

void swapped_out_close(struct pool *pool)
{
  struct swapped_out *swapped_out = &pool->swapped_out;
  pool->arena.services->host_free(pool->arena.services, swapped_out->ranges,
                                  swapped_out->n_ranges * sizeof *swapped_out->ranges);
  swapped_out->ranges = NULL;
  swapped_out->n_ranges = swapped_out->n_pieces = swapped_out->bytes = 0;
  if (pool->save_to == SAVE_TO_FILE) content_file_truncate(&swapped_out->file, 0);
  if (pool->save_to != SAVE_TO_PINNED_KEPT) swapped_out_unmap(pool);
}

void swapped_out_release(struct pool *pool)
{
  swapped_out_close(pool);
  swapped_out_unmap(pool);
}

enum hipmm_status swapped_out_open(struct pool *pool)
{
  const struct hipmm_services *services = pool->arena.services;
  bool can_pin = services->hip->HostRegister && services->hip->HostUnregister;
  bool pins = pool->save_to == SAVE_TO_PINNED || pool->save_to == SAVE_TO_PINNED_KEPT;
  enum hipmm_status status = swapped_out_plan(pool);
  if (!status && pool->swapped_out.bytes && pins && !can_pin)
    status = services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                            "this runtime does not export hipHostRegister; discard the content, or set save_to to "
                            "\"pageable\"");
  if (!status && pool->swapped_out.bytes && pool->save_to != SAVE_TO_FILE) status = swapped_out_reserve(pool);
  if (!status) status = swapped_out_copy(pool, false);
  if (hipmm_is_out_of_memory(status))
    services->explain(services, status,
                      "stays in use: there is too little host memory to save {0:bytes}; free host memory, or "
                      "discard the content",
                      pool->swapped_out.bytes, 0, 0, 0);
  if (status) swapped_out_release(pool);
  return status;
}

enum hipmm_status swapped_out_restore(struct pool *pool)
{
  return swapped_out_copy(pool, true);
}
