/* SPDX-License-Identifier: MIT */
/* heap.c: the memory itself. A heap is a sparse memfd, and arenas are mapped ranges of it. An arena takes address space
 * only; a page is committed when it is first touched. Blocks are cut from arenas by best fit, free neighbours are merged,
 * and the pages of a freed block are returned to the system. Called by the allocation table, pools and virtual memory.
 *
 * The capacity of a device is a count of bytes, and does not depend on where blocks lie: when no hole fits, another arena
 * is mapped. So a device never runs out of memory through fragmentation, like a GPU that maps pages behind addresses. A
 * heap never uses an offset of its file twice as physical memory, and never waits. */
#include "internal.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES    ((size_t)1 << 30) /* at least; address space, not memory */
#define FILE_STEP      ((uint64_t)1 << 40)
#define FILE_LIMIT     ((uint64_t)1 << 61)
#define DISCARD_BYTES  ((size_t)1 << 16) /* a freed block smaller than this keeps its pages */
#define HEAP_FILE_NAME "hipmm-software"

struct software_arena {
  struct key_tree_node by_address; /* in software.arenas; major: start; minor: bytes */
  struct software_arena *next;
  struct software_heap *heap;
  uint64_t offset; /* in the file */
};

static struct software_block *heap_block_of(struct key_tree_node *by_size)
{
  return (struct software_block *)((char *)by_size - offsetof(struct software_block, by_size));
}

size_t software_align_up(size_t bytes, size_t alignment)
{
  return bytes > SIZE_MAX - (alignment - 1) ? 0 : (bytes + alignment - 1) & ~(alignment - 1);
}

static size_t *heap_used_bytes(int device)
{
  return device < 0 ? &software.host_used_bytes : &software.devices[device].used_bytes;
}

bool software_charge(int device, size_t bytes)
{
  size_t *used_bytes = heap_used_bytes(device);
  size_t most = device < 0 ? software.config.host_memory_bytes : software.config.memory_bytes;
  if (bytes > most - *used_bytes) return false;
  *used_bytes += bytes;
  return true;
}

void software_uncharge(int device, size_t bytes)
{
  *heap_used_bytes(device) -= bytes;
}

static bool heap_keep_file(int fd, struct software_file *file_out)
{
  struct software_file file = {.fd = fd};
  bool is_kept = fd >= 0 && output_file_identify(fd, &file.identity);
  if (is_kept)
    *file_out = file;
  else if (fd >= 0)
    close(fd);
  return is_kept;
}

/* Without the number 0, which means "no file" here. Another process that gets a descriptor can take nothing away below the
 * mappings of this one, nor seal the file against them. */
bool software_file_create(struct software_file *file_out)
{
  int fd = output_file_spare_standard(memfd_create(HEAP_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)) {
    close(fd);
    return false;
  }
  return heap_keep_file(fd, file_out);
}

bool software_file_duplicate(int fd, struct software_file *file_out)
{
  return heap_keep_file(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), file_out);
}

bool software_file_is_ours(int fd)
{
  char link[64], target[64] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, sizeof target - 1);
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return false;
  return length > 0 && strncmp(target, "/memfd:" HEAP_FILE_NAME, sizeof "/memfd:" HEAP_FILE_NAME - 1) == 0;
}

int software_file_descriptor(const struct software_file *file)
{
  return file->fd > 0 && output_file_is(file->fd, &file->identity) ? file->fd : -1;
}

void software_file_close(struct software_file *file)
{
  int fd = software_file_descriptor(file);
  if (fd >= 0) close(fd);
  *file = (struct software_file){.fd = 0};
}

hipError_t software_heap_extend(struct software_heap *heap, size_t bytes, uint64_t *offset_out)
{
  if (heap->file.fd == 0 && !software_file_create(&heap->file)) return hipErrorOutOfMemory;
  int fd = software_file_descriptor(&heap->file);
  if (fd < 0) return hipErrorOperatingSystem;
  if (bytes > FILE_LIMIT || heap->file_end > FILE_LIMIT - bytes) return hipErrorOutOfMemory;
  uint64_t end = heap->file_end + bytes;
  if (end > heap->file_bytes) {
    uint64_t larger = (end + FILE_STEP - 1) / FILE_STEP * FILE_STEP;
    if (output_file_truncate(fd, (off_t)larger)) larger = end; /* ulimit -f */
    if (larger == end && output_file_truncate(fd, (off_t)end)) return hipErrorOutOfMemory;
    heap->file_bytes = larger;
  }
  *offset_out = heap->file_end;
  heap->file_end = end;
  return hipSuccess;
}

