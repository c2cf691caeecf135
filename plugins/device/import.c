/* SPDX-License-Identifier: MIT */
/* import.c: see device.h. Each import reserves addresses of its own and maps the chunks there, one behind the other. The
 * imported handles are released at once: a mapping keeps its memory. */
#include "device.h"

#include "../common/share_handle.h"

#include <hipmm/share.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct device_import {
  struct device_import *next;
  char *start; /* of the addresses */
  size_t bytes;
  size_t n_mapped, mapped_bytes; /* parts that are mapped, the first ones */
  const void *ptr;               /* of the block */
  uint64_t part_bytes[];
};

/* From the last part on, so that a second attempt goes on where the first one failed. */
static enum hipmm_status import_unmap(struct device *device, struct device_import *import)
{
  enum hipmm_status status = HIPMM_OK;
  while (import->n_mapped && !status) {
    uint64_t bytes = import->part_bytes[import->n_mapped - 1];
    status = device_mapping.unmap(device, import->start + import->mapped_bytes - bytes, bytes);
    if (status) break;
    import->mapped_bytes -= bytes;
    import->n_mapped--;
  }
  return status ? status : device_mapping.unreserve(device, import->start, import->bytes);
}

static enum hipmm_status import_map_part(struct device *device, struct device_import *import,
                                         const struct hipmm_share_part *part)
{
  const struct hipmm_services *services = device->source.services;
  hipmm_hip_chunk_t chunk = NULL;
  int code = services->hip->MemImport(&chunk, part->fd);
  if (code) return services->refuse_hip(services, "hipMemImportFromShareableHandle", code, part->bytes);
  enum hipmm_status status = device_mapping.map(device, import->start + import->mapped_bytes, part->bytes, chunk);
  if (services->hip->MemRelease(chunk) && services->hip->MemRelease(chunk)) /* the second attempt often helps */
    services->log(services, HIPMM_LOG_ERROR, "an imported handle of %llu bytes could not be released: it is lost",
                  (unsigned long long)part->bytes);
  if (status) return status;
  import->part_bytes[import->n_mapped++] = part->bytes;
  import->mapped_bytes += part->bytes;
  return HIPMM_OK;
}

static enum hipmm_status import_check(const struct device *device, const struct hipmm_share_block *block,
                                      const struct hipmm_share_part *parts)
{
  const struct hipmm_services *services = device->source.services;
  size_t granule_bytes = 0;
  enum hipmm_status status = device_mapping.granularity((void *)(uintptr_t)device, &granule_bytes);
  if (!status)
    status = source_require_function(services, services->hip->MemImport != NULL, "hipMemImportFromShareableHandle");
  for (uint64_t i = 0; !status && i < block->n_parts; i++)
    if (parts[i].bytes % granule_bytes)
      status = services->fail(services, HIPMM_E_ARGUMENT, NULL, "parts[%llu] has %llu bytes, not a multiple of %zu",
                              (unsigned long long)i, (unsigned long long)parts[i].bytes, granule_bytes);
  return status;
}

/* Maps all parts; on failure none is left mapped. */
static enum hipmm_status import_map(struct device *device, struct device_import *import,
                                    const struct hipmm_share_block *block, const struct hipmm_share_part *parts)
{
  void *start = NULL;
  for (uint64_t i = 0; i < block->n_parts; i++) import->bytes += parts[i].bytes;
  enum hipmm_status status = device_mapping.reserve(device, import->bytes, &start);
  if (status) return status;
  import->start = start;
  import->ptr = import->start + block->offset;
  for (uint64_t i = 0; i < block->n_parts && !status; i++) status = import_map_part(device, import, &parts[i]);
  if (!status)
    status = device->source.services->track(device->source.services, import->start + block->offset, block->bytes);
  if (status) import_unmap(device, import);
  return status;
}

static void import_enter(struct device *device, struct device_import *import)
{
  pthread_mutex_lock(&device->source.lock);
  import->next = atomic_load(&device->imports);
  atomic_store(&device->imports, import);
  pthread_mutex_unlock(&device->source.lock);
}

static enum hipmm_status import_block(void *self, const struct hipmm_share_block *block,
                                      const struct hipmm_share_part *parts, void **ptr_out)
{
  struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  enum hipmm_status status = import_check(device, block, parts);
  if (status) return status;
  struct device_import *import = calloc(1, sizeof *import + block->n_parts * sizeof *import->part_bytes);
  if (!import) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory to record the import");
  int previous = services->enter_device(services);
  status = import_map(device, import, block, parts);
  services->leave_device(services, previous);
  if (!status) {
    import_enter(device, import);
    *ptr_out = (void *)(uintptr_t)import->ptr;
  } else {
    free(import);
  }
  return status;
}

