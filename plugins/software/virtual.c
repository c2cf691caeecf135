/* SPDX-License-Identifier: MIT */
/* virtual.c: virtual memory management: reservations of address space, physical memory behind handles, and mappings of
 * the one in the other. Called by applications, and by spans that lie in a reservation.
 *
 * Physical memory is a part of the device's memfd (or, if it can be exported, a memfd of its own), so it keeps its data
 * wherever it is mapped. A mapping is not accessible until hipMemSetAccess; the host then has the most that any device
 * has. Neither hipMemMap nor hipMemUnmap waits for work: to unmap under a pending operation is a fault, as the order of
 * HIP's calls does not promise otherwise. Released physical memory goes when its last mapping does. */
#include "internal.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct virtual_reservation {
  struct software_node by_address;
  unsigned busy; /* operations that touch it right now */
};

struct virtual_physical {
  struct software_handle handle; /* live while handle_references > 0 */
  unsigned handle_references, mappings;
  int device;
  bool is_imported;
  int fd; /* of its own; 0 if it is a part of the device's */
  uint64_t offset;
  size_t bytes;
  hipMemAllocationProp properties;
};

struct virtual_mapping {
  struct software_node by_address;
  struct virtual_physical *physical;
  uint64_t sequence; /* the last operation before it was mapped */
  uint8_t access[SOFTWARE_MAX_DEVICES];
};

static struct software_handles virtual_physicals = {.object_bytes = sizeof(struct virtual_physical)};
static struct software_node *virtual_reservations, *virtual_mappings;

static struct virtual_reservation *virtual_reservation_at(uintptr_t address)
{
  return (struct virtual_reservation *)software_tree_holding(virtual_reservations, address);
}

static struct virtual_mapping *virtual_mapping_at(uintptr_t address)
{
  return (struct virtual_mapping *)software_tree_holding(virtual_mappings, address);
}

static bool virtual_is_granular(size_t bytes)
{
  return bytes > 0 && bytes % software.config.granularity_bytes == 0;
}

/* begin, for functions that this device may not have. */
static hipError_t virtual_begin(enum software_call call)
{
  int device;
  hipError_t error = software_begin_on_device(call, &device);
  return error == hipSuccess && !software.config.virtual_memory ? hipErrorNotSupported : error;
}

/* ---- For spans ------------------------------------------------------------------------------------------------- */

bool software_virtual_is_reserved(uintptr_t start)
{
  return virtual_reservation_at(start);
}

bool software_virtual_allows(uintptr_t start, size_t bytes, bool is_write, int device, uint64_t sequence)
{
  uint8_t needed = is_write ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtRead;
  const struct virtual_reservation *reservation = virtual_reservation_at(start);
  if (!reservation || bytes > reservation->by_address.minor - (start - reservation->by_address.major)) return false;
  for (uintptr_t at = start; at < start + bytes;) {
    const struct virtual_mapping *mapping = virtual_mapping_at(at);
    if (!mapping || mapping->sequence >= sequence || (mapping->access[device] & needed) != needed) return false;
    at = mapping->by_address.major + mapping->by_address.minor;
  }
  return true;
}

void software_virtual_pin(uintptr_t start, int change)
{
  struct virtual_reservation *reservation = virtual_reservation_at(start);
  if (reservation) reservation->busy += (unsigned)change;
}

bool software_virtual_device(const void *pointer, int *device_out)
{
  const struct virtual_mapping *mapping = virtual_mapping_at((uintptr_t)pointer);
  if (mapping) *device_out = mapping->physical->device;
  return mapping;
}

/* ---- Reservations ---------------------------------------------------------------------------------------------- */

/* Reserves more than asked and gives the ends back, to align; NULL when there is no address space. */
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
  struct virtual_reservation *reservation = calloc(1, sizeof *reservation);
  if (!reservation) return hipErrorOutOfMemory;
  void *start = virtual_reserve(bytes, alignment);
  if (!start) {
    free(reservation);
    return hipErrorOutOfMemory;
  }
  reservation->by_address = (struct software_node){.major = (uintptr_t)start, .minor = bytes};
  software_tree_insert(&virtual_reservations, &reservation->by_address);
  *pointer_out = start;
  return hipSuccess;
}

/* The wished-for address is a wish, as in HIP; it is not granted. */
hipError_t hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *address, unsigned long long flags)
{
  (void)address;
  hipError_t error = virtual_begin(SOFTWARE_hipMemAddressReserve);
  if (error == hipSuccess && (!pointer || !virtual_is_granular(bytes) || (alignment & (alignment - 1)) || flags != 0))
    error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : virtual_address_reserve(pointer, bytes, alignment));
}

