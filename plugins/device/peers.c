/* SPDX-License-Identifier: MIT */
/* peers.c: see peers.h. device.c calls it at creation, mapping.c for each chunk. Never disables access to hipMalloc's
 * memory, because that access belongs to the whole process. */
#include "peers.h"

#include <stdio.h>

static enum hipmm_status peers_check(const struct hipmm_services *services, size_t row, int64_t peer)
{
  char option[40]; /* with the index, as a JSON pointer */
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

/* A row that names this device itself has no effect, so that one graph can list all devices. */
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

void peers_open(struct device *device, const struct device_reach *reach)
{
  device->is_in_reach = reach->is_whole;
  atomic_init(&device->peers, reach->devices);
}

static void peers_drop(struct device *device, int peer, int code)
{
  const struct hipmm_services *services = device->source.services;
  bool is_first = atomic_fetch_and(&device->peers, ~device_reach_bit(peer)) & device_reach_bit(peer);
  if (is_first)
    device_reach_report(services, HIPMM_LOG_WARNING, "hipMemSetAccess", code, peer);
  else
    services->hip->GetLastError();
}

/* One call for each device: on NVIDIA's driver (580), one call with two devices takes longer than two calls. */
enum hipmm_status peers_give_access(struct device *device, void *address, size_t bytes)
{
  const struct hipmm_services *services = device->source.services;
  uint64_t peers = atomic_load_explicit(&device->peers, memory_order_relaxed);
  for (; peers; peers &= peers - 1) {
    int peer = device_reach_first(peers);
    int code = services->hip->MemSetAccess(address, bytes, peer);
    if (device_reach_is_refused(code)) {
      peers_drop(device, peer, code);
    } else if (code) {
      enum hipmm_status status = services->refuse_hip(services, "hipMemSetAccess", code, bytes);
      return services->explain(
          services, status, "the access was for device {0}; a pool with \"growth\": \"segments\" needs no such access",
          (uint64_t)peer, 0, 0, 0);
    }
  }
  return HIPMM_OK;
}
