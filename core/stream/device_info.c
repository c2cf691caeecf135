/* SPDX-License-Identifier: MIT */
/* device_info.c: the devices of the runtime: memory, names, attributes, versions, and which one is current. Called by
 * applications. Retains nothing. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../call/device_table.h"
#include "../runtime/hip.h"

#include <hipmm/stream.h>
#include <string.h>

static enum hipmm_status device_info_check(int device, const void *argument, const char *name)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  if (!status && !argument) status = error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  return status;
}

enum hipmm_status hipmm_device_memory(int device, size_t *free_bytes_out, size_t *total_bytes_out)
{
  size_t free_bytes = 0, total_bytes = 0;
  int previous = 0;
  enum hipmm_status status = device_info_check(device, &free_bytes, "");
  if (!status) status = device_table_enter(device, &previous);
  if (status) return status;
  int code = hip_table()->MemGetInfo(&free_bytes, &total_bytes);
  hip_leave_device(device, previous);
  if (code) return hip_refuse(NULL, "hipMemGetInfo", code, 0);
  if (free_bytes_out) *free_bytes_out = free_bytes;
  if (total_bytes_out) *total_bytes_out = total_bytes;
  return HIPMM_OK;
}

enum hipmm_status hipmm_device_percent_of_free_memory(int device, int percent, size_t *bytes_out)
{
  size_t free_bytes = 0;
  enum hipmm_status status = device_info_check(device, bytes_out, "bytes_out");
  if (!status && (percent < 0 || percent > 100))
    status = error_set(HIPMM_E_ARGUMENT, "percent: %d%% is not a part of the memory; 0 to 100 are allowed", percent);
  if (!status) status = hipmm_device_memory(device, &free_bytes, NULL);
  if (status) return status;
  size_t bytes = free_bytes / 100 * (size_t)percent + free_bytes % 100 * (size_t)percent / 100;
  *bytes_out = bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  return HIPMM_OK;
}

enum hipmm_status hipmm_device_name(int device, size_t bytes, char *name_out)
{
  char name[256] = ""; /* as long as HIP's names get */
  enum hipmm_status status = device_info_check(device, name_out, "name_out");
  if (!status && !bytes) status = error_set(HIPMM_E_ARGUMENT, "bytes is 0: there is no room for a name");
  if (status) return status;
  int code = hip_table()->DeviceGetName(name, (int)sizeof name, device);
  if (code) return hip_refuse(NULL, "hipDeviceGetName", code, 0);
  size_t length = strnlen(name, sizeof name - 1);
  if (length > bytes - 1) length = bytes - 1;
  memcpy(name_out, name, length);
  name_out[length] = '\0';
  return HIPMM_OK;
}

enum hipmm_status hipmm_device_attribute(int device, int attribute, int *value_out)
{
  int value = 0;
  enum hipmm_status status = device_info_check(device, value_out, "value_out");
  if (status) return status;
  int code = hip_table()->DeviceGetAttribute(&value, attribute, device);
  if (code == HIPMM_HIP_ERROR_INVALID_VALUE) {
    hip_table()->GetLastError();
    return error_set(HIPMM_E_ARGUMENT, "attribute: %d is no attribute that runtime %s knows", attribute, hip_name());
  }
  if (code) return hip_refuse(NULL, "hipDeviceGetAttribute", code, 0);
  *value_out = value;
  return HIPMM_OK;
}

/* `get` is HIP's `function`; NULL: the runtime has none. */
static enum hipmm_status device_info_version(int (*get)(int *version), const char *function, int *version_out)
{
  int version = 0;
  if (!get) return error_set(HIPMM_E_NOT_SUPPORTED, "runtime %s does not export %s", hip_name(), function);
  int code = get(&version);
  if (code) return hip_refuse(NULL, function, code, 0);
  *version_out = version;
  return HIPMM_OK;
}

enum hipmm_status hipmm_runtime_version(int *version_out)
{
  enum hipmm_status status = device_info_check(0, version_out, "version_out");
  return status ? status : device_info_version(hip_table()->RuntimeGetVersion, "hipRuntimeGetVersion", version_out);
}

enum hipmm_status hipmm_driver_version(int *version_out)
{
  enum hipmm_status status = device_info_check(0, version_out, "version_out");
  return status ? status : device_info_version(hip_table()->DriverGetVersion, "hipDriverGetVersion", version_out);
}

/* ---- The current device of the calling thread ---- */

enum hipmm_status hipmm_device_set(int device)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  int code = status ? 0 : hip_table()->SetDevice(device);
  return code ? hip_refuse(NULL, "hipSetDevice", code, 0) : status;
}

enum hipmm_status hipmm_device_enter(int device, int *previous_out)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status && !previous_out) status = error_set(HIPMM_E_ARGUMENT, "previous_out is NULL");
  if (!status) status = device_table_check(device);
  return status ? status : device_table_enter(device, previous_out);
}

enum hipmm_status hipmm_device_leave(int previous)
{
  return hipmm_device_set(previous);
}