static void virtual_reservation_drop(struct virtual_reservation *reservation)
{
  software_tree_remove(&virtual_reservations, &reservation->by_address);
  munmap((void *)reservation->by_address.major, reservation->by_address.minor);
  free(reservation);
}

hipError_t hipMemAddressFree(void *pointer, size_t bytes)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemAddressFree);
  uintptr_t start = (uintptr_t)pointer;
  struct virtual_reservation *reservation = virtual_reservation_at(start);
  if (error == hipSuccess &&
      (!reservation || reservation->by_address.major != start || reservation->by_address.minor != bytes))
    error = hipErrorInvalidValue;
  const struct software_node *mapping = software_tree_at_least(virtual_mappings, start, 0);
  if (error == hipSuccess && mapping && mapping->major - start < bytes) error = hipErrorInvalidValue;
  if (error == hipSuccess) virtual_reservation_drop(reservation);
  return software_end(error);
}

/* ---- Physical memory ------------------------------------------------------------------------------------------- */

static hipError_t virtual_check_properties(const hipMemAllocationProp *properties)
{
  if (!properties || properties->type != hipMemAllocationTypePinned ||
      properties->location.type != hipMemLocationTypeDevice)
    return hipErrorInvalidValue;
  if (!software_device_exists(properties->location.id)) return hipErrorInvalidDevice;
  bool is_known = properties->requestedHandleType == hipMemHandleTypeNone ||
                  properties->requestedHandleType == hipMemHandleTypePosixFileDescriptor;
  return is_known ? hipSuccess : hipErrorNotSupported;
}

hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *properties,
                                          hipMemAllocationGranularity_flags option)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemGetAllocationGranularity);
  bool is_known = option == hipMemAllocationGranularityMinimum || option == hipMemAllocationGranularityRecommended;
  if (error == hipSuccess && (!granularity || !is_known)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = virtual_check_properties(properties);
  if (error == hipSuccess) *granularity = software.config.granularity_bytes;
  return software_end(error);
}

static void virtual_count_live(const struct virtual_physical *physical, bool is_live)
{
  struct software_device *device = &software.devices[physical->device];
  device->live_count += is_live ? 1 : (uint64_t)-1;
  device->live_bytes += is_live ? physical->bytes : -(uint64_t)physical->bytes;
}

static bool virtual_back(struct virtual_physical *physical, bool is_shareable)
{
  if (!is_shareable)
    return software_heap_extend(&software.devices[physical->device].heap, physical->bytes, &physical->offset);
  int fd = software_file_create();
  if (fd < 0) return false;
  physical->fd = fd;
  return ftruncate(fd, (off_t)physical->bytes) == 0;
}

/* Gives the memory back once neither a handle nor a mapping is left. */
static void virtual_physical_settle(struct virtual_physical *physical)
{
  if (physical->handle_references > 0 || physical->mappings > 0) return;
  if (physical->fd > 0)
    close(physical->fd);
  else
    software_heap_discard(&software.devices[physical->device].heap, physical->offset, physical->bytes);
  if (!physical->is_imported) software_uncharge(physical->device, physical->bytes);
  virtual_count_live(physical, false);
  software_handle_give(&virtual_physicals, physical);
}

static hipError_t virtual_create(size_t bytes, const hipMemAllocationProp *properties,
                                 hipMemGenericAllocationHandle_t *handle_out)
{
  int device = properties->location.id;
  if (bytes > software.config.memory_bytes || !software_charge(device, bytes)) return hipErrorOutOfMemory;
  struct virtual_physical *physical = software_handle_take(&virtual_physicals);
  if (!physical) goto uncharge;
  physical->device = device;
  physical->bytes = bytes;
  physical->properties = *properties;
  if (!virtual_back(physical, properties->requestedHandleType != hipMemHandleTypeNone)) goto give_handle;
  physical->handle_references = 1;
  virtual_count_live(physical, true);
  *handle_out = (hipMemGenericAllocationHandle_t)physical;
  return hipSuccess;

give_handle:
  if (physical->fd > 0) close(physical->fd);
  software_handle_give(&virtual_physicals, physical);
uncharge:
  software_uncharge(device, bytes);
  return hipErrorOutOfMemory;
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes, const hipMemAllocationProp *properties,
                        unsigned long long flags)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemCreate);
  if (error == hipSuccess && (!handle || !virtual_is_granular(bytes) || flags != 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = virtual_check_properties(properties);
  return software_end(error != hipSuccess ? error : virtual_create(bytes, properties, handle));
}

static struct virtual_physical *virtual_physical_of(hipMemGenericAllocationHandle_t handle)
{
  return software_handle_is_live(&virtual_physicals, handle) ? (struct virtual_physical *)handle : NULL;
}

static void virtual_release(struct virtual_physical *physical)
{
  physical->handle_references--;
  physical->handle.live = physical->handle_references > 0;
  virtual_physical_settle(physical);
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemRelease);
  struct virtual_physical *physical = virtual_physical_of(handle);
  if (error == hipSuccess && !physical) error = hipErrorInvalidValue;
  if (error == hipSuccess) virtual_release(physical);
  return software_end(error);
}

hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *pointer)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemRetainAllocationHandle);
  const struct virtual_mapping *mapping = virtual_mapping_at((uintptr_t)pointer);
  if (error == hipSuccess && (!handle || !mapping)) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    mapping->physical->handle_references++;
    mapping->physical->handle.live = true;
    *handle = (hipMemGenericAllocationHandle_t)mapping->physical;
  }
  return software_end(error);
}

hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *properties,
                                                   hipMemGenericAllocationHandle_t handle)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemGetAllocationPropertiesFromHandle);
  const struct virtual_physical *physical = virtual_physical_of(handle);
  if (error == hipSuccess && (!properties || !physical)) error = hipErrorInvalidValue;
  if (error == hipSuccess) *properties = physical->properties;
  return software_end(error);
}

/* ---- Sharing between processes --------------------------------------------------------------------------------- */

hipError_t hipMemExportToShareableHandle(void *shareable, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemExportToShareableHandle);
  const struct virtual_physical *physical = virtual_physical_of(handle);
  if (error == hipSuccess && (!shareable || !physical || flags != 0 || type != hipMemHandleTypePosixFileDescriptor))
    error = hipErrorInvalidValue;
  if (error == hipSuccess && physical->fd == 0) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) error = hipErrorOperatingSystem;
    if (fd >= 0) memcpy(shareable, &fd, sizeof fd);
  }
  return software_end(error);
}

static hipError_t virtual_import(int fd, int device, hipMemGenericAllocationHandle_t *handle_out)
{
  struct stat status;
  if (!software_file_is_ours(fd) || fstat(fd, &status) != 0 || !virtual_is_granular((size_t)status.st_size))
    return hipErrorInvalidValue;
  struct virtual_physical *physical = software_handle_take(&virtual_physicals);
  if (!physical) return hipErrorOutOfMemory;
  physical->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (physical->fd < 0) {
    software_handle_give(&virtual_physicals, physical);
    return hipErrorOperatingSystem;
  }
  physical->is_imported = true;
  physical->handle_references = 1;
  physical->device = device;
  physical->bytes = (size_t)status.st_size;
  physical->properties = (hipMemAllocationProp){.type = hipMemAllocationTypePinned,
                                                .location = {hipMemLocationTypeDevice, device},
                                                .requestedHandleType = hipMemHandleTypePosixFileDescriptor};
  virtual_count_live(physical, true);
  *handle_out = (hipMemGenericAllocationHandle_t)physical;
  return hipSuccess;
}

/* The file descriptor comes as the pointer's value, and stays the caller's. */
hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shareable,
                                           hipMemAllocationHandleType type)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemImportFromShareableHandle);
  if (error == hipSuccess && (!handle || type != hipMemHandleTypePosixFileDescriptor)) error = hipErrorInvalidValue;
  return software_end(
      error != hipSuccess ? error : virtual_import((int)(intptr_t)shareable, software_current_device(), handle));
}

/* ---- Mappings -------------------------------------------------------------------------------------------------- */

static bool virtual_is_free(uintptr_t start, size_t bytes)
{
  const struct virtual_reservation *reservation = virtual_reservation_at(start);
  if (!reservation || bytes > reservation->by_address.minor - (start - reservation->by_address.major)) return false;
  if (virtual_mapping_at(start)) return false;
  const struct software_node *after = software_tree_at_least(virtual_mappings, start, 0);
  return !after || after->major - start >= bytes;
}

static hipError_t virtual_map(uintptr_t start, size_t bytes, struct virtual_physical *physical)
{
  struct virtual_mapping *mapping = calloc(1, sizeof *mapping);
  if (!mapping) return hipErrorOutOfMemory;
  int fd = physical->fd > 0 ? physical->fd : software.devices[physical->device].heap.fd;
  void *mapped =
      mmap((void *)start, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)physical->offset);
  if (mapped == MAP_FAILED) {
    free(mapping);
    return hipErrorOutOfMemory;
  }
  mapping->by_address = (struct software_node){.major = start, .minor = bytes};
  mapping->physical = physical;
  mapping->sequence = software.sequence;
  physical->mappings++;
  software_tree_insert(&virtual_mappings, &mapping->by_address);
  return hipSuccess;
}

