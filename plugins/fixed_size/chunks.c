/* SPDX-License-Identifier: MIT */
/* chunks.c: the chunks of the upstream, and the records of their blocks. The blocks of a chunk may have any numbers: the
 * address map leads to them. */
#include "../common/host_array.h"
#include "fixed.h"

enum {
  MOST_PARTS = 1 << 18, /* more blocks than blocks_to_preallocate allows */
  MOST_CHUNKS = 1 << 20,
  APART = 8 /* between blocks that are allocated one after the other */
};

static const size_t part_bytes = FIXED_PART * sizeof(struct fixed_record);
static const size_t parts_bytes = MOST_PARTS * sizeof(struct fixed_record *); /* committed on touch, as the next */
static const size_t nodes_bytes = MOST_CHUNKS * sizeof(struct key_tree_node);

/* ---- The blocks of a chunk ---- */

static void chunks_set_start(const struct fixed *fixed, uint32_t number, uint64_t start)
{
  __atomic_store_n(&record_of(fixed, number)->start, start, __ATOMIC_RELAXED);
}

/* chunks_make_records() has made enough records. */
static void chunks_add_blocks(struct fixed *fixed, uint64_t start, uint64_t end)
{
  for (; start < end; start += fixed->block_bytes) {
    while (address_of(fixed, fixed->next_unused)) fixed->next_unused++;
    uint32_t number = fixed->next_unused++;
    record_of(fixed, number)->seen = STREAM_READY;
    chunks_set_start(fixed, number, start);
    address_map_set(&fixed->starts, start, number);
  }
  if (fixed->n_records < fixed->next_unused) fixed->n_records = fixed->next_unused;
}

static void chunks_remove_blocks(struct fixed *fixed, uint64_t start, uint64_t end)
{
  for (; start < end; start += fixed->block_bytes) {
    uint32_t number = fixed_block_at(fixed, start);
    address_map_set(&fixed->starts, start, FIXED_NONE);
    chunks_set_start(fixed, number, 0);
    if (number < fixed->next_unused) fixed->next_unused = number;
  }
}

/* The list has the blocks 0, 8, 16 and so on first, then 1, 9, 17: two threads with neighbouring blocks would share a cache line
 * of records. */
void chunks_push_ready(const struct fixed *fixed, const struct key_tree_node *chunk, struct fixed_list *list,
                       uint64_t epoch)
{
  uint64_t n_blocks = chunk->minor / fixed->block_bytes, rows = (n_blocks + APART - 1) / APART;
  for (uint64_t i = rows * APART; i-- > 0;) {
    uint64_t index = i % rows * APART + i / rows;
    uint32_t number = index < n_blocks ? fixed_block_at(fixed, chunk->major + index * fixed->block_bytes) : FIXED_NONE;
    if (number && record_of(fixed, number)->seen == STREAM_READY) list_push(fixed, list, number, epoch);
  }
}

/* ---- Growing ---- */

static bool chunks_make_records(struct fixed *fixed, uint32_t n_blocks)
{
  const struct hipmm_services *services = fixed->services;
  uint64_t needed = 1 + fixed_n_blocks(fixed) + n_blocks;
  for (; fixed->n_parts * (uint64_t)FIXED_PART < needed; fixed->n_parts++) {
    void *part = fixed->n_parts < MOST_PARTS ? services->host_allocate(services, part_bytes) : NULL;
    if (!part) return false;
    fixed->records[fixed->n_parts] = part;
  }
  return true;
}

static struct key_tree_node *chunks_enter(struct fixed *fixed, uint64_t start, uint64_t bytes)
{
  struct key_tree_node *chunk = fixed->unused_nodes;
  if (chunk)
    fixed->unused_nodes = chunk->left;
  else
    chunk = &fixed->nodes[fixed->n_nodes++];
  *chunk = (struct key_tree_node){.major = start, .minor = bytes};
  key_tree_insert(&fixed->chunks, chunk);
  fixed->n_chunks++;
  fixed->reserved_bytes += bytes;
  if (fixed->reserved_bytes > fixed->peak_reserved_bytes) fixed->peak_reserved_bytes = fixed->reserved_bytes;
  fixed->services->log(fixed->services, HIPMM_LOG_DEBUG, "grew by a chunk of %llu bytes to %llu bytes",
                       (unsigned long long)bytes, (unsigned long long)fixed->reserved_bytes);
  chunks_add_blocks(fixed, start, start + bytes);
  return chunk;
}

static enum hipmm_status chunks_add(struct fixed *fixed, uint32_t n_blocks, hipmm_stream_t stream,
                                    const struct key_tree_node **chunk_out)
{
  const struct hipmm_services *services = fixed->services;
  uint64_t bytes = n_blocks * fixed->block_bytes;
  void *ptr = NULL;
  if (fixed->n_chunks == MOST_CHUNKS)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot have more than {0} chunks; raise blocks_per_chunk",
                            MOST_CHUNKS, 0, 0);
  enum hipmm_status status = hipmm_upstream_allocate(fixed->upstream, bytes, HIPMM_ALIGNMENT, stream, &ptr);
  if (status) return status;
  if (!chunks_make_records(fixed, n_blocks) || !address_map_cover(&fixed->starts, (uintptr_t)ptr, bytes)) {
    hipmm_upstream_deallocate(fixed->upstream, ptr, bytes, HIPMM_ALIGNMENT, stream);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for records of {0} blocks", n_blocks,
                            0, 0);
  }
  *chunk_out = chunks_enter(fixed, (uintptr_t)ptr, bytes);
  return HIPMM_OK;
}

enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, hipmm_stream_t stream,
                              const struct key_tree_node **chunk_out)
{
  enum hipmm_status status = chunks_add(fixed, n_blocks, stream, chunk_out);
  while (hipmm_is_out_of_memory(status) && n_blocks > least_blocks) {
    n_blocks = n_blocks / 2 > least_blocks ? n_blocks / 2 : least_blocks;
    status = chunks_add(fixed, n_blocks, stream, chunk_out);
  }
  return status;
}

/* ---- Releasing ---- */

static bool chunks_is_idle(const struct fixed *fixed, const struct key_tree_node *chunk)
{
  uint64_t at = chunk->major, end = at + chunk->minor;
  while (at < end && record_of(fixed, fixed_block_at(fixed, at))->seen == STREAM_READY) at += fixed->block_bytes;
  return at >= end;
}

/* The address map loses the blocks first: another resource may have the memory as soon as the upstream has it. */
static enum hipmm_status chunks_release(struct fixed *fixed, struct key_tree_node *chunk)
{
  uint64_t start = chunk->major, bytes = chunk->minor;
  chunks_remove_blocks(fixed, start, start + bytes);
  enum hipmm_status status =
      hipmm_upstream_deallocate(fixed->upstream, (void *)(uintptr_t)start, bytes, HIPMM_ALIGNMENT, NULL);
  if (status) {
    chunks_add_blocks(fixed, start, start + bytes);
    return status;
  }
  address_map_discard(&fixed->starts, start, bytes);
  key_tree_remove(&fixed->chunks, chunk);
  chunk->left = fixed->unused_nodes;
  fixed->unused_nodes = chunk;
  fixed->n_chunks--;
  fixed->reserved_bytes -= bytes;
  return HIPMM_OK;
}

/* Releases the host memory of unused records. Only those of one part are contiguous. */
static void chunks_discard_records(struct fixed *fixed)
{
  for (uint32_t first = fixed->next_unused, end; first < fixed->n_records; first = end) {
    end = first + 1;
    if (address_of(fixed, first)) continue;
    while (end < fixed->n_records && end % FIXED_PART && !address_of(fixed, end)) end++;
    host_pages_discard(record_of(fixed, first), (end - first) * sizeof(struct fixed_record));
  }
  while (fixed->n_records > fixed->next_unused && !address_of(fixed, fixed->n_records - 1)) fixed->n_records--;
}

/* The highest addresses first. The other ready blocks come into the list again, the lowest addresses first. */
enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  struct fixed_list *ready = reuse_ready(fixed);
  ready->first = FIXED_NONE;
  for (struct key_tree_node *chunk = key_tree_at_most(fixed->chunks, UINTPTR_MAX), *before; chunk; chunk = before) {
    before = key_tree_at_most(fixed->chunks, chunk->major - 1);
    bool is_leaving = fixed->reserved_bytes - chunk->minor >= keep_bytes && chunks_is_idle(fixed, chunk);
    enum hipmm_status status = is_leaving ? chunks_release(fixed, chunk) : HIPMM_OK;
    if (status || !is_leaving) chunks_push_ready(fixed, chunk, ready, 0);
    if (!first) first = status;
  }
  chunks_discard_records(fixed);
  return first;
}

/* ---- Life ---- */

bool chunks_open(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  bool opened = address_map_open(&fixed->starts, services, fixed->block_bytes);
  fixed->next_unused = fixed->n_records = 1;
  fixed->records = services->host_allocate(services, parts_bytes);
  fixed->nodes = services->host_allocate(services, nodes_bytes);
  return opened && fixed->records && fixed->nodes;
}

void chunks_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  for (struct key_tree_node *chunk; (chunk = fixed->chunks);) {
    key_tree_remove(&fixed->chunks, chunk);
    hipmm_upstream_deallocate(fixed->upstream, (void *)chunk->major, chunk->minor, HIPMM_ALIGNMENT, NULL);
  }
  while (fixed->n_parts) services->host_free(services, fixed->records[--fixed->n_parts], part_bytes);
  services->host_free(services, fixed->records, parts_bytes);
  services->host_free(services, fixed->nodes, nodes_bytes);
  address_map_close(&fixed->starts);
}

uint64_t chunks_metadata_bytes(const struct fixed *fixed)
{
  return fixed_n_blocks(fixed) * sizeof(struct fixed_record) + fixed->n_nodes * sizeof(struct key_tree_node) +
         address_map_metadata_bytes(&fixed->starts, fixed->reserved_bytes);
}
