/* SPDX-License-Identifier: MIT */
/* probes_mapping.c: the driver's virtual memory: addresses that are reserved, and physical memory that is mapped there. */
#include "probes.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAPPING_MOST_CHUNKS = 8, MAPPING_DELAY_MS = 100, MAPPING_RELEASE_BYTES = 64 << 20, MAPPING_ROUNDS = 8 };

enum { MAPPING_MOST_PARTS = 64 };

struct mapping_part {
  void *at;
  size_t bytes;
};

struct mapping {
  size_t granularity;
  size_t bytes; /* reserved */
  char *start;
  struct mapping_part parts[MAPPING_MOST_PARTS]; /* that are mapped */
  size_t n_parts;
};

static bool mapping_is_absent(const struct probe_context *context, size_t *granularity_out)
{
  const struct hipmm_hip *hip = context->hip;
  if (!hip->MemGetAllocationGranularity || !hip->MemAddressReserve || !hip->MemCreate || !hip->MemMap ||
      !hip->MemUnmap || !hip->MemSetAccess || !hip->MemRelease || !hip->MemAddressFree)
    return true;
  if (!hip->MemGetAllocationGranularity(granularity_out, context->device)) return false;
  (void)hip->GetLastError();
  return true;
}

static bool mapping_map(struct probe_context *context, struct mapping *mapping, void *at, size_t bytes,
                        hipmm_hip_chunk_t chunk)
{
  const struct hipmm_hip *hip = context->hip;
  if (!probe_call(context, "MemMap", hip->MemMap(at, bytes, chunk))) return false;
  mapping->parts[mapping->n_parts++] = (struct mapping_part){at, bytes};
  return probe_call(context, "MemSetAccess", hip->MemSetAccess(at, bytes, context->device));
}

/* Unmaps all that is mapped in the range, with one call. */
static bool mapping_unmap(struct probe_context *context, struct mapping *mapping, char *at, size_t bytes)
{
  size_t kept = 0;
  if (!probe_call(context, "MemUnmap", context->hip->MemUnmap(at, bytes))) return false;
  for (size_t i = 0; i < mapping->n_parts; i++) {
    char *part = mapping->parts[i].at;
    if (part < at || part >= at + bytes) mapping->parts[kept++] = mapping->parts[i];
  }
  mapping->n_parts = kept;
  return true;
}

static bool mapping_fill(struct probe_context *context, void *at, int value, size_t bytes)
{
  const struct hipmm_hip *hip = context->hip;
  return probe_call(context, "MemsetAsync", hip->MemsetAsync(at, value, bytes, NULL)) &&
         probe_call(context, "StreamSynchronize", hip->StreamSynchronize(NULL));
}

/* Runs a probe with `units` granules of reserved addresses. */
static enum probe_verdict mapping_probe(struct probe_context *context, size_t units,
                                        bool (*run)(struct probe_context *context, struct mapping *mapping))
{
  const struct hipmm_hip *hip = context->hip;
  struct mapping mapping = {0};
  void *start = NULL;
  if (mapping_is_absent(context, &mapping.granularity)) return PROBE_ABSENT;
  mapping.bytes = units * mapping.granularity;
  if (!probe_call(context, "MemAddressReserve", hip->MemAddressReserve(&start, mapping.bytes, 0))) return PROBE_BAD;
  mapping.start = start;
  bool good = run(context, &mapping);
  while (mapping.n_parts > 0) { /* what a probe that failed has left */
    const struct mapping_part *part = &mapping.parts[--mapping.n_parts];
    (void)hip->MemUnmap(part->at, part->bytes);
  }
  int code = hip->MemAddressFree(start, mapping.bytes);
  if (good) good = probe_call(context, "MemAddressFree", code);
  return good ? PROBE_GOOD : PROBE_BAD;
}

/* ---- Data ---- */

static bool mapping_data_once(struct probe_context *context, struct mapping *mapping, hipmm_hip_chunk_t chunk,
                              int value)
{
  size_t bytes = mapping->granularity;
  char *other = mapping->start + bytes;
  return mapping_map(context, mapping, mapping->start, bytes, chunk) &&
         mapping_fill(context, mapping->start, value, bytes) &&
         probe_holds(context, "memory that was just mapped", mapping->start, bytes, value) &&
         mapping_unmap(context, mapping, mapping->start, bytes) && mapping_map(context, mapping, other, bytes, chunk) &&
         probe_holds(context, "memory that was mapped elsewhere", other, bytes, value) &&
         mapping_unmap(context, mapping, other, bytes);
}

