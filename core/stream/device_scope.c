/* SPDX-License-Identifier: MIT */
/* device_scope.c: the public functions that change the calling thread's current device. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../runtime/hip.h"
#include "../stack/device_table.h"

#include <hipmm/stream.h>

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
