/* SPDX-License-Identifier: MIT */
/* settings.c: the flags and limits that a program sets of its device. Called by applications. The values are stored and
 * can be read; nothing depends on them, since no kernel runs here. hipDeviceReset resets them. */
#include "internal.h"

/* The limits by their numbers: HIP 5.2 has no name for the first. */
enum { LIMIT_STACK = 0, LIMIT_HEAP = 2, LIMIT_COUNT };

/* ---- Flags ----------------------------------------------------------------------------------------------------- */

/* As in HIP, only the flag for how the host waits is stored, and only one such flag is valid. */
static hipError_t settings_set_flags(int device, unsigned flags)
{
  const unsigned known = hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax;
  unsigned schedule = flags & hipDeviceScheduleMask;
  if ((flags & ~known) || (schedule & (schedule - 1))) return hipErrorInvalidValue;
  software.devices[device].flags = schedule;
  return hipSuccess;
}

hipError_t hipSetDeviceFlags(unsigned flags)
{
  hipError_t error = software_begin(SOFTWARE_hipSetDeviceFlags);
  return software_end(error != hipSuccess ? error : settings_set_flags(software_current_device(), flags));
}

hipError_t hipGetDeviceFlags(unsigned int *flags)
{
  hipError_t error = software_begin(SOFTWARE_hipGetDeviceFlags);
  if (error == hipSuccess && !flags) error = hipErrorInvalidValue;
  if (error == hipSuccess) *flags = software.devices[software_current_device()].flags;
  return software_end(error);
}

/* ---- Limits ---------------------------------------------------------------------------------------------------- */

static hipError_t settings_limit(int limit, size_t **limit_out)
{
  struct software_device *device = &software.devices[software_current_device()];
  if (limit >= LIMIT_COUNT) return hipErrorInvalidValue;
  if (limit != LIMIT_STACK && limit != LIMIT_HEAP) return hipErrorUnsupportedLimit;
  *limit_out = limit == LIMIT_STACK ? &device->stack_bytes : &device->heap_bytes;
  return hipSuccess;
}

hipError_t hipDeviceGetLimit(size_t *value, enum hipLimit_t limit)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceGetLimit);
  size_t *kept;
  if (error == hipSuccess && !value) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = settings_limit((int)limit, &kept);
  if (error == hipSuccess) *value = *kept;
  return software_end(error);
}

hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceSetLimit);
  size_t *kept;
  if (error == hipSuccess) error = settings_limit((int)limit, &kept);
  if (error == hipSuccess && value > software.config.memory_bytes) error = hipErrorInvalidValue;
  if (error == hipSuccess) *kept = value;
  return software_end(error);
}
