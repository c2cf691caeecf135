/* SPDX-License-Identifier: MIT */
/* physical.c: the physical memory behind handles of virtual memory management. Called by applications; virtual.c maps
 * it. The memory is a part of the device's or the host's memfd. It is a memfd of its own if it can be exported, or if the
 * device has the faults of ROCm 7.14. So it keeps its data wherever it is mapped. Released memory is freed with its last
 * mapping. */
#include "../../../core/base/output_file.h"
#include "virtual.h"
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct software_handles software_physicals = {.object_bytes = sizeof(struct software_physical)};

hipError_t software_virtual_begin(enum software_call call)
{
  int device;
  hipError_t error = software_begin_on_device(call, &device);
  return error == hipSuccess && !software.config.virtual_memory ? hipErrorNotSupported : error;
}

bool software_virtual_is_granular(size_t bytes)
{
  return bytes > 0 && bytes % software.config.granularity_bytes == 0;
}

/* ---- Physical memory ------------------------------------------------------------------------------------------- */

/* What the device heeds of hipMemAllocationProp, in either layout. */
struct physical_request {
  int type, handle_type;
  struct hip_layout_location location;
};

static struct physical_request physical_read(const union hip_layout_prop *prop)
{
  if (software_version() < HIP_LAYOUT_5_3)
    return (struct physical_request){prop->up_to_5_2.type, prop->up_to_5_2.handle_type, prop->up_to_5_2.location};
  return (struct physical_request){prop->from_5_3.type, prop->from_5_3.handle_type, prop->from_5_3.location};
}

/* Of imported memory. */
static union hip_layout_prop physical_write(int device)
{
  const struct hip_layout_location location = {hipMemLocationTypeDevice, device};
  const int type = hipMemAllocationTypePinned, handle_type = hipMemHandleTypePosixFileDescriptor;
  union hip_layout_prop prop;
  memset(&prop, 0, sizeof prop);
  if (software_version() < HIP_LAYOUT_5_3)
    prop.up_to_5_2 = (struct hip_layout_prop_5_2){.location = location, .handle_type = handle_type, .type = type};
  else
    prop.from_5_3 = (struct hip_layout_prop_5_3){.type = type, .handle_type = handle_type, .location = location};
  return prop;
}

/* Replaces the location's number by that of the device, hipCpuDeviceId for the host. */
static hipError_t physical_check_properties(const hipMemAllocationProp *properties,
                                            struct physical_request *request_out)
{
  if (!properties) return hipErrorInvalidValue;
  *request_out = physical_read((const union hip_layout_prop *)properties);
  struct software_location location = {request_out->location.type, request_out->location.id};
  bool is_right = software_location_device(location, &request_out->location.id) &&
                  request_out->type == hipMemAllocationTypePinned &&
                  (request_out->location.id == hipCpuDeviceId || software_device_exists(request_out->location.id));
  return is_right ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t physical_check_handle_type(const struct physical_request *request)
{
  bool is_known =
      request->handle_type == hipMemHandleTypeNone || request->handle_type == hipMemHandleTypePosixFileDescriptor;
  return is_known ? hipSuccess : hipErrorNotSupported;
}

hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *properties,
                                          hipMemAllocationGranularity_flags option)
{
  struct physical_request request;
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemGetAllocationGranularity);
  bool is_known = option == hipMemAllocationGranularityMinimum || option == hipMemAllocationGranularityRecommended;
  if (error == hipSuccess && (!granularity || !is_known)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = physical_check_properties(properties, &request);
  if (error == hipSuccess) *granularity = software.config.granularity_bytes;
  return software_end(error);
}

static void physical_count_live(const struct software_physical *physical, bool is_live)
{
  struct software_device *device = &software.devices[physical->device];
  device->live_count += is_live ? 1 : (uint64_t)-1;
  device->live_bytes += is_live ? physical->bytes : -(uint64_t)physical->bytes;
}

static hipError_t physical_back(struct software_physical *physical, bool has_file)
{
  if (!has_file) return software_heap_extend(software_physical_heap(physical), physical->bytes, &physical->offset);
  if (!software_file_create(&physical->file)) return hipErrorOutOfMemory;
  bool has_bytes = output_file_truncate(physical->file.fd, (off_t)physical->bytes) == 0;
  return has_bytes ? hipSuccess : hipErrorOutOfMemory;
}

void software_physical_free_if_unused(struct software_physical *physical)
{
  if (physical->handle_references > 0 || physical->mappings > 0) return;
  if (physical->file.fd > 0)
    software_file_close(&physical->file);
  else
    software_heap_discard(software_physical_heap(physical), physical->offset, physical->bytes);
  if (!physical->is_imported) software_uncharge(physical->is_host ? hipCpuDeviceId : physical->device, physical->bytes);
  physical_count_live(physical, false);
  software_handle_free(&software_physicals, physical);
}

