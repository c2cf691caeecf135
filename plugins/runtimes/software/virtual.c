/* SPDX-License-Identifier: MIT */
/* virtual.c: virtual memory management: reservations of address space, and mappings of physical memory in them. Called
 * by applications. mapping.c has the tables of both.
 *
 * A mapping is not accessible until hipMemSetAccess. The host then has the access of the device that has most, or that of its
 * own location. Neither hipMemMap nor hipMemUnmap waits for work. HIP does not promise that hipMemUnmap waits, so a pending operation on memory
 * that is unmapped is a fault. */
#include "virtual.h"
#include <stdlib.h>
#include <sys/mman.h>

/* ---- Reservations ---------------------------------------------------------------------------------------------- */

/* Reserves more than requested and releases both ends, to align; NULL when there is no address space. */
static void *virtual_reserve(size_t bytes, size_t alignment)
{
  size_t larger = bytes + alignment;
  if (larger < bytes) return NULL;
  char *start = mmap(NULL, larger, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t before = (alignment - (uintptr_t)start % alignment) % alignment;
  if (before > 0) munmap(start, before);
  if (alignment > before) munmap(start + before + bytes, alignment - before);
  return start + before;
}

static hipError_t virtual_address_reserve(void **pointer_out, size_t bytes, size_t alignment)
{
  if (alignment < software.config.granularity_bytes) alignment = software.config.granularity_bytes;
  struct software_reservation *reservation = calloc(1, sizeof *reservation);
  if (!reservation) return hipErrorOutOfMemory;
  void *start = virtual_reserve(bytes, alignment);
  if (!start) {
    free(reservation);
    return hipErrorOutOfMemory;
  }
  reservation->by_address = (struct key_tree_node){.major = (uintptr_t)start, .minor = bytes};
  key_tree_insert(&software.reservations, &reservation->by_address);
  *pointer_out = start;
  return hipSuccess;
}

/* As in HIP, the address is a hint; it is ignored here. */
hipError_t hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *address, unsigned long long flags)
{
  (void)address;
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemAddressReserve);
  if (error == hipSuccess &&
      (!pointer || !software_virtual_is_granular(bytes) || (alignment & (alignment - 1)) || flags != 0))
    error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : virtual_address_reserve(pointer, bytes, alignment));
}

static void virtual_reservation_drop(struct software_reservation *reservation)
{
  key_tree_remove(&software.reservations, &reservation->by_address);
  munmap((void *)reservation->by_address.major, reservation->by_address.minor);
  free(reservation);
}

hipError_t hipMemAddressFree(void *pointer, size_t bytes)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemAddressFree);
  uintptr_t start = (uintptr_t)pointer;
  struct software_reservation *reservation = software_reservation_at(start);
  if (error == hipSuccess &&
      (!reservation || reservation->by_address.major != start || reservation->by_address.minor != bytes))
    error = hipErrorInvalidValue;
  if (error == hipSuccess && key_tree_overlapping(software.mappings, start, bytes)) error = hipErrorInvalidValue;
  if (error == hipSuccess) virtual_reservation_drop(reservation);
  return software_end(error);
}

/* ---- Mappings -------------------------------------------------------------------------------------------------- */

static bool virtual_is_free(uintptr_t start, size_t bytes)
{
  const struct software_reservation *reservation = software_reservation_at(start);
  if (!reservation || bytes > reservation->by_address.minor - (start - reservation->by_address.major)) return false;
  return !key_tree_overlapping(software.mappings, start, bytes);
}

static hipError_t virtual_map(uintptr_t start, size_t bytes, struct software_physical *physical)
{
  int fd = software_physical_file(physical);
  if (fd < 0) return hipErrorOperatingSystem;
  struct software_mapping *mapping = calloc(1, sizeof *mapping);
  if (!mapping) return hipErrorOutOfMemory;
  void *mapped =
      mmap((void *)start, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)physical->offset);
  if (mapped == MAP_FAILED) {
    free(mapping);
    return hipErrorOutOfMemory;
  }
  mapping->by_address = (struct key_tree_node){.major = start, .minor = bytes};
  mapping->physical = physical;
  mapping->sequence = software.sequence;
  physical->mappings++;
  key_tree_insert(&software.mappings, &mapping->by_address);
  software_watch_mapped(start, bytes, true);
  return hipSuccess;
}

