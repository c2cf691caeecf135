/* SPDX-License-Identifier: MIT */
/* volumes.c: copies and fills in three dimensions, copies whose two sides are described in a struct, and several copies in
 * one call. Called by applications. Each becomes one copy or fill of copy.c and fill.c if the rows are evenly spaced, else
 * one for each slice. There are no arrays (images), so every handle of one is wrong. */
#include "../../../core/base/hip_layout.h"
#include "internal.h"

/* One side: the first byte, and the distances of rows and slices. */
struct volume {
  char *start;
  size_t pitch, rows; /* rows of a slice, also of those that are not copied */
};

static struct volume volume_of(const hipPitchedPtr *memory)
{
  return (struct volume){memory->ptr, memory->pitch, memory->ysize};
}

/* The part that begins at a position. */
static struct volume volume_at(const struct volume *volume, const hipPos *at)
{
  char *start = volume->start + at->x + (at->y + at->z * volume->rows) * volume->pitch;
  return (struct volume){start, volume->pitch, volume->rows};
}

static hipError_t volume_check(const struct volume *volume, const hipPos *at, const hipExtent *extent)
{
  if (!volume->start) return hipErrorInvalidValue;
  if (at->x > volume->pitch || extent->width > volume->pitch - at->x) return hipErrorInvalidPitchValue;
  bool is_inside = at->y <= volume->rows && extent->height <= volume->rows - at->y;
  return extent->depth <= 1 || is_inside ? hipSuccess : hipErrorInvalidValue;
}

static bool volume_is_even(const struct volume *volume, const hipExtent *extent)
{
  return extent->depth == 1 || volume->rows == extent->height;
}

static struct software_rows volume_slice(const struct volume *volume, size_t slice)
{
  return (struct software_rows){volume->start + slice * volume->rows * volume->pitch, volume->pitch};
}

/* The last slice first: if the memory is too small, nothing is copied. */
static hipError_t volume_copy(enum software_call call, const struct volume *to, const struct volume *from,
                              hipExtent extent, hipMemcpyKind kind, bool waits, hipStream_t stream)
{
  hipError_t error = hipSuccess;
  if (extent.width == 0 || extent.height == 0) return error;
  if (volume_is_even(to, &extent) && volume_is_even(from, &extent)) {
    extent.height *= extent.depth;
    extent.depth = extent.depth > 0;
  }
  for (size_t slice = extent.depth; slice-- > 0 && error == hipSuccess;) {
    struct software_rows to_rows = volume_slice(to, slice), from_rows = volume_slice(from, slice);
    error = software_copy_rows(call, &to_rows, &from_rows, extent.width, extent.height, kind, waits, stream);
  }
  return error;
}

static hipError_t volume_fill(enum software_call call, const hipPitchedPtr *memory, int value, hipExtent extent,
                              bool waits, hipStream_t stream)
{
  const hipPos first = {0, 0, 0};
  struct volume volume = volume_of(memory);
  hipError_t error = software_begin(call);
  if (error == hipSuccess) error = volume_check(&volume, &first, &extent);
  if (volume_is_even(&volume, &extent)) {
    extent.height *= extent.depth;
    extent.depth = extent.depth > 0;
  }
  for (size_t slice = extent.height ? extent.depth : 0; slice-- > 0 && error == hipSuccess;) {
    struct software_rows rows = volume_slice(&volume, slice);
    error = software_fill_rows(call, &rows, (uint8_t)value, extent.width, extent.height, waits, stream);
  }
  return software_end(error);
}

hipError_t hipMemset3D(hipPitchedPtr memory, int value, hipExtent extent)
{
  return volume_fill(SOFTWARE_hipMemset3D, &memory, value, extent, true, NULL);
}

hipError_t hipMemset3DAsync(hipPitchedPtr memory, int value, hipExtent extent, hipStream_t stream)
{
  return volume_fill(SOFTWARE_hipMemset3DAsync, &memory, value, extent, false, stream);
}

