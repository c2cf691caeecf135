/* SPDX-License-Identifier: MIT */
/* memory.c: see served.h. Each chunk is filled with zeros when it is created: a driver may give it memory that another store had.
 * A chunk has one mapping. The handle of an imported chunk, and those of a committed store, are released at once, so that nothing
 * in this process maps the memory again. */
#include "served.h"

#include <stdlib.h>
#include <string.h>

/* AMD's granule is a page, and a chunk takes a descriptor. A chunk for small blocks is as large as all before it, up to the second. */
enum { SERVED_LEAST_GRANULE = 2 << 20, SERVED_CHUNK_BYTES = 16 << 20 };

enum hipmm_status served_memory_reserve(struct served *served, uint64_t bytes)
{
  const struct hipmm_services *services = served->services;
  void *start;
  int code = services->hip->MemGetAllocationGranularity(&served->granule, services->device);
  if (code) return services->refuse_hip(services, "hipMemGetAllocationGranularity", code, 0);
  if (served->granule < SERVED_LEAST_GRANULE) served->granule = SERVED_LEAST_GRANULE;
  if (!served->chunks) served->chunks = calloc(SERVE_MOST_CHUNKS, sizeof *served->chunks);
  if (!served->chunks) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for its chunks");
  size_t room = (bytes + served->granule - 1) / served->granule * served->granule;
  code = services->hip->MemAddressReserve(&start, room, 0);
  if (code) return services->refuse_hip(services, "hipMemAddressReserve", code, room);
  served->start = start;
  served->room = room;
  return HIPMM_OK;
}

/* On a stream of its own, so that a graph capture of the program's does not forbid it. After a failure the work is over, or can
 * not be waited for. */
static int served_memory_zero(struct served *served, void *ptr, size_t bytes)
{
  const struct hipmm_hip *hip = served->services->hip;
  int code =
      served->stream ? HIPMM_HIP_SUCCESS : hip->StreamCreateWithFlags(&served->stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (!code) code = hip->MemsetAsync(ptr, 0, bytes, served->stream);
  if (code || !(code = hip->StreamSynchronize(served->stream))) return code;
  hip->StreamSynchronize(served->stream); /* the second attempt often helps */
  return code;
}

/* Maps the chunk behind the others. After a failure it is not mapped, and still the caller's. */
static int served_memory_map(struct served *served, struct served_chunk chunk, bool is_read_only)
{
  const struct hipmm_hip *hip = served->services->hip;
  char *at = served->start + served->mapped;
  int code = hip->MemMap(at, chunk.bytes, chunk.handle);
  if (code) return code;
  code = (is_read_only ? hip->MemSetAccessRead : hip->MemSetAccess)(at, chunk.bytes, served->services->device);
  if (!code && !is_read_only) code = served_memory_zero(served, at, chunk.bytes);
  if (code && hip->MemUnmap(at, chunk.bytes)) hip->MemUnmap(at, chunk.bytes);
  if (code) return code;
  served->chunks[served->n_chunks++] = chunk;
  served->mapped += chunk.bytes;
  return HIPMM_HIP_SUCCESS;
}

static int served_memory_add(struct served *served, size_t bytes)
{
  const struct hipmm_hip *hip = served->services->hip;
  struct served_chunk chunk = {.bytes = bytes};
  int code = hip->MemCreateShared(&chunk.handle, bytes, served->services->device);
  if (code) return code;
  code = served_memory_map(served, chunk, false);
  if (code && hip->MemRelease(chunk.handle)) hip->MemRelease(chunk.handle);
  return code;
}

enum hipmm_status served_memory_grow(struct served *served, size_t end)
{
  const struct hipmm_services *services = served->services;
  if (end <= served->mapped) return HIPMM_OK;
  if (served->n_chunks == SERVE_MOST_CHUNKS)
    return services->refuse(services, HIPMM_E_LIMIT,
                            "a store has at most {0} chunks on a device, one for {1:bytes} of small blocks, or for a "
                            "larger block; allocate larger blocks",
                            SERVE_MOST_CHUNKS, SERVED_CHUNK_BYTES, 0);
  size_t least = (end - served->mapped + served->granule - 1) / served->granule * served->granule;
  size_t usual =
      served->mapped < SERVED_CHUNK_BYTES ? served->mapped : SERVED_CHUNK_BYTES / served->granule * served->granule;
  size_t bytes = least > usual || served->room - served->mapped < usual ? least : usual;
  if (bytes > served->room - served->mapped)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                            "{0:bytes} more do not fit: the store has {1:bytes}, and the device {2:bytes}", least,
                            served->mapped, served->room);
  int code = served_memory_add(served, bytes);
  if (code == HIPMM_HIP_ERROR_OUT_OF_MEMORY && bytes > least) {
    services->hip->GetLastError();
    code = served_memory_add(served, bytes = least);
  }
  return code ? services->refuse_hip(services, "hipMemCreate", code, bytes) : HIPMM_OK;
}

