/* SPDX-License-Identifier: MIT */
/* share.c: memory between processes, through hipIpcGetMemHandle() and its like; see operations.h.
 *
 * The driver's handle stands for a whole allocation of the driver. For a block that is a part of one, the program gets a
 * handle of hipmm's own, which says where the block begins in the allocation, and where the driver's handle is: in a
 * file in memory that this process keeps open. The other process, under `hipmm run` too, reads it there through /proc, so
 * it must belong to the same user, and this process must still live. An allocation is opened once, however many of its
 * blocks the program opens.
 *
 * The driver has no handles for mapped memory. There hipmm_share_export_pointer() makes the handle, and
 * hipmm_share_import_pointer() maps the block's memory in the other process. */
#include "operations.h"

#include "../../core/base/output_file.h"
#include "../../core/base/share_format.h"
#include "../../core/runtime/hip.h"
#include "blocks.h"
#include "contexts.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "shortage.h"

#include <errno.h>
#include <fcntl.h>
#include <hipmm/share.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ERROR_INVALID_CONTEXT = 201, ERROR_MAP_FAILED = 205 };

static const char magic[16] = "hipmm-ipc-part1";

/* In the place of the driver's handle. */
struct share_handle {
  char magic[sizeof magic];
  uint64_t tag; /* of the process that made it: ids of processes are used again */
  int32_t process, file;
  uint64_t record; /* its position in the file */
  uint64_t offset; /* of the pointer in the allocation */
  uint32_t
      block; /* its id, so that two blocks never have the same handle; 0: each handle of it has a record of its own */
  uint32_t zero;
};
_Static_assert(sizeof(struct share_handle) <= sizeof(struct ipc_handle), "must fit into the runtime's struct");

