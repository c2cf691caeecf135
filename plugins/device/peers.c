/* SPDX-License-Identifier: MIT */
/* peers.c: see peers.h. Called by device.c when a resource is made, and by mapping.c for each piece. Never takes access
 * away: it is the process's, and others may count on it. */
#include "peers.h"

#include <stdio.h>

static enum hipmm_status peers_check(const struct hipmm_services *services, size_t row, int64_t peer)
{
  char option[40]; /* which of them: it becomes a JSON pointer */
  int can_access = 0;
  snprintf(option, sizeof option, "peers/%zu", row);
  enum hipmm_status status = source_require_device(services, option, peer);
  if (status) return status;
  int code = services->hip->DeviceCanAccessPeer(&can_access, (int)peer, services->device);
  if (code) return services->refuse_hip(services, "hipDeviceCanAccessPeer", code, 0);
  if (can_access) return HIPMM_OK;
  return services->fail(
      services, HIPMM_E_NOT_SUPPORTED, option,
      "device %lld cannot reach the memory of device %d; leave the row out: copies between the two then "
      "go by way of the host",
      (long long)peer, services->device);
}

static enum hipmm_status peers_enable_one(const struct hipmm_services *services, int peer)
{
  const struct hipmm_hip *hip = services->hip;
  int code = hip->SetDevice(peer);
  if (code) return services->refuse_hip(services, "hipSetDevice", code, 0);
  code = hip->DeviceEnablePeerAccess(services->device, 0);
  if (code == HIPMM_HIP_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
    hip->GetLastError();
    code = HIPMM_HIP_SUCCESS;
  }
  services->enter_device(services); /* as it was */
  return code ? services->refuse_hip(services, "hipDeviceEnablePeerAccess", code, 0) : HIPMM_OK;
}

/* Of a row that names this device itself there is nothing to do: a graph may list all devices. */
enum hipmm_status peers_enable(const struct hipmm_services *services, const struct device_options *options)
{
  const struct peer *peers = options->peers.items;
  const struct hipmm_hip *hip = services->hip;
  if (!options->peers.count) return HIPMM_OK;
  enum hipmm_status status =
      source_require_function(services, hip->DeviceCanAccessPeer != NULL, "hipDeviceCanAccessPeer");
  if (!status)
    status = source_require_function(services, hip->DeviceEnablePeerAccess != NULL, "hipDeviceEnablePeerAccess");
  for (size_t i = 0; !status && i < options->peers.count; i++) {
    if (peers[i].device == services->device) continue;
    status = peers_check(services, i, peers[i].device);
    if (!status) status = peers_enable_one(services, (int)peers[i].device);
  }
  return status;
}

int peers_give_access(const struct device *device, void *address, size_t bytes)
{
  const struct hipmm_services *services = device->source.services;
  const struct peer *peers = device->options->peers.items;
  int code = HIPMM_HIP_SUCCESS;
  for (size_t i = 0; !code && i < device->options->peers.count; i++)
    if (peers[i].device != services->device) code = services->hip->MemSetAccess(address, bytes, (int)peers[i].device);
  return code;
}