static bool mapping_data(struct probe_context *context, struct mapping *mapping)
{
  hipmm_hip_chunk_t chunk;
  bool good = true;
  if (!probe_call(context, "MemCreate", context->hip->MemCreate(&chunk, mapping->granularity, context->device)))
    return false;
  for (int round = 0; good && round < MAPPING_ROUNDS; round++)
    good = mapping_data_once(context, mapping, chunk, 0x51 + round);
  return probe_call(context, "MemRelease", context->hip->MemRelease(chunk)) && good;
}

enum probe_verdict probe_mapping_data(struct probe_context *context)
{
  return mapping_probe(context, 2, mapping_data);
}

static bool mapping_alias(struct probe_context *context, struct mapping *mapping)
{
  size_t bytes = mapping->granularity;
  char *other = mapping->start + bytes;
  hipmm_hip_chunk_t chunk;
  if (!probe_call(context, "MemCreate", context->hip->MemCreate(&chunk, bytes, context->device))) return false;
  bool good =
      mapping_map(context, mapping, mapping->start, bytes, chunk) &&
      mapping_map(context, mapping, other, bytes, chunk) && mapping_fill(context, mapping->start, 1, bytes) &&
      mapping_fill(context, other, 2, bytes) &&
      probe_holds(context, "the first address of memory that was written at its second", mapping->start, bytes, 2) &&
      mapping_unmap(context, mapping, mapping->start, bytes) && mapping_unmap(context, mapping, other, bytes);
  return probe_call(context, "MemRelease", context->hip->MemRelease(chunk)) && good;
}

enum probe_verdict probe_mapping_alias(struct probe_context *context)
{
  return mapping_probe(context, 2, mapping_alias);
}

/* ---- Sizes ---- */

/* Maps chunks of 1 to `n` granules side by side, and unmaps all with one call. */
static bool mapping_access_of(struct probe_context *context, struct mapping *mapping, size_t n)
{
  size_t at = 0;
  bool good = true;
  for (size_t i = 1; good && i <= n; i++) {
    hipmm_hip_chunk_t chunk;
    size_t bytes = i * mapping->granularity;
    good = probe_call(context, "MemCreate", context->hip->MemCreate(&chunk, bytes, context->device));
    if (!good) break;
    good = mapping_map(context, mapping, mapping->start + at, bytes, chunk);
    good = probe_call(context, "MemRelease", context->hip->MemRelease(chunk)) && good; /* the mapping keeps it */
    at += bytes;
  }
  return good && mapping_fill(context, mapping->start, (int)n, at) &&
         probe_holds(context, "chunks side by side", mapping->start, at, (int)n) &&
         mapping_unmap(context, mapping, mapping->start, at);
}

static bool mapping_access(struct probe_context *context, struct mapping *mapping)
{
  bool good = true;
  for (size_t n = 1; good && n <= MAPPING_MOST_CHUNKS; n++) good = mapping_access_of(context, mapping, n);
  return good;
}

enum probe_verdict probe_mapping_access(struct probe_context *context)
{
  return mapping_probe(context, MAPPING_MOST_CHUNKS * (MAPPING_MOST_CHUNKS + 1) / 2, mapping_access);
}

/* ---- Release ---- */

static bool mapping_release(struct probe_context *context, struct mapping *mapping)
{
  const struct hipmm_hip *hip = context->hip;
  hipmm_hip_chunk_t chunk;
  if (!probe_call(context, "MemCreate", hip->MemCreate(&chunk, mapping->bytes, context->device))) return false;
  bool good = mapping_map(context, mapping, mapping->start, mapping->bytes, chunk) &&
              mapping_fill(context, mapping->start, 1, mapping->bytes);
  size_t during = probe_free_bytes(context);
  good = good && mapping_unmap(context, mapping, mapping->start, mapping->bytes);
  good = probe_call(context, "MemRelease", hip->MemRelease(chunk)) && good;
  size_t after = probe_free_bytes(context);
  if (good && after < during + mapping->bytes / 2) {
    probe_bad(context, "%zu MiB were released, and %zu MiB more are free", mapping->bytes >> 20,
              after > during ? (after - during) >> 20 : 0);
    return false;
  }
  return good;
}

enum probe_verdict probe_mapping_release(struct probe_context *context)
{
  size_t granularity;
  if (mapping_is_absent(context, &granularity)) return PROBE_ABSENT;
  if (probe_free_bytes(context) < 2 * (size_t)MAPPING_RELEASE_BYTES) return PROBE_ABSENT;
  return mapping_probe(context, (MAPPING_RELEASE_BYTES + granularity - 1) / granularity, mapping_release);
}

/* ---- Files ---- */