/* In the file. */
struct share_record {
  uint64_t tag;
  uint64_t bytes; /* of the allocation */
  struct ipc_handle driver;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the records and of what is open */

/* ---- Making handles ---- */

static struct {
  int file;
  struct output_file_identity identity;
  pid_t process; /* that made the file; 0: none */
  uint64_t tag, end;
} records;

/* Where the program has closed the file, handles that it made can be opened no more, and are made anew in another file. Blocks
 * keep their places, so `end` stays. */
static bool share_open_records(void)
{
  struct output_file_identity identity;
  uint64_t tag;
  if (records.process == getpid() && output_file_is(records.file, &records.identity)) return true;
  int file = memfd_create("hipmm-ipc", MFD_CLOEXEC);
  if (file < 0) return false;
  if (!output_file_identify(file, &identity) || getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag) {
    close(file);
    return false;
  }
  records.file = file;
  records.identity = identity;
  records.process = getpid();
  records.tag = tag;
  return true;
}

/* Under the lock. A block has one record, however often the program asks for a handle. */
static bool share_write_handle(const struct block *block, uint64_t offset, struct share_record *record,
                               struct ipc_handle *handle_out)
{
  if (!share_open_records()) return false;
  struct share_handle handle = {.tag = records.tag,
                                .process = records.process,
                                .file = records.file,
                                .record = blocks_set_share(block, records.end),
                                .offset = offset,
                                .block = block->id};
  if (handle.record == records.end) records.end += sizeof *record;
  record->tag = records.tag;
  if (pwrite(records.file, record, sizeof *record, (off_t)handle.record) != (ssize_t)sizeof *record) return false;
  memcpy(handle.magic, magic, sizeof magic);
  memset(handle_out, 0, sizeof *handle_out);
  memcpy(handle_out, &handle, sizeof handle);
  return true;
}

/* The handle is for the whole block, as the driver's handle is for the whole allocation. */
static int share_get_mapped(enum hook hook, struct ipc_handle *handle, const struct block *block)
{
  struct hipmm_share_pointer pointer;
  _Static_assert(sizeof pointer.data == sizeof *handle, "the data of a pointer are a handle");
  enum hipmm_status status =
      hipmm_share_export_pointer(block->served->resources[block->kind], block_start(block), &pointer);
  if (status)
    return failure_refuse(
        hook, status == HIPMM_E_OUT_OF_MEMORY ? HIPMM_HIP_ERROR_OUT_OF_MEMORY : HIPMM_HIP_ERROR_NOT_SUPPORTED, "%s",
        hipmm_last_error_message());
  memcpy(handle, pointer.data, sizeof *handle);
  return 0;
}

static int share_get_part(enum hook hook, struct ipc_handle *handle, const struct block *block, void *ptr)
{
  struct share_record record;
  void *base = NULL; /* of the runtime's allocation that has the block */
  size_t bytes = 0;
  const char *name = hipmm_resource_name(block->served->resources[block->kind]);
  if (devices_are_mapped_at(ptr, &base, &bytes)) return share_get_mapped(hook, handle, block);
  record.bytes = bytes;
  int code = next_two_pointers(hook, &record.driver, base);
  if (code)
    return failure_refuse(hook, code, "%p lies in an allocation of %s of which the driver gives no handle: error %d",
                          ptr, name, code);
  pthread_mutex_lock(&lock);
  bool is_good = share_write_handle(block, (uint64_t)((const char *)ptr - (char *)base), &record, handle);
  pthread_mutex_unlock(&lock);
  return is_good ? 0
                 : failure_refuse(hook, HIPMM_HIP_ERROR_OUT_OF_MEMORY, "the record of a handle: %s", strerror(errno));
}

/* What the runtime knows of a pointer is an allocation; the program has a block, or nothing. */
enum share_kind { SHARE_FOREIGN, SHARE_WHOLE, SHARE_PART, SHARE_FREED };

/* Whether nothing else is in the allocation of so many bytes that begins where the block does. */
static bool share_is_alone(const struct block *block, size_t bytes)
{
  struct hipmm_location location = {.struct_size = sizeof location, .usable_bytes = block_bytes(block)};
  const void *start = block_start(block);
  const struct instance *owner = instance_owner_of(instance_from(block->served->resources[block->kind]), start);
  return owner && !owner->resource.ops->locate(owner->resource.self, start, &location) &&
         location.usable_bytes == bytes;
}

static enum share_kind share_kind_of(bool is_outermost, const void *ptr, struct block *block_out)
{
  struct hipmm_block held;
  if (!is_outermost || !ptr || !init_was_ready() || init_is_forked()) return SHARE_FOREIGN;
  enum blocks_held held_at = blocks_find_held(ptr, block_out);
  if (held_at != BLOCKS_HELD_LIVE) return held_at == BLOCKS_HELD_FREE ? SHARE_FREED : SHARE_FOREIGN;
  bool is_whole = devices_have_block(block_start(block_out), &held) &&
                  (held.bytes == block_bytes(block_out) || share_is_alone(block_out, held.bytes));
  return is_whole ? SHARE_WHOLE : SHARE_PART;
}

/* Whether the program has mapped memory there, its own or another process's. AMD's hipIpcGetMemHandle() is not made for such an
 * address, and has brought the machine down (ROCm/clr#265). */
static bool share_is_mapped(enum hook hook, void *ptr)
{
  typedef int retain_function(uint64_t * handle, void *ptr);
  typedef int release_function(uint64_t handle);
  uint64_t handle;
  if (!ptr || hook_family(hook) != FAMILY_HIP || !next_find(HOOK_hipMemRetainAllocationHandle)) return false;
  bool is_mapped = !((retain_function *)next_function_of(HOOK_hipMemRetainAllocationHandle))(&handle, ptr);
  if (is_mapped)
    ((release_function *)next_function_of(HOOK_hipMemRelease))(handle);
  else
    next_void(HOOK_hipGetLastError);
  return is_mapped;
}

int share_get(enum hook hook, void *handle, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  enum share_kind kind = handle ? share_kind_of(is_outermost, ptr, &block) : SHARE_FOREIGN;
  if (kind == SHARE_WHOLE) ptr = block_start(&block); /* the driver's handle is of the whole, too */
  if (handle && is_outermost && kind == SHARE_FOREIGN && share_is_mapped(hook, ptr))
    return reentry_finish(
        hook, OUTCOME_FAILED,
        failure_refuse(hook, HIPMM_HIP_ERROR_NOT_SUPPORTED,
                       "%p is mapped memory, for which HIP has no such handles; export its own handle "
                       "with hipMemExportToShareableHandle",
                       ptr));
  if (kind < SHARE_PART) return reentry_finish(hook, OUTCOME_PASSED, next_two_pointers(hook, handle, ptr));
  int code = kind == SHARE_PART ? share_get_part(hook, handle, &block, ptr)
                                : failure_set(hook_family(hook), HIPMM_HIP_ERROR_INVALID_VALUE);
  return reentry_finish(hook, code ? OUTCOME_FAILED : OUTCOME_SERVED, code);
}

int share_export(enum hook hook, void *data, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if (share_kind_of(is_outermost, ptr, &block) != SHARE_PART)
    return reentry_finish(hook, OUTCOME_PASSED, next_two_pointers(hook, data, ptr));
  int code = failure_refuse(hook, HIPMM_HIP_ERROR_NOT_SUPPORTED,
                            "%p lies in a larger allocation of %s, and not in a pool of the driver; allocate it from a "
                            "pool that was created with a handle type",
                            ptr, hipmm_resource_name(block.served->resources[block.kind]));
  return reentry_finish(hook, OUTCOME_FAILED, code);
}

/* ---- Opening handles ---- */

/* A pointer that the program got for a handle. */
struct share_opened {
  struct share_opened *next;
  struct ipc_handle driver; /* of the allocation */
  int device;
  char *base; /* of the allocation, in this process */
  uint64_t offset;
  unsigned count;                  /* how often it was opened */
  struct hipmm_resource *resource; /* of mapped memory, which it imported as a block of so many bytes; else NULL */
  size_t bytes;
};

static struct share_opened *all_opened;

typedef int open_function(void **ptr, struct ipc_handle handle, unsigned flags);

/* False if the process that made the handle has ended, or may not be read. */
static bool share_read_record(const struct share_handle *handle, struct share_record *record_out)
{
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)handle->process, (int)handle->file);
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return false;
  bool is_good = !fstat(file, &status) && S_ISREG(status.st_mode) &&
                 pread(file, record_out, sizeof *record_out, (off_t)handle->record) == (ssize_t)sizeof *record_out &&
                 record_out->tag == handle->tag && handle->offset < record_out->bytes;
  close(file);
  return is_good;
}