static struct device_import *import_extract(struct device *device, const void *ptr)
{
  struct device_import *import, *before = NULL;
  pthread_mutex_lock(&device->source.lock);
  for (import = atomic_load(&device->imports); import && import->ptr != ptr; import = import->next) before = import;
  if (import && before) before->next = import->next;
  if (import && !before) atomic_store(&device->imports, import->next);
  pthread_mutex_unlock(&device->source.lock);
  return import;
}

bool import_release(struct device *device, const void *ptr, enum hipmm_status *status_out)
{
  if (!atomic_load(&device->imports)) return false;
  struct device_import *import = import_extract(device, ptr);
  *status_out = HIPMM_OK;
  if (!import) return false;
  *status_out = import_unmap(device, import);
  if (*status_out)
    import_enter(device, import); /* the block stays */
  else
    free(import);
  return true;
}

/* ---- Handles ---- */

/* Whether this device may reach the memory. A handle names the memory's device. The driver decides about devices that this
 * process does not see. */
static bool import_may_reach(const struct hipmm_services *services, const unsigned char uuid[16])
{
  static const unsigned char unknown[16];
  unsigned char own[16] = {0}, other[16] = {0};
  const struct hipmm_hip *hip = services->hip;
  int n_devices = 0, can_access = 1;
  if (!hip->DeviceGetUuid || !memcmp(uuid, unknown, sizeof unknown) || hip->DeviceGetUuid(own, services->device) ||
      !memcmp(own, uuid, sizeof own) || hip->GetDeviceCount(&n_devices))
    return true;
  for (int i = 0; i < n_devices; i++)
    if (!hip->DeviceGetUuid(other, i) && !memcmp(other, uuid, sizeof other) &&
        hip->DeviceCanAccessPeer(&can_access, services->device, i))
      return true;
  return can_access != 0;
}

/* Numbers of another process can be anything. The driver compares the sizes of the parts with its own. */
static bool import_answers(const struct share_handle *handle, const struct peer_message *message,
                           const struct peer_files *files, struct hipmm_share_block *block_out,
                           struct hipmm_share_part parts_out[PEER_MOST_FILES])
{
  struct share_answer answer;
  uint64_t bytes = 0;
  if (message->header.bytes != sizeof answer) return false;
  memcpy(&answer, message->data, sizeof answer);
  if (!files->count || answer.block.n_parts != files->count || answer.block.bytes != handle->bytes ||
      answer.block.offset != handle->offset)
    return false;
  for (unsigned i = 0; i < files->count; i++) {
    if (!answer.part_bytes[i] || answer.part_bytes[i] > SIZE_MAX / 2 - bytes) return false;
    bytes += answer.part_bytes[i];
    parts_out[i] = (struct hipmm_share_part){.bytes = answer.part_bytes[i], .fd = files->files[i]};
  }
  *block_out = answer.block;
  return handle->offset % HIPMM_ALIGNMENT == 0 && handle->bytes && handle->offset < bytes &&
         handle->bytes <= bytes - handle->offset;
}

static enum hipmm_status import_open(struct device *device, const struct share_handle *handle, void **ptr_out)
{
  const struct hipmm_services *services = device->source.services;
  struct hipmm_share_block block;
  struct hipmm_share_part parts[PEER_MOST_FILES];
  struct peer_message message = {.header = {.kind = PEER_BLOCK, .bytes = sizeof handle->id}};
  struct peer_files files = {.count = PEER_MOST_FILES};
  char reason[PEER_REASON_BYTES];
  memcpy(message.data, &handle->id, sizeof handle->id);
  if (!peer_ask(&handle->owner, &message, &files, PEER_PATIENCE_S, reason))
    return services->fail(services, HIPMM_E_IO, NULL, "the handle cannot be opened: %s", reason);
  enum hipmm_status status =
      import_answers(handle, &message, &files, &block, parts)
          ? import_block(device, &block, parts, ptr_out)
          : services->fail(services, HIPMM_E_IO, NULL, "the handle cannot be opened: process %d sent another block",
                           (int)handle->owner.process);
  peer_files_close(&files);
  return status;
}

static enum hipmm_status import_pointer(void *self, const struct hipmm_share_pointer *pointer, void **ptr_out)
{
  struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  struct share_handle handle;
  memcpy(&handle, pointer->data, sizeof handle);
  if (memcmp(handle.magic, SHARE_FORMAT_MAGIC, sizeof handle.magic) != 0 || handle.bytes != pointer->bytes)
    return services->fail(services, HIPMM_E_ARGUMENT, NULL,
                          "the pointer is not of a block in mapped memory; import a driver's pool in async_import");
  if (handle.owner.process == getpid())
    return services->fail(services, HIPMM_E_STATE, NULL, "this process made the handle; use the block itself");
  if (!import_may_reach(services, handle.device))
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "device %d cannot access the memory of the handle's device", services->device);
  return import_open(device, &handle, ptr_out);
}

const struct hipmm_sharing device_sharing = {
    .struct_size = sizeof device_sharing, .import_pointer = import_pointer, .import_block = import_block};
