/* SPDX-License-Identifier: MIT */
/* fake_upstream.c: hands out addresses that nothing lies under, and physical chunks that are only numbers. */
#include "fake.h"

#include <string.h>

enum { MAX_ITEMS = 16384, MAX_GRANULES = 1 << 16 };

static const uint64_t FIRST_ADDRESS = 0x200000000000;

/* A block, a reserved range, or a chunk; free where bytes is 0. */
struct item {
  uint64_t address; /* of a block or range */
  uint64_t bytes;
  unsigned mappings; /* of a chunk */
};

static struct item blocks[MAX_ITEMS], ranges[MAX_ITEMS], chunks[MAX_ITEMS];
static uint32_t mapped[MAX_GRANULES];  /* by address: the chunk that lies there, counted from 1 */
static uint64_t offsets[MAX_GRANULES]; /* and how far into it that is */
static bool may_alias, is_in_doubt;
static uint64_t capacity, granule, held, next_address;
static unsigned fail_nth;
static enum hipmm_status fail_status;

static bool fails(enum hipmm_status *status_out)
{
  if (!fail_nth || --fail_nth) return false;
  *status_out = fail_status;
  return true;
}

static struct item *find(struct item *items, uint64_t address, uint64_t bytes)
{
  for (unsigned i = 0; i < MAX_ITEMS; i++)
    if (items[i].bytes && items[i].address == address && items[i].bytes == bytes) return &items[i];
  return NULL;
}

static struct item *unused(struct item *items)
{
  for (unsigned i = 0; i < MAX_ITEMS; i++)
    if (!items[i].bytes) return &items[i];
  return NULL;
}

/* Addresses are never given twice; neighbours do not touch. */
static uint64_t new_address(uint64_t bytes)
{
  uint64_t address = next_address, unit = granule ? granule : 4096;
  next_address += (bytes + 2 * unit) / unit * unit;
  return address;
}

static bool charge(uint64_t bytes)
{
  if (bytes > capacity - held) return false;
  held += bytes;
  return true;
}

/* ---- Blocks ---- */

static enum hipmm_status allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  enum hipmm_status status;
  (void)self, (void)stream;
  if (alignment != HIPMM_ALIGNMENT || !bytes) fake_note_mistake("an upstream is asked for what it need not have");
  if (fails(&status)) return status;
  struct item *block = unused(blocks);
  if (!block || !charge(bytes)) return HIPMM_E_OUT_OF_MEMORY;
  *block = (struct item){.address = new_address(bytes), .bytes = bytes};
  *ptr_out = (void *)(uintptr_t)block->address;
  return HIPMM_OK;
}

static enum hipmm_status deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  enum hipmm_status status;
  (void)self, (void)stream, (void)alignment;
  if (fails(&status)) return status;
  struct item *block = find(blocks, (uintptr_t)ptr, bytes);
  if (!block) {
    fake_note_mistake("a block is given back that is none");
    return HIPMM_E_POINTER;
  }
  held -= bytes;
  block->bytes = 0;
  return HIPMM_OK;
}

/* ---- Virtual memory ---- */

static enum hipmm_status granularity(void *self, size_t *bytes_out)
{
  enum hipmm_status status;
  (void)self;
  if (fails(&status)) return status;
  if (!granule) return HIPMM_E_NOT_SUPPORTED;
  *bytes_out = granule;
  return HIPMM_OK;
}

static enum hipmm_status reserve(void *self, size_t bytes, void **address_out)
{
  enum hipmm_status status;
  (void)self;
  if (bytes % granule) fake_note_mistake("a range is no multiple of the granule");
  if (fails(&status)) return status;
  struct item *range = unused(ranges);
  if (!range) return HIPMM_E_OUT_OF_MEMORY;
  *range = (struct item){.address = new_address(bytes), .bytes = bytes};
  *address_out = (void *)(uintptr_t)range->address;
  return HIPMM_OK;
}

static enum hipmm_status unreserve(void *self, void *address, size_t bytes)
{
  struct item *range = find(ranges, (uintptr_t)address, bytes);
  (void)self;
  if (!range) fake_note_mistake("a range is given back that is none");
  if (fake_mapped_bytes((uintptr_t)address, (uintptr_t)address + bytes))
    fake_note_mistake("a range is given back with memory in it");
  if (range) range->bytes = 0;
  return HIPMM_OK;
}

static enum hipmm_status create(void *self, size_t bytes, void **chunk_out)
{
  enum hipmm_status status;
  (void)self;
  if (bytes % granule || !bytes) fake_note_mistake("a chunk is no multiple of the granule");
  if (fails(&status)) return status;
  struct item *chunk = unused(chunks);
  if (!chunk || !charge(bytes)) return HIPMM_E_OUT_OF_MEMORY;
  *chunk = (struct item){.bytes = bytes};
  *chunk_out = chunk;
  return HIPMM_OK;
}

static enum hipmm_status destroy(void *self, void *handle, size_t bytes)
{
  struct item *chunk = handle;
  enum hipmm_status status;
  (void)self;
  if (chunk->bytes != bytes || chunk->mappings)
    fake_note_mistake("a chunk is destroyed that is mapped or of another size");
  if (fails(&status)) return status;
  held -= chunk->bytes;
  chunk->bytes = 0;
  return HIPMM_OK;
}

