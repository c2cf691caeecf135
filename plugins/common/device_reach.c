/* SPDX-License-Identifier: MIT */
/* device_reach.c: asks HIP about each device. Called by device and by the sources over driver pools on creation. */
#include "device_reach.h"

static int device_reach_ask(const struct hipmm_services *services, int device, int *can_out)
{
  const struct hipmm_hip *hip = services->hip;
  *can_out = 0;
  if (!hip->DeviceCanAccessPeer || device >= DEVICE_REACH_MOST_DEVICES) return HIPMM_HIP_SUCCESS;
  return hip->DeviceCanAccessPeer(can_out, device, services->device);
}

enum hipmm_status device_reach_find(const struct hipmm_services *services, struct device_reach *reach_out)
{
  struct device_reach reach = {.is_whole = true};
  int count = 0, can = 0;
  int code = services->hip->GetDeviceCount(&count);
  if (code) return services->refuse_hip(services, "hipGetDeviceCount", code, 0);
  for (int device = 0; device < count; device++) {
    if (device == services->device) continue;
    reach.others |= device_reach_bit(device);
    code = device_reach_ask(services, device, &can);
    if (code) return services->refuse_hip(services, "hipDeviceCanAccessPeer", code, 0);
    if (can)
      reach.devices |= device_reach_bit(device);
    else
      reach.is_whole = false;
  }
  *reach_out = reach;
  return HIPMM_OK;
}

bool device_reach_is_refused(int code)
{
  return code == HIPMM_HIP_ERROR_NOT_SUPPORTED || code == HIPMM_HIP_ERROR_INVALID_VALUE ||
         code == HIPMM_HIP_ERROR_INVALID_DEVICE;
}

void device_reach_report(const struct hipmm_services *services, enum hipmm_log_level level, const char *call, int code,
                         int device)
{
  const struct hipmm_hip *hip = services->hip;
  hip->GetLastError();
  services->log(services, level,
                "device %d gets no access to this memory of device %d (%s: %s): copies and kernels that need it fail; "
                "memory of hipMalloc (type device, or pool with \"growth\": \"segments\") needs none",
                device, services->device, call, hip->GetErrorName(code));
}