/* The entry of the allocation, at any offset; NULL if it is not open. */
static struct share_opened *share_find_allocation(const struct ipc_handle *driver, int device)
{
  struct share_opened *at = all_opened;
  while (at && (at->device != device || memcmp(&at->driver, driver, sizeof *driver) != 0)) at = at->next;
  return at;
}

static struct share_opened *share_find_pointer(const char *ptr)
{
  struct share_opened *at = all_opened;
  while (at && at->base + at->offset != ptr) at = at->next;
  return at;
}

/* Imports the block of a handle into a resource that is made for it. */
static int share_import(enum hook hook, const struct share_record *record, int device, struct share_opened *opened)
{
  void *ptr = NULL;
  struct hipmm_share_pointer pointer = {.magic = HIPMM_SHARE_MAGIC,
                                        .version = HIPMM_SHARE_VERSION,
                                        .struct_size = sizeof pointer,
                                        .bytes = record->bytes};
  memcpy(pointer.data, &record->driver, sizeof pointer.data);
  enum hipmm_status status = hipmm_resource_create(device, "device", NULL, NULL, 0, &opened->resource);
  if (!status) status = hipmm_share_import_pointer(opened->resource, &pointer, &ptr);
  opened->base = ptr;
  opened->bytes = record->bytes;
  if (!status) return 0;
  int code = failure_refuse(hook,
                            status == HIPMM_E_OUT_OF_MEMORY ? HIPMM_HIP_ERROR_OUT_OF_MEMORY
                            : status == HIPMM_E_STATE       ? ERROR_INVALID_CONTEXT
                                                            : ERROR_MAP_FAILED,
                            "%s", hipmm_last_error_message());
  hipmm_resource_release(opened->resource);
  return code;
}

static bool share_is_of_mapped(const struct ipc_handle *handle)
{
  return !memcmp(handle, SHARE_FORMAT_MAGIC, SHARE_FORMAT_MAGIC_BYTES);
}

/* Under the lock. Opens the allocation unless it is open. */
static int share_open_locked(enum hook hook, const struct share_record *record, uint64_t offset, unsigned flags,
                             void **ptr_out)
{
  int device = contexts_current_device(hook_family(hook));
  struct share_opened opened = {.driver = record->driver, .device = device, .offset = offset};
  const struct share_opened *other = share_find_allocation(&record->driver, device);
  struct share_opened *same = other ? share_find_pointer(other->base + offset) : NULL;
  struct share_opened *added = same ? NULL : calloc(1, sizeof *added);
  if (!same && !added) return failure_refuse(hook, HIPMM_HIP_ERROR_OUT_OF_MEMORY, "no host memory is left");
  int code = 0;
  if (other)
    opened.base = other->base;
  else if (share_is_of_mapped(&record->driver))
    code = share_import(hook, record, device, &opened);
  else
    code = ((open_function *)next_function_of(hook))((void **)&opened.base, record->driver, flags);
  if (code) {
    free(added);
    return code;
  }
  if (added) {
    opened.next = all_opened;
    *added = opened;
    all_opened = same = added;
  }
  same->count++;
  *ptr_out = same->base + offset;
  return 0;
}

static int share_open_record(enum hook hook, void **ptr, const struct share_record *record, uint64_t offset,
                             unsigned flags)
{
  if (contexts_current_device(hook_family(hook)) < 0)
    return failure_refuse(hook, HIPMM_HIP_ERROR_NOT_SUPPORTED,
                          "a handle of hipmm's is opened in the primary context of a device, and another is current");
  pthread_mutex_lock(&lock);
  int code = share_open_locked(hook, record, offset, flags, ptr);
  pthread_mutex_unlock(&lock);
  return code;
}