static hipError_t volume_call(enum software_call call, const hipMemcpy3DParms *copy, bool waits, hipStream_t stream)
{
  hipError_t error = software_begin(call);
  if (error == hipSuccess && (!copy || copy->srcArray || copy->dstArray)) error = hipErrorInvalidValue;
  if (error != hipSuccess) return software_end(error);
  struct volume to = volume_of(&copy->dstPtr), from = volume_of(&copy->srcPtr);
  error = volume_check(&to, &copy->dstPos, &copy->extent);
  if (error == hipSuccess) error = volume_check(&from, &copy->srcPos, &copy->extent);
  to = volume_at(&to, &copy->dstPos);
  from = volume_at(&from, &copy->srcPos);
  if (error == hipSuccess) error = volume_copy(call, &to, &from, copy->extent, copy->kind, waits, stream);
  return software_end(error);
}

hipError_t hipMemcpy3D(const hipMemcpy3DParms *copy)
{
  return volume_call(SOFTWARE_hipMemcpy3D, copy, true, NULL);
}

hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *copy, hipStream_t stream)
{
  return volume_call(SOFTWARE_hipMemcpy3DAsync, copy, false, stream);
}

/* ---- Two sides in a struct ------------------------------------------------------------------------------------- */

/* The side's memory; NULL for an array, or an unknown type. hipMemoryType has other numbers since HIP 6. */
static char *volume_side(int type, const void *host, hipDeviceptr_t device)
{
  enum { HOST_5, DEVICE_5, UNIFIED_5 = 3, HOST_6 = 1, DEVICE_6, MANAGED_6, UNIFIED_6 = 11 };
  bool is_old = software_version() < HIP_LAYOUT_6_0;
  if (type == (is_old ? HOST_5 : HOST_6)) return (char *)(uintptr_t)host;
  bool is_device =
      is_old ? type == DEVICE_5 || type == UNIFIED_5 : type == DEVICE_6 || type == MANAGED_6 || type == UNIFIED_6;
  return is_device ? (char *)device : NULL;
}

static hipError_t volume_param_call(enum software_call call, const hip_Memcpy2D *copy, bool waits, hipStream_t stream)
{
  hipError_t error = software_begin(call);
  if (error == hipSuccess && !copy) error = hipErrorInvalidValue;
  if (error != hipSuccess) return software_end(error);
  const hipExtent extent = {copy->WidthInBytes, copy->Height, 1};
  const hipPos to_at = {copy->dstXInBytes, copy->dstY, 0}, from_at = {copy->srcXInBytes, copy->srcY, 0};
  struct volume to = {volume_side((int)copy->dstMemoryType, copy->dstHost, copy->dstDevice), copy->dstPitch, 0};
  struct volume from = {volume_side((int)copy->srcMemoryType, copy->srcHost, copy->srcDevice), copy->srcPitch, 0};
  error = volume_check(&to, &to_at, &extent);
  if (error == hipSuccess) error = volume_check(&from, &from_at, &extent);
  to = volume_at(&to, &to_at);
  from = volume_at(&from, &from_at);
  if (error == hipSuccess) error = volume_copy(call, &to, &from, extent, hipMemcpyDefault, waits, stream);
  return software_end(error);
}

hipError_t hipMemcpyParam2D(const hip_Memcpy2D *copy)
{
  return volume_param_call(SOFTWARE_hipMemcpyParam2D, copy, true, NULL);
}

hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D *copy, hipStream_t stream)
{
  return volume_param_call(SOFTWARE_hipMemcpyParam2DAsync, copy, false, stream);
}

/* ---- Several copies -------------------------------------------------------------------------------------------- */

/* As every copy here, each has read pageable memory when the call returns, whatever order its attributes allow. */
hipError_t hipMemcpyBatchAsync(void **to, void **from, size_t *bytes, size_t count, hipMemcpyAttributes *attributes,
                               size_t *first_copies, size_t n_attributes, size_t *failed_out, hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipMemcpyBatchAsync);
  bool is_valid = to && from && bytes && count > 0 && attributes && first_copies && n_attributes > 0 &&
                  n_attributes <= count && first_copies[0] == 0;
  if (failed_out) *failed_out = SIZE_MAX;
  if (error == hipSuccess && !is_valid) error = hipErrorInvalidValue;
  for (size_t i = 0; error == hipSuccess && i < count; i++) {
    const struct software_rows to_row = {to[i], 0}, from_row = {from[i], 0};
    error = to[i] && from[i] ? software_copy_rows(SOFTWARE_hipMemcpyBatchAsync, &to_row, &from_row, bytes[i], 1,
                                                  hipMemcpyDefault, false, stream)
                             : hipErrorInvalidValue;
    if (error != hipSuccess && failed_out) *failed_out = i;
  }
  return software_end(error);
}