hipError_t hipMemMap(void *pointer, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemMap);
  uintptr_t start = (uintptr_t)pointer;
  struct software_physical *physical = software_physical_of(handle);
  bool is_valid = physical && software_virtual_is_granular(bytes) && bytes <= physical->bytes && offset == 0 &&
                  flags == 0 && start % software.config.granularity_bytes == 0 && virtual_is_free(start, bytes);
  if (error == hipSuccess && !is_valid) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : virtual_map(start, bytes, physical));
}

/* Whether whole mappings, one after the other, make up [start, start + bytes). */
static bool virtual_is_whole(uintptr_t start, size_t bytes)
{
  if (bytes == 0 || bytes > UINTPTR_MAX - start) return false;
  uintptr_t at = start;
  while (at < start + bytes) {
    const struct software_mapping *mapping = software_mapping_at(at);
    if (!mapping || mapping->by_address.major != at) return false;
    at += mapping->by_address.minor;
  }
  return at == start + bytes;
}

static void virtual_mapping_drop(struct software_mapping *mapping)
{
  struct software_physical *physical = mapping->physical;
  key_tree_remove(&software.mappings, &mapping->by_address);
  free(mapping);
  physical->mappings--;
  software_physical_free_if_unused(physical);
}

/* Waits for the operations that touch the reservation now. The reservation may be freed meanwhile. */
static void virtual_wait(uintptr_t start)
{
  const struct software_reservation *reservation;
  while ((reservation = software_reservation_at(start)) && reservation->busy > 0)
    pthread_cond_wait(&software.progress, &software.lock);
}

static hipError_t virtual_unmap(uintptr_t start, size_t bytes)
{
  virtual_wait(start);
  if (!virtual_is_whole(start, bytes)) return hipErrorInvalidValue;
  void *empty = mmap((void *)start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  /* A process with all the mappings that the kernel allows (vm.max_map_count) gets no other. It can lock one it has, unless that
   * splits it: then the host, which has no business there, has access until something else is mapped there. */
  if (empty == MAP_FAILED) (void)!mprotect((void *)start, bytes, PROT_NONE);
  for (uintptr_t at = start; at < start + bytes;) {
    struct software_mapping *mapping = software_mapping_at(at);
    at += mapping->by_address.minor;
    virtual_mapping_drop(mapping);
  }
  software_watch_mapped(start, bytes, false);
  return hipSuccess;
}

hipError_t hipMemUnmap(void *pointer, size_t bytes)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemUnmap);
  return software_end(error != hipSuccess ? error : virtual_unmap((uintptr_t)pointer, bytes));
}

hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *pointer)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemRetainAllocationHandle);
  const struct software_mapping *mapping = software_mapping_at((uintptr_t)pointer);
  if (error == hipSuccess && (!handle || !mapping)) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    mapping->physical->handle_references++;
    mapping->physical->handle.live = true;
    *handle = (hipMemGenericAllocationHandle_t)mapping->physical;
  }
  return software_end(error);
}

/* ---- Access ---------------------------------------------------------------------------------------------------- */

static int virtual_protection(const struct software_mapping *mapping)
{
  int flags = mapping->host_access;
  for (int device = 0; device < SOFTWARE_MAX_DEVICES && !software.config.no_host_access; device++)
    flags |= mapping->access[device];
  return flags == 0 ? PROT_NONE : (flags & 2) ? PROT_READ | PROT_WRITE : PROT_READ;
}