/* The handle has the size of the block: see share_handle.h. */
static int share_open_mapped(enum hook hook, void **ptr, const struct ipc_handle *handle, unsigned flags)
{
  enum { BYTES_AT = 32 };
  struct share_record record = {.driver = *handle};
  memcpy(&record.bytes, (const char *)handle + BYTES_AT, sizeof record.bytes);
  if (!ptr || flags > 1) return failure_set(hook_family(hook), HIPMM_HIP_ERROR_INVALID_VALUE);
  if (!init_ready(hook_family(hook)))
    return failure_refuse(hook, ERROR_MAP_FAILED, "the handle is hipmm's, and hipmm does not serve this process");
  return share_open_record(hook, ptr, &record, 0, flags);
}

static int share_open_part(enum hook hook, void **ptr, const struct share_handle *handle, unsigned flags)
{
  struct share_record record;
  if (!ptr) return failure_set(hook_family(hook), HIPMM_HIP_ERROR_INVALID_VALUE);
  if (handle->process == getpid()) return failure_set(hook_family(hook), ERROR_INVALID_CONTEXT);
  if (!share_read_record(handle, &record))
    return failure_refuse(hook, ERROR_MAP_FAILED,
                          "process %d, which made the handle, has ended, or belongs to another user or container",
                          (int)handle->process);
  return share_open_record(hook, ptr, &record, handle->offset, flags);
}

int share_open(enum hook hook, void **ptr, struct ipc_handle given, unsigned flags)
{
  int code;
  struct share_handle handle;
  bool is_outermost = init_enter();
  memcpy(&handle, &given, sizeof handle);
  if (is_outermost && share_is_of_mapped(&given)) {
    SHORTAGE_REPEAT(hook, true, code, share_open_mapped(hook, ptr, &given, flags));
    return reentry_finish(hook, code ? OUTCOME_FAILED : OUTCOME_SERVED, code);
  }
  if (!is_outermost || memcmp(handle.magic, magic, sizeof magic) != 0) {
    SHORTAGE_REPEAT(hook, is_outermost, code, ((open_function *)next_function_of(hook))(ptr, given, flags));
    return reentry_finish(hook, OUTCOME_PASSED, code);
  }
  SHORTAGE_REPEAT(hook, true, code, share_open_part(hook, ptr, &handle, flags));
  return reentry_finish(hook, code ? OUTCOME_FAILED : OUTCOME_SERVED, code);
}

/* Unmaps what was imported, once no work of the device can use it. */
static int share_drop_import(enum hook hook, const struct share_opened *opened)
{
  int previous = hip_enter_device(opened->device);
  int code = hip_table()->DeviceSynchronize();
  hip_leave_device(opened->device, previous);
  if (code) return failure_of_call(hook, code);
  if (hipmm_deallocate(opened->resource, opened->base, opened->bytes, NULL)) return failure_of_hipmm(hook, 0);
  hipmm_resource_release(opened->resource);
  return 0;
}

/* Removes the entry. The allocation is closed with the last of its entries. */
static int share_close_last(enum hook hook, struct share_opened *opened)
{
  struct share_opened **link = &all_opened;
  while (*link != opened) link = &(*link)->next;
  *link = opened->next;
  int code = 0;
  if (opened->resource)
    code = share_drop_import(hook, opened);
  else if (!share_find_allocation(&opened->driver, opened->device))
    code = next_pointer(hook, opened->base);
  if (code) {
    opened->next = all_opened;
    all_opened = opened;
    return code;
  }
  free(opened);
  return 0;
}

int share_close(enum hook hook, void *ptr)
{
  if (!init_enter()) return reentry_finish(hook, OUTCOME_PASSED, next_pointer(hook, ptr)); /* the lock may be held */
  pthread_mutex_lock(&lock);
  struct share_opened *opened = share_find_pointer(ptr);
  int code = 0;
  if (opened && opened->count > 1)
    opened->count--;
  else if (opened)
    code = share_close_last(hook, opened);
  pthread_mutex_unlock(&lock);
  if (!opened) code = next_pointer(hook, ptr);
  return reentry_finish(hook, opened ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}

void share_close_imports(int device)
{
  pthread_mutex_lock(&lock);
  for (struct share_opened **link = &all_opened, *at; (at = *link);) {
    if (at->resource && (device < 0 || at->device == device) && !share_drop_import(HOOK_hipIpcCloseMemHandle, at)) {
      *link = at->next;
      free(at);
    } else {
      link = &at->next;
    }
  }
  pthread_mutex_unlock(&lock);
}

/* The runtime has forgotten all that was opened on the device. */
void share_forget(int device)
{
  pthread_mutex_lock(&lock);
  for (struct share_opened **link = &all_opened, *at; (at = *link);) {
    if (at->device == device) {
      *link = at->next;
      free(at);
    } else {
      link = &at->next;
    }
  }
  pthread_mutex_unlock(&lock);
}