/* The lowest descriptor that is not in use. */
static int mapping_next_file(void)
{
  int next = dup(STDERR_FILENO);
  close(next);
  return next;
}

/* The driver may open files of its own for the first chunk. */
static bool mapping_files(struct probe_context *context, struct mapping *mapping)
{
  const struct hipmm_hip *hip = context->hip;
  hipmm_hip_chunk_t chunks[MAPPING_MOST_CHUNKS];
  int n = 0, first = 0;
  bool good = true;
  while (n < MAPPING_MOST_CHUNKS && good) {
    good = probe_call(context, "MemCreate", hip->MemCreate(&chunks[n], mapping->granularity, context->device));
    if (good && !n++) first = mapping_next_file();
  }
  bool are_taken = mapping_next_file() != first;
  while (n > 0) good = probe_call(context, "MemRelease", hip->MemRelease(chunks[--n])) && good;
  if (!good || !are_taken) return good;
  struct rlimit limit = {0};
  getrlimit(RLIMIT_NOFILE, &limit);
  probe_bad(context, "pieces of %zu KiB took descriptors; this process may open %llu files", mapping->granularity >> 10,
            (unsigned long long)limit.rlim_cur);
  return false;
}

enum probe_verdict probe_mapping_files(struct probe_context *context)
{
  return mapping_probe(context, 1, mapping_files);
}

/* ---- Other devices ---- */

/* The lowest device that can reach the memory of this one; -1: there is none. */
static int mapping_find_peer(const struct probe_context *context)
{
  const struct hipmm_hip *hip = context->hip;
  int n_devices = 0, reaches = 0;
  if (!hip->DeviceCanAccessPeer || hip->GetDeviceCount(&n_devices)) return -1;
  for (int peer = 0; peer < n_devices; peer++)
    if (peer != context->device && !hip->DeviceCanAccessPeer(&reaches, peer, context->device) && reaches) return peer;
  return -1;
}

static bool mapping_peers(struct probe_context *context, struct mapping *mapping)
{
  const struct hipmm_hip *hip = context->hip;
  hipmm_hip_chunk_t chunk;
  size_t bytes = mapping->granularity;
  if (!probe_call(context, "MemCreate", hip->MemCreate(&chunk, bytes, context->device))) return false;
  bool good =
      mapping_map(context, mapping, mapping->start, bytes, chunk) &&
      probe_call(context, "MemSetAccess", hip->MemSetAccess(mapping->start, bytes, mapping_find_peer(context))) &&
      mapping_fill(context, mapping->start, 0x35, bytes) &&
      probe_holds(context, "memory that another device got access to", mapping->start, bytes, 0x35) &&
      mapping_unmap(context, mapping, mapping->start, bytes);
  return probe_call(context, "MemRelease", hip->MemRelease(chunk)) && good;
}

enum probe_verdict probe_mapping_peers(struct probe_context *context)
{
  if (mapping_find_peer(context) < 0) return PROBE_ABSENT;
  return mapping_probe(context, 1, mapping_peers);
}

/* ---- Waiting ---- */

static double mapping_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Whether a stream is busy all the time that it takes to map and unmap. */
static bool mapping_wait(struct probe_context *context, struct mapping *mapping)
{
  const struct hipmm_hip *hip = context->hip;
  hipmm_stream_t stream;
  hipmm_hip_chunk_t chunk;
  unsigned delay = MAPPING_DELAY_MS;
  if (!probe_call(context, "StreamCreate", hip->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING)))
    return false;
  bool good = probe_call(context, "MemCreate", hip->MemCreate(&chunk, mapping->granularity, context->device));
  if (good) {
    good = probe_delay(context, stream, &delay);
    double start = mapping_seconds();
    good = good && mapping_map(context, mapping, mapping->start, mapping->granularity, chunk) &&
           mapping_unmap(context, mapping, mapping->start, mapping->granularity);
    double spent = mapping_seconds() - start;
    good = probe_call(context, "StreamSynchronize", hip->StreamSynchronize(stream)) && good;
    good = probe_call(context, "MemRelease", hip->MemRelease(chunk)) && good;
    if (good && spent > MAPPING_DELAY_MS / 2e3) {
      probe_bad(context, "mapping took %.0f ms while another stream was busy for %d ms", spent * 1e3, MAPPING_DELAY_MS);
      good = false;
    }
  }
  (void)hip->StreamDestroy(stream);
  return good;
}

enum probe_verdict probe_mapping_wait(struct probe_context *context)
{
  if (!context->hip->LaunchHostFunc) return PROBE_ABSENT;
  return mapping_probe(context, 1, mapping_wait);
}