/* A device that exists, or the host, hipCpuDeviceId. */
static bool virtual_location(const hipMemLocation *given, int *device_out)
{
  struct software_location location = {(int)given->type, given->id};
  return software_location_device(location, device_out) &&
         (*device_out == hipCpuDeviceId || software_device_exists(*device_out));
}

static uint8_t *virtual_access(struct software_mapping *mapping, const hipMemLocation *location)
{
  int device;
  return virtual_location(location, &device) && device >= 0 ? &mapping->access[device] : &mapping->host_access;
}

static void virtual_set_access_of(struct software_mapping *mapping, const hipMemAccessDesc *access)
{
  uint8_t *own = &mapping->access[mapping->physical->device], *given = virtual_access(mapping, &access->location);
  if (software.config.rocm_mapping && given != own) *own = hipMemAccessFlagsProtNone;
  *given = (uint8_t)access->flags;
}

static hipError_t virtual_check_access(uintptr_t start, const hipMemAccessDesc *access, size_t count)
{
  const struct software_mapping *mapping = software_mapping_at(start);
  for (size_t i = 0; i < count; i++) {
    int device;
    if (!virtual_location(&access[i].location, &device)) return hipErrorInvalidValue;
    bool is_of_host = device == hipCpuDeviceId || (mapping && mapping->physical->is_host);
    if (mapping && !is_of_host && !software_device_reaches(device, mapping->physical->device))
      return hipErrorInvalidDevice;
    if (access[i].flags != hipMemAccessFlagsProtNone && access[i].flags != hipMemAccessFlagsProtRead &&
        access[i].flags != hipMemAccessFlagsProtReadWrite)
      return hipErrorInvalidValue;
  }
  return hipSuccess;
}

static hipError_t virtual_set_access(uintptr_t start, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
  virtual_wait(start);
  if (!virtual_is_whole(start, bytes)) return hipErrorInvalidValue;
  hipError_t error = hipSuccess;
  for (uintptr_t at = start; at < start + bytes;) {
    struct software_mapping *mapping = software_mapping_at(at);
    for (size_t i = 0; i < count; i++) virtual_set_access_of(mapping, &access[i]);
    if (mprotect((void *)at, mapping->by_address.minor, virtual_protection(mapping)) != 0) error = hipErrorOutOfMemory;
    at += mapping->by_address.minor;
  }
  return error;
}

hipError_t hipMemSetAccess(void *pointer, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemSetAccess);
  if (error == hipSuccess && (!access || count == 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = virtual_check_access((uintptr_t)pointer, access, count);
  return software_end(error != hipSuccess ? error : virtual_set_access((uintptr_t)pointer, bytes, access, count));
}

hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *pointer)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemGetAccess);
  int device;
  struct software_mapping *mapping = software_mapping_at((uintptr_t)pointer);
  if (error == hipSuccess && (!flags || !location || !mapping || !virtual_location(location, &device)))
    error = hipErrorInvalidValue;
  if (error == hipSuccess) *flags = *virtual_access(mapping, location);
  return software_end(error);
}

/* ---- Reset ----------------------------------------------------------------------------------------------------- */

static void virtual_drop_mappings(int device)
{
  const struct key_tree_node *node;
  for (uintptr_t at = 0; (node = key_tree_at_least(software.mappings, at, 0));) {
    const struct software_mapping *mapping = (const struct software_mapping *)node;
    at = node->major + node->minor;
    if (device < 0 || mapping->physical->device == device) virtual_unmap(node->major, node->minor);
  }
}

void software_virtual_reset(int device)
{
  virtual_drop_mappings(device);
  struct software_physical *next = software_handle_next(&software_physicals, NULL);
  while (next) {
    struct software_physical *physical = next;
    next = software_handle_next(&software_physicals, physical);
    if (device >= 0 && physical->device != device) continue;
    physical->handle_references = 1;
    software_physical_release(physical);
  }
  while (device < 0 && software.reservations)
    virtual_reservation_drop((struct software_reservation *)software.reservations);
}
