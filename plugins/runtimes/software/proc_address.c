/* SPDX-License-Identifier: MIT */
/* proc_address.c: functions of the HIP API by their names. Called by applications. The names are those of calls.h, which
 * has every function that the software device exports. No library is searched, since the process may have another HIP. */
#include "internal.h"
#include <string.h>

/* HIP deprecates different names for pinned memory in different versions. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#if HIP_VERSION_MAJOR >= 6
#include <hip/hip_deprecated.h>
#undef hipGetDeviceProperties /* HIP's header gives the name to the function of HIP 6 */
HIPMM_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device);
#endif

#define PROPERTIES_VERSION 600 /* hundred times the major plus the minor: from here on, properties are HIP 6's */

#define PROC_ENTRY(name, allocates) {#name, (void (*)(void))name},

static const struct {
  const char *name;
  void (*function)(void);
} proc_entries[] = {SOFTWARE_CALLS(PROC_ENTRY)};

static void (*proc_address_find(const char *name, int version))(void)
{
  if (version >= PROPERTIES_VERSION && strcmp(name, "hipGetDeviceProperties") == 0)
    name = "hipGetDevicePropertiesR0600";
  for (size_t i = 0; i < sizeof proc_entries / sizeof *proc_entries; i++)
    if (strcmp(proc_entries[i].name, name) == 0) return proc_entries[i].function;
  return NULL;
}

hipError_t hipGetProcAddress(const char *name, void **function_out, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status_out)
{
  hipError_t error = software_enter(SOFTWARE_hipGetProcAddress);
  if (error == hipSuccess && (!name || !*name || !function_out || flags != 0)) error = hipErrorInvalidValue;
  if (error != hipSuccess) return software_leave(error);
  void (*function)(void) = proc_address_find(name, version);
  if (status_out) *status_out = function ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (!function) return software_leave(hipErrorInvalidValue);
  memcpy(function_out, &function, sizeof function);
  return hipSuccess;
}