static hipError_t physical_create(size_t bytes, const struct physical_request *request,
                                  const hipMemAllocationProp *properties, hipMemGenericAllocationHandle_t *handle_out)
{
  int device = request->location.id;
  bool is_host = device == hipCpuDeviceId;
  if (!software_charge(device, bytes)) return hipErrorOutOfMemory;
  hipError_t error = hipErrorOutOfMemory;
  struct software_physical *physical = software_handle_allocate(&software_physicals);
  if (!physical) goto uncharge;
  physical->device = is_host ? software_current_device() : device;
  physical->is_host = is_host;
  physical->bytes = bytes;
  memcpy(&physical->properties, properties, sizeof physical->properties);
  physical->is_shareable = request->handle_type != hipMemHandleTypeNone;
  error = physical_back(physical, physical->is_shareable || software.config.rocm_mapping);
  if (error != hipSuccess) goto give_handle;
  physical->handle_references = 1;
  physical_count_live(physical, true);
  *handle_out = (hipMemGenericAllocationHandle_t)physical;
  return hipSuccess;

give_handle:
  software_file_close(&physical->file);
  software_handle_free(&software_physicals, physical);
uncharge:
  software_uncharge(device, bytes);
  return error;
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes, const hipMemAllocationProp *properties,
                        unsigned long long flags)
{
  struct physical_request request;
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemCreate);
  if (error == hipSuccess && (!handle || !software_virtual_is_granular(bytes) || flags != 0))
    error = hipErrorInvalidValue;
  if (error == hipSuccess) error = physical_check_properties(properties, &request);
  if (error == hipSuccess) error = physical_check_handle_type(&request);
  return software_end(error != hipSuccess ? error : physical_create(bytes, &request, properties, handle));
}

struct software_physical *software_physical_of(hipMemGenericAllocationHandle_t handle)
{
  return software_handle_is_live(&software_physicals, handle) ? (struct software_physical *)handle : NULL;
}

void software_physical_release(struct software_physical *physical)
{
  physical->handle_references--;
  physical->handle.live = physical->handle_references > 0;
  software_physical_free_if_unused(physical);
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemRelease);
  struct software_physical *physical = software_physical_of(handle);
  if (error == hipSuccess && !physical) error = hipErrorInvalidValue;
  if (error == hipSuccess) software_physical_release(physical);
  return software_end(error);
}

hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *properties,
                                                   hipMemGenericAllocationHandle_t handle)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemGetAllocationPropertiesFromHandle);
  const struct software_physical *physical = software_physical_of(handle);
  if (error == hipSuccess && (!properties || !physical)) error = hipErrorInvalidValue;
  if (error == hipSuccess) memcpy(properties, &physical->properties, sizeof physical->properties);
  return software_end(error);
}

/* ---- Sharing between processes --------------------------------------------------------------------------------- */

hipError_t hipMemExportToShareableHandle(void *shareable, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemExportToShareableHandle);
  const struct software_physical *physical = software_physical_of(handle);
  if (error == hipSuccess && (!shareable || !physical || flags != 0 || type != hipMemHandleTypePosixFileDescriptor))
    error = hipErrorInvalidValue;
  if (error == hipSuccess && !physical->is_shareable) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    int fd = fcntl(software_physical_file(physical), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) error = hipErrorOperatingSystem;
    if (fd >= 0) memcpy(shareable, &fd, sizeof fd);
  }
  return software_end(error);
}

static hipError_t physical_import(int fd, int device, hipMemGenericAllocationHandle_t *handle_out)
{
  struct stat status;
  if (!software_file_is_ours(fd) || fstat(fd, &status) != 0 || !software_virtual_is_granular((size_t)status.st_size))
    return hipErrorInvalidValue;
  struct software_physical *physical = software_handle_allocate(&software_physicals);
  if (!physical) return hipErrorOutOfMemory;
  if (!software_file_duplicate(fd, &physical->file)) {
    software_handle_free(&software_physicals, physical);
    return hipErrorOperatingSystem;
  }
  physical->is_imported = physical->is_shareable = true;
  physical->handle_references = 1;
  physical->device = device;
  physical->bytes = (size_t)status.st_size;
  physical->properties = physical_write(device);
  physical_count_live(physical, true);
  *handle_out = (hipMemGenericAllocationHandle_t)physical;
  return hipSuccess;
}

/* From HIP 7.1 on the descriptor is the value of the pointer, as in CUDA and in HIP's pools; before, the pointer is the
 * address of the descriptor. The caller still owns it. */
static int physical_descriptor(const void *shareable, int device)
{
  int fd = -1;
  struct software_span span;
  if (software_version() >= HIP_LAYOUT_7_1) return (uintptr_t)shareable <= INT_MAX ? (int)(uintptr_t)shareable : -1;
  if (software_span_open(shareable, sizeof fd, false, device, &span) != hipSuccess) return -1;
  if (software_span_is_host(&span)) memcpy(&fd, shareable, sizeof fd);
  software_span_close(&span);
  return fd;
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shareable,
                                           hipMemAllocationHandleType type)
{
  hipError_t error = software_virtual_begin(SOFTWARE_hipMemImportFromShareableHandle);
  if (error == hipSuccess && (!handle || type != hipMemHandleTypePosixFileDescriptor)) error = hipErrorInvalidValue;
  int device = software_current_device();
  if (error == hipSuccess) error = physical_import(physical_descriptor(shareable, device), device, handle);
  return software_end(error);
}