hipError_t hipMemMap(void *pointer, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemMap);
  uintptr_t start = (uintptr_t)pointer;
  struct virtual_physical *physical = virtual_physical_of(handle);
  bool is_valid = physical && virtual_is_granular(bytes) && bytes <= physical->bytes && offset == 0 && flags == 0 &&
                  start % software.config.granularity_bytes == 0 && virtual_is_free(start, bytes);
  if (error == hipSuccess && !is_valid) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : virtual_map(start, bytes, physical));
}

/* Whether whole mappings, one after the other, make up [start, start + bytes). */
static bool virtual_is_whole(uintptr_t start, size_t bytes)
{
  if (bytes == 0 || bytes > UINTPTR_MAX - start) return false;
  uintptr_t at = start;
  while (at < start + bytes) {
    const struct virtual_mapping *mapping = virtual_mapping_at(at);
    if (!mapping || mapping->by_address.major != at) return false;
    at += mapping->by_address.minor;
  }
  return at == start + bytes;
}

static void virtual_mapping_drop(struct virtual_mapping *mapping)
{
  struct virtual_physical *physical = mapping->physical;
  software_tree_remove(&virtual_mappings, &mapping->by_address);
  free(mapping);
  physical->mappings--;
  virtual_physical_settle(physical);
}

/* Waits for those who touch the reservation right now, which may be gone then. */
static void virtual_wait(uintptr_t start)
{
  const struct virtual_reservation *reservation;
  while ((reservation = virtual_reservation_at(start)) && reservation->busy > 0)
    pthread_cond_wait(&software.progress, &software.lock);
}

static hipError_t virtual_unmap(uintptr_t start, size_t bytes)
{
  virtual_wait(start);
  if (!virtual_is_whole(start, bytes)) return hipErrorInvalidValue;
  void *empty = mmap((void *)start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (empty == MAP_FAILED) return hipErrorOutOfMemory;
  for (uintptr_t at = start; at < start + bytes;) {
    struct virtual_mapping *mapping = virtual_mapping_at(at);
    at += mapping->by_address.minor;
    virtual_mapping_drop(mapping);
  }
  return hipSuccess;
}

hipError_t hipMemUnmap(void *pointer, size_t bytes)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemUnmap);
  return software_end(error != hipSuccess ? error : virtual_unmap((uintptr_t)pointer, bytes));
}

/* ---- Access ---------------------------------------------------------------------------------------------------- */

static int virtual_protection(const struct virtual_mapping *mapping)
{
  int flags = 0;
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++) flags |= mapping->access[device];
  return flags == 0 ? PROT_NONE : (flags & 2) ? PROT_READ | PROT_WRITE : PROT_READ;
}

static hipError_t virtual_check_access(const hipMemAccessDesc *access, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (access[i].location.type != hipMemLocationTypeDevice) return hipErrorInvalidValue;
    if (!software_device_exists(access[i].location.id)) return hipErrorInvalidDevice;
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
    struct virtual_mapping *mapping = virtual_mapping_at(at);
    for (size_t i = 0; i < count; i++) mapping->access[access[i].location.id] = (uint8_t)access[i].flags;
    if (mprotect((void *)at, mapping->by_address.minor, virtual_protection(mapping)) != 0) error = hipErrorOutOfMemory;
    at += mapping->by_address.minor;
  }
  return error;
}

hipError_t hipMemSetAccess(void *pointer, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemSetAccess);
  if (error == hipSuccess && (!access || count == 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = virtual_check_access(access, count);
  return software_end(error != hipSuccess ? error : virtual_set_access((uintptr_t)pointer, bytes, access, count));
}

hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *pointer)
{
  hipError_t error = virtual_begin(SOFTWARE_hipMemGetAccess);
  const struct virtual_mapping *mapping = virtual_mapping_at((uintptr_t)pointer);
  if (error == hipSuccess && (!flags || !location || !mapping || location->type != hipMemLocationTypeDevice))
    error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(location->id)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) *flags = mapping->access[location->id];
  return software_end(error);
}

/* ---- Reset ----------------------------------------------------------------------------------------------------- */

void software_virtual_reset(int device)
{
  struct software_node *next = software_tree_at_least(virtual_mappings, 0, 0);
  while (next) {
    struct virtual_mapping *mapping = (struct virtual_mapping *)next;
    next = software_tree_next(virtual_mappings, next);
    if (device < 0 || mapping->physical->device == device)
      virtual_unmap(mapping->by_address.major, mapping->by_address.minor);
  }
  struct virtual_physical *physical = software_handle_next(&virtual_physicals, NULL);
  while (physical) {
    struct virtual_physical *after = software_handle_next(&virtual_physicals, physical);
    if (device < 0 || physical->device == device) {
      physical->handle_references = 1;
      virtual_release(physical);
    }
    physical = after;
  }
  while (device < 0 && virtual_reservations)
    virtual_reservation_drop((struct virtual_reservation *)virtual_reservations);
}