void software_heap_discard(struct software_heap *heap, uint64_t offset, size_t bytes)
{
  /* If it fails the pages stay committed, which costs memory and is no error of the caller. */
  (void)!fallocate(software_file_descriptor(&heap->file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                   (off_t)bytes);
}

static void heap_insert(struct software_heap *heap, struct software_block *block)
{
  block->by_size.major = block->by_address.minor;
  block->by_size.minor = block->by_address.major;
  key_tree_insert(&heap->free_by_address, &block->by_address);
  key_tree_insert(&heap->free_by_size, &block->by_size);
}

static void heap_remove(struct software_heap *heap, struct software_block *block)
{
  key_tree_remove(&heap->free_by_address, &block->by_address);
  key_tree_remove(&heap->free_by_size, &block->by_size);
}

/* A new arena as one free block. */
static hipError_t heap_grow(struct software_heap *heap, size_t bytes, struct software_block **block_out)
{
  struct software_arena *arena = calloc(1, sizeof *arena);
  struct software_block *block = calloc(1, sizeof *block);
  hipError_t error = arena && block ? software_heap_extend(heap, bytes, &arena->offset) : hipErrorOutOfMemory;
  if (error != hipSuccess) goto free_arena;
  int protection = software.config.no_host_access && heap->device >= 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
  void *start = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, software_file_descriptor(&heap->file),
                     (off_t)arena->offset);
  if (start == MAP_FAILED) error = hipErrorOutOfMemory;
  if (error != hipSuccess) goto free_arena;
  arena->heap = heap;
  arena->by_address = (struct key_tree_node){.major = (uintptr_t)start, .minor = bytes};
  arena->next = heap->arenas;
  heap->arenas = arena;
  key_tree_insert(&software.arenas, &arena->by_address);
  block->arena = arena;
  block->by_address = (struct key_tree_node){.major = (uintptr_t)start, .minor = bytes};
  heap_insert(heap, block);
  *block_out = block;
  return hipSuccess;

free_arena:
  free(block);
  free(arena);
  return error;
}

bool software_heap_locate(uintptr_t address, struct software_file_range *range_out)
{
  const struct software_arena *arena = (struct software_arena *)key_tree_holding(software.arenas, address);
  if (!arena || arena->heap->device < 0) return false;
  size_t before = address - arena->by_address.major;
  *range_out = (struct software_file_range){software_file_descriptor(&arena->heap->file), arena->offset + before,
                                            arena->by_address.minor - before};
  return true;
}

static void heap_drop_arena(struct software_heap *heap, struct software_arena *arena)
{
  struct software_arena **link = &heap->arenas;
  while (*link != arena) link = &(*link)->next;
  *link = arena->next;
  key_tree_remove(&software.arenas, &arena->by_address);
  munmap((void *)arena->by_address.major, arena->by_address.minor);
  software_heap_discard(heap, arena->offset, arena->by_address.minor);
  free(arena);
}

/* The smallest free block of at least `bytes`, from a new arena if there is none. */
static hipError_t heap_find_free(struct software_heap *heap, size_t bytes, struct software_block **block_out)
{
  struct key_tree_node *node = key_tree_at_least(heap->free_by_size, bytes, 0);
  if (node) *block_out = heap_block_of(node);
  if (node || (bytes < ARENA_BYTES && heap_grow(heap, ARENA_BYTES, block_out) == hipSuccess)) return hipSuccess;
  return heap_grow(heap, bytes, block_out);
}

hipError_t software_heap_allocate(struct software_heap *heap, size_t bytes, struct software_block **block_out)
{
  struct software_block *block;
  bytes = software_align_up(bytes, SOFTWARE_PAGE_BYTES);
  if (bytes == 0 || !software_charge(heap->device, bytes)) return hipErrorOutOfMemory;
  hipError_t error = heap_find_free(heap, bytes, &block);
  if (error != hipSuccess) goto uncharge;
  size_t rest_bytes = block->by_address.minor - bytes;
  if (rest_bytes > 0) {
    struct software_block *rest = calloc(1, sizeof *rest);
    if (!rest) error = hipErrorOutOfMemory;
    if (!rest) goto uncharge;
    rest->arena = block->arena;
    rest->by_address = (struct key_tree_node){.major = block->by_address.major + bytes, .minor = rest_bytes};
    heap_remove(heap, block);
    heap_insert(heap, rest);
  } else {
    heap_remove(heap, block);
  }
  block->by_address.minor = bytes;
  *block_out = block;
  return hipSuccess;

uncharge:
  software_uncharge(heap->device, bytes);
  return error;
}

/* Merges `next` into `block`, both free and out of the trees. */
static void heap_merge(struct software_block *block, struct software_block *next)
{
  block->by_address.minor += next->by_address.minor;
  free(next);
}

void software_heap_free(struct software_heap *heap, struct software_block *block)
{
  size_t bytes = block->by_address.minor;
  software_uncharge(heap->device, bytes);
  if (bytes >= DISCARD_BYTES) software_heap_discard(heap, software_block_offset(block), bytes);
  /* The address is the first field, so a node of the tree by address is its block. */
  struct software_block *before =
      (struct software_block *)key_tree_at_most(heap->free_by_address, block->by_address.major);
  struct software_block *after =
      (struct software_block *)key_tree_at_least(heap->free_by_address, block->by_address.major + bytes, 0);
  if (after && after->arena == block->arena && after->by_address.major == block->by_address.major + bytes) {
    heap_remove(heap, after);
    heap_merge(block, after);
  }
  if (before && before->arena == block->arena &&
      before->by_address.major + before->by_address.minor == block->by_address.major) {
    heap_remove(heap, before);
    heap_merge(before, block);
    block = before;
  }
  if (block->by_address.minor == block->arena->by_address.minor && block->by_address.minor > ARENA_BYTES) {
    heap_drop_arena(heap, block->arena);
    free(block);
  } else {
    heap_insert(heap, block);
  }
}

void software_heap_close(struct software_heap *heap)
{
  while (heap->free_by_address) {
    struct software_block *block = (struct software_block *)heap->free_by_address;
    heap_remove(heap, block);
    free(block);
  }
  while (heap->arenas) heap_drop_arena(heap, heap->arenas);
  software_file_close(&heap->file);
  *heap = (struct software_heap){.device = heap->device};
}

uint64_t software_block_offset(const struct software_block *block)
{
  return block->arena->offset + (block->by_address.major - block->arena->by_address.major);
}

size_t software_block_bytes(const struct software_block *block)
{
  return block->by_address.minor;
}