enum hipmm_status served_memory_import(struct served *served, int file, uint64_t bytes)
{
  const struct hipmm_services *services = served->services;
  const struct hipmm_hip *hip = services->hip;
  struct served_chunk chunk = {.bytes = bytes};
  if (bytes % served->granule || bytes > served->room - served->mapped || served->n_chunks == SERVE_MOST_CHUNKS)
    return services->fail(services, HIPMM_E_IO, NULL, "the store's server has sent chunks that are not sound");
  int code = hip->MemImport(&chunk.handle, file);
  if (code) return services->refuse_hip(services, "hipMemImportFromShareableHandle", code, bytes);
  code = served_memory_map(served, chunk, true);
  if (hip->MemRelease(chunk.handle) && hip->MemRelease(chunk.handle)) /* the second attempt often helps */
    services->log(services, HIPMM_LOG_ERROR, "an imported handle of %llu bytes could not be released: it is lost",
                  (unsigned long long)bytes);
  if (code) return services->refuse_hip(services, "hipMemMap", code, bytes);
  served->chunks[served->n_chunks - 1].handle = NULL;
  return HIPMM_OK;
}

enum hipmm_status served_memory_protect(struct served *served, bool is_read_only)
{
  const struct hipmm_services *services = served->services;
  const struct hipmm_hip *hip = services->hip;
  int code =
      (is_read_only ? hip->MemSetAccessRead : hip->MemSetAccess)(served->start, served->mapped, services->device);
  return code ? services->refuse_hip(services, "hipMemSetAccess", code, served->mapped) : HIPMM_OK;
}

void served_memory_drop_handles(struct served *served)
{
  const struct hipmm_services *services = served->services;
  for (uint32_t i = 0; i < served->n_chunks; i++) {
    struct served_chunk *chunk = &served->chunks[i];
    if (chunk->handle && services->hip->MemRelease(chunk->handle) && services->hip->MemRelease(chunk->handle))
      services->log(services, HIPMM_LOG_ERROR, "a handle of %zu bytes could not be released: it is lost", chunk->bytes);
    chunk->handle = NULL;
  }
}

void served_memory_release(struct served *served)
{
  const struct hipmm_services *services = served->services;
  const struct hipmm_hip *hip = services->hip;
  served_memory_drop_handles(served);
  while (served->n_chunks) {
    size_t bytes = served->chunks[--served->n_chunks].bytes;
    served->mapped -= bytes;
    if (hip->MemUnmap(served->start + served->mapped, bytes) && hip->MemUnmap(served->start + served->mapped, bytes))
      services->log(services, HIPMM_LOG_ERROR, "a mapping of %zu bytes could not be removed: it is lost", bytes);
  }
  if (served->start && hip->MemAddressFree(served->start, served->room))
    hip->MemAddressFree(served->start, served->room);
  if (served->stream && hip->StreamDestroy(served->stream)) hip->StreamDestroy(served->stream);
  hip->GetLastError();
  free(served->chunks);
  served->chunks = NULL;
  served->stream = NULL;
  served->start = NULL;
  served->room = served->mapped = served->top = 0;
}
