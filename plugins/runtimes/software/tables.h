/* SPDX-License-Identifier: MIT */
/* tables.h: memory and tables: heaps, objects behind handles, advice, live memory, mappings. Unless a comment says
 * otherwise, functions expect the lock held. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_TABLES_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_TABLES_H

#include "state.h"

/* ---- watch.c: what the race detector is told; nothing unless "check_streams" is on ---- */

struct software_operation;
/* The configuration is in force. Needs no lock. */
void software_watch_configure(const struct software_config *config);
/* The operation is the last of the queue. */
void software_watch_submitted(const struct software_queue *queue, const struct software_operation *operation);
/* What the queue submits from here on runs after the marker, which is done. */
void software_watch_wait(const struct software_queue *queue, const struct software_marker *marker);
/* The host knows that this is over: all up to a marker, on a queue, on a device (-1: on all). */
void software_watch_marker_over(const struct software_marker *marker);
void software_watch_queue_over(const struct software_queue *queue);
void software_watch_device_over(int device);
/* The host function is about to run, in which the program may tell any thread that all before it is over. */
void software_watch_host_runs(const struct software_operation *operation);
/* They are no more. */
void software_watch_host_end(const struct software_operation *operation);
void software_watch_marker_end(const struct software_marker *marker);
void software_watch_queue_end(const struct software_queue *queue);
/* Memory that can be used from here on, or no longer. */
void software_watch_gave(const struct software_allocation *allocation);
void software_watch_took(const struct software_allocation *allocation);
void software_watch_shared(const struct software_allocation *allocation); /* with another process, from here on */
void software_watch_mapped(uintptr_t start, size_t bytes, bool is_mapped);

/* ---- heap.c: memory -------------------------------------------------------------------------------------------- */

/* Charges a device's capacity, or the host's for -1; false if that much is not left. */
bool software_charge(int device, size_t bytes);
void software_uncharge(int device, size_t bytes);
/* A charged block of at least `bytes`, page-aligned. hipErrorOutOfMemory when capacity or the host's memory is exhausted,
 * hipErrorOperatingSystem when the program has closed the heap's file. */
hipError_t software_heap_allocate(struct software_heap *heap, size_t bytes, struct software_block **block_out);
void software_heap_free(struct software_heap *heap, struct software_block *block);
/* Unmaps everything. No block may be allocated. */
void software_heap_close(struct software_heap *heap);
/* New file space, not charged; fails as software_heap_allocate() does. discard returns its pages to the system. */
hipError_t software_heap_extend(struct software_heap *heap, size_t bytes, uint64_t *offset_out);
void software_heap_discard(struct software_heap *heap, uint64_t offset, size_t bytes);
uint64_t software_block_offset(const struct software_block *block);
size_t software_block_bytes(const struct software_block *block);
/* A new memfd of the software device, and one more descriptor of the memfd that `fd` is of; false where the process can have
 * no other file. And whether `fd` is of a memfd of the software device. */
bool software_file_create(struct software_file *file_out);
bool software_file_duplicate(int fd, struct software_file *file_out);
bool software_file_is_ours(int fd);
/* Its descriptor; -1 if there is none, or the program has closed it. */
int software_file_descriptor(const struct software_file *file);
/* Closes the descriptor, unless the program has. */
void software_file_close(struct software_file *file);
size_t software_align_up(size_t bytes, size_t alignment); /* 0 on overflow */

/* ---- handles.c: objects behind handles ------------------------------------------------------------------------- */

struct software_handles {
  size_t object_bytes;
  unsigned n_chunks;
  void *chunks[26];
  struct software_handle *free_list;
  struct software_handles *next; /* of all */
};

/* A zeroed object; NULL when there is no memory. The object freed last is allocated first. */
void *software_handle_allocate(struct software_handles *handles);
void software_handle_free(struct software_handles *handles, void *object);
/* Whether `pointer`, which may be any value, is a live object. Reads no memory but that of objects. */
bool software_handle_is_live(const struct software_handles *handles, const void *pointer);
/* The live object after `object` in memory; the first for NULL. */
void *software_handle_next(const struct software_handles *handles, const void *object);
/* Whether there is a live object of any kind but that of `except`. */
bool software_handles_exist(const struct software_handles *except);

/* ---- advice_ranges.c ------------------------------------------------------------------------------------------- */

struct software_advice_facts {
  int preferred_device, prefetched_device; /* hipInvalidDeviceId: none */
  hipMemRangeCoherencyMode coherency;
  bool read_mostly;
  bool host_accesses;
  uint64_t accessing_devices; /* a bit each */
};

/* Applies `set`, with `what` and `device`, to the pages of [start, end). Makes the list at first use. */
hipError_t software_advice_apply(struct software_advice **advice, uintptr_t start, uintptr_t end,
                                 void (*set)(struct software_advice_facts *, hipMemoryAdvise, int),
                                 hipMemoryAdvise what, int device);
/* What is true of all pages of [start, end). */
struct software_advice_facts software_advice_of(struct software_advice *advice, uintptr_t start, uintptr_t end);
void software_advice_free(struct software_advice *advice); /* NULL is allowed */

/* ---- allocation.c: the table of live memory -------------------------------------------------------------------- */

/* A new block of a heap and its entry, with one reference: that of the table. */
hipError_t software_allocation_create(enum software_memory_kind kind, int device, size_t bytes,
                                      struct software_allocation **allocation_out);
/* An entry for memory of the caller. */
hipError_t software_allocation_add(enum software_memory_kind kind, int device, void *start, size_t bytes,
                                   struct software_allocation **allocation_out);
/* The entry that holds `pointer`, or that starts there; NULL for none or one being freed. */
struct software_allocation *software_allocation_holding(const void *pointer);
struct software_allocation *software_allocation_at(const void *pointer);
/* Removes the entry from the table: it can no longer be found. The memory and the reference of the table stay. */
void software_allocation_remove(struct software_allocation *allocation);
/* From here on, to touch the memory is a fault. Waits for the operations that touch it now. Drops the reference of the
 * table. */
void software_allocation_invalidate(struct software_allocation *allocation);
void software_allocation_unreference(struct software_allocation *allocation);
/* Undoes remove. */
void software_allocation_restore(struct software_allocation *allocation);
/* remove, invalidate, and free the block to its heap: for memory of no pool. */
void software_allocation_destroy(struct software_allocation *allocation);

/* ---- mapping.c ------------------------------------------------------------------------------------------------- */

/* Whether [start, start + bytes) lies in a reservation at all, and whether `device` may touch all of it, through
 * mappings older than `sequence`. */
bool software_virtual_is_reserved(uintptr_t start);
bool software_virtual_allows(uintptr_t start, size_t bytes, bool is_write, int device, uint64_t sequence);
void software_virtual_pin(uintptr_t start, int change);
/* The device whose memory is mapped at `pointer`, or with which memory of the host was created; false if none is. */
bool software_virtual_device(const void *pointer, int *device_out, bool *is_host_out);

/* Where memory that the application cannot touch lies: in a file, from `offset` on, for `bytes` at least. */
struct software_file_range {
  int fd;
  uint64_t offset;
  size_t bytes;
};

/* Of memory in a device's heap (heap.c), and of mapped memory (mapping.c); false if the address is neither. */
bool software_heap_locate(uintptr_t address, struct software_file_range *range_out);
bool software_virtual_locate(uintptr_t address, struct software_file_range *range_out);

#endif