static bool lies_in_a_range(uint64_t address, uint64_t bytes)
{
  for (unsigned i = 0; i < MAX_ITEMS; i++)
    if (ranges[i].bytes && address >= ranges[i].address && address + bytes <= ranges[i].address + ranges[i].bytes)
      return true;
  return false;
}

/* The granule's entry; NULL for an address that was never given out. */
static uint32_t *entry_of(uint64_t address)
{
  uint64_t index = (address - FIRST_ADDRESS) / granule;
  return address >= FIRST_ADDRESS && index < MAX_GRANULES ? &mapped[index] : NULL;
}

static void set_mapped(uint64_t start, uint64_t bytes, uint32_t number)
{
  for (uint64_t at = start; at < start + bytes && entry_of(at); at += granule) {
    *entry_of(at) = number;
    offsets[entry_of(at) - mapped] = at - start;
  }
}

static enum hipmm_status map(void *self, void *address, size_t bytes, void *handle)
{
  struct item *chunk = handle;
  uint64_t start = (uintptr_t)address;
  enum hipmm_status status;
  (void)self;
  if (!lies_in_a_range(start, bytes) || start % granule) fake_note_mistake("a chunk is mapped outside of all ranges");
  if (chunk->bytes != bytes || (chunk->mappings && !may_alias)) fake_note_mistake("a chunk is mapped twice or in part");
  if (fake_mapped_bytes(start, start + bytes)) fake_note_mistake("a chunk is mapped over another");
  if (fails(&status)) return status;
  chunk->mappings++;
  set_mapped(start, bytes, (uint32_t)(chunk - chunks) + 1);
  return HIPMM_OK;
}

static enum hipmm_status unmap(void *self, void *address, size_t bytes)
{
  enum hipmm_status status;
  uint32_t *entry = entry_of((uintptr_t)address);
  struct item *chunk = entry && *entry ? &chunks[*entry - 1] : NULL;
  (void)self;
  if (fails(&status)) return status;
  if (!chunk || offsets[entry - mapped] || chunk->bytes != bytes) {
    fake_note_mistake("something is unmapped that is no whole chunk");
    return HIPMM_E_HIP;
  }
  set_mapped((uintptr_t)address, bytes, 0);
  chunk->mappings--;
  return HIPMM_OK;
}

uint64_t fake_mapped_bytes(uint64_t start, uint64_t end)
{
  uint64_t sum = 0;
  for (uint64_t at = start; at < end; at = (at / granule + 1) * granule) {
    uint64_t stop = (at / granule + 1) * granule;
    const uint32_t *entry = entry_of(at);
    if (entry && *entry) sum += (stop < end ? stop : end) - at;
  }
  return sum;
}

bool fake_is_mapped(uint64_t start, uint64_t end)
{
  return fake_mapped_bytes(start, end) == end - start;
}

bool fake_is_chunk(uint64_t address, const void *handle, uint64_t offset)
{
  const uint32_t *entry = entry_of(address);
  return entry && *entry && &chunks[*entry - 1] == handle && offsets[entry - mapped] == offset;
}

/* ---- The resource ---- */

static int tells_may_alias(void *self)
{
  (void)self;
  return may_alias;
}

static const char *tells_doubt(void *self)
{
  (void)self;
  return is_in_doubt ? "it is in doubt" : NULL;
}

static const struct hipmm_mapping mapping = {.struct_size = sizeof mapping,
                                             .granularity = granularity,
                                             .reserve = reserve,
                                             .unreserve = unreserve,
                                             .create = create,
                                             .destroy = destroy,
                                             .map = map,
                                             .unmap = unmap,
                                             .may_alias = tells_may_alias,
                                             .discouraged_reason = tells_doubt};

static struct hipmm_ops ops = {.struct_size = sizeof ops, .allocate = allocate, .deallocate = deallocate};

struct hipmm_resource *fake_upstream(uint64_t capacity_bytes, uint64_t granule_bytes)
{
  static struct hipmm_resource upstream = {.ops = &ops};
  capacity = capacity_bytes;
  granule = granule_bytes;
  ops.mapping = granule_bytes ? &mapping : NULL;
  return &upstream;
}

void fake_let_upstream_alias(bool it_may)
{
  may_alias = it_may;
}

void fake_discourage_upstream(void)
{
  is_in_doubt = true;
}

void fake_fail_upstream(unsigned nth, enum hipmm_status status)
{
  fail_nth = nth;
  fail_status = status;
}

bool fake_failure_is_due(void)
{
  return fail_nth != 0;
}

uint64_t fake_held_bytes(void)
{
  return held;
}

uint64_t fake_free_bytes(void)
{
  return capacity - held;
}

void fake_upstream_begin(void)
{
  memset(blocks, 0, sizeof blocks);
  memset(ranges, 0, sizeof ranges);
  memset(chunks, 0, sizeof chunks);
  memset(mapped, 0, sizeof mapped);
  capacity = granule = held = 0;
  next_address = FIRST_ADDRESS;
  fail_nth = 0;
  may_alias = is_in_doubt = false;
}

void fake_upstream_end(void)
{
  if (held) fake_note_mistake("memory of the upstream is lost");
  for (unsigned i = 0; i < MAX_ITEMS; i++)
    if (ranges[i].bytes) fake_note_mistake("a range of addresses is lost");
}
