/* SPDX-License-Identifier: MIT */
/* peers.c: see device.h. device.c calls it at creation, mapping.c for each chunk. Never disables access to hipMalloc's
 * memory, because that access belongs to the whole process.
 *
 * To give a device access to a chunk takes a driver as long as all other calls for it together. */
#include "device.h"

#include <stdio.h>
#include <string.h>

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

/* ---- Mappings ---- */

enum { PEERS_BLOCK_BYTES = 64 << 10 };

/* Host memory for the records of mappings, which the application's malloc does not give. */
struct peers_block {
  struct peers_block *next;
  struct key_tree_node nodes[];
};

static void peers_put_node(struct device *device, struct key_tree_node *node)
{
  node->right = device->unused;
  device->unused = node;
}

static void peers_add_block(struct device *device)
{
  const struct hipmm_services *services = device->source.services;
  struct peers_block *block = services->host_allocate(services, PEERS_BLOCK_BYTES);
  if (!block) return;
  block->next = device->blocks;
  device->blocks = block;
  for (size_t i = (PEERS_BLOCK_BYTES - sizeof *block) / sizeof *block->nodes; i-- > 0;)
    peers_put_node(device, &block->nodes[i]);
}

static enum hipmm_status peers_record(struct device *device, const void *address, size_t bytes)
{
  const struct hipmm_services *services = device->source.services;
  if (!device->unused) peers_add_block(device);
  struct key_tree_node *node = device->unused;
  if (!node)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to record a mapping of {0:bytes}",
                            bytes, 0, 0);
  device->unused = node->right;
  *node = (struct key_tree_node){.major = (uintptr_t)address, .minor = bytes};
  key_tree_insert(&device->mappings, node);
  return HIPMM_OK;
}

static void peers_forget(struct device *device, const void *address, size_t bytes)
{
  struct key_tree_node *node;
  while ((node = key_tree_at_least(device->mappings, (uintptr_t)address, 0)) &&
         node->major - (uintptr_t)address < bytes) {
    key_tree_remove(&device->mappings, node);
    peers_put_node(device, node);
  }
}

void peers_open(struct device *device, const struct device_reach *reach)
{
  device->is_in_reach = reach->is_whole;
  device->is_announced = reach->devices && device->source.services->devices_are_announced;
  /* On ROCm 7.14 access for another device takes that of the own one away, if that was given before (openxla/xla#46576). */
  device->is_own_last = strcmp(device->source.services->hip->runtime, "nvidia") != 0;
  atomic_init(&device->peers, reach->devices);
  pthread_mutex_init(&device->lock, NULL);
}

void peers_close(struct device *device)
{
  const struct hipmm_services *services = device->source.services;
  while (device->blocks) {
    struct peers_block *block = device->blocks;
    device->blocks = block->next;
    services->host_free(services, block, PEERS_BLOCK_BYTES);
  }
  pthread_mutex_destroy(&device->lock);
}

/* ---- Access to them ---- */

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
static enum hipmm_status peers_grant(struct device *device, uint64_t peers, void *address, size_t bytes)
{
  const struct hipmm_services *services = device->source.services;
  peers &= atomic_load_explicit(&device->peers, memory_order_relaxed);
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

static enum hipmm_status peers_give_own(const struct device *device, void *address, size_t bytes)
{
  const struct hipmm_services *services = device->source.services;
  int code = services->hip->MemSetAccess(address, bytes, services->device);
  return code ? services->refuse_hip(services, "hipMemSetAccess", code, bytes) : HIPMM_OK;
}

static enum hipmm_status peers_give_others(struct device *device, void *address, size_t bytes)
{
  if (!device->is_announced) return peers_grant(device, UINT64_MAX, address, bytes);
  pthread_mutex_lock(&device->lock);
  enum hipmm_status status = peers_record(device, address, bytes);
  if (!status && (status = peers_grant(device, device->granted, address, bytes))) peers_forget(device, address, bytes);
  pthread_mutex_unlock(&device->lock);
  return status;
}

enum hipmm_status peers_give_access(struct device *device, void *address, size_t bytes)
{
  enum hipmm_status status = device->is_own_last ? HIPMM_OK : peers_give_own(device, address, bytes);
  if (!status) status = peers_give_others(device, address, bytes);
  if (!status && device->is_own_last && (status = peers_give_own(device, address, bytes))) {
    pthread_mutex_lock(&device->lock);
    peers_forget(device, address, bytes);
    pthread_mutex_unlock(&device->lock);
  }
  return status;
}

int peers_unmap(struct device *device, void *address, size_t bytes)
{
  const struct hipmm_hip *hip = device->source.services->hip;
  if (!device->is_announced) return hip->MemUnmap(address, bytes);
  pthread_mutex_lock(&device->lock);
  int code = hip->MemUnmap(address, bytes);
  if (!code) peers_forget(device, address, bytes);
  pthread_mutex_unlock(&device->lock);
  return code;
}

/* A device that access to some mapping cannot be given to is not granted access; what that it got stays. */
enum hipmm_status peers_grant_access(void *self, int peer)
{
  struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  uint64_t bit = device_reach_bit(peer);
  enum hipmm_status status = HIPMM_OK;
  if (!device->is_announced) return HIPMM_OK;
  pthread_mutex_lock(&device->lock);
  if (!(device->granted & bit)) {
    int previous = services->enter_device(services);
    struct key_tree_node *node = key_tree_at_least(device->mappings, 0, 0);
    for (; node && !status; node = key_tree_next(device->mappings, node)) {
      status = peers_grant(device, bit, (void *)node->major, node->minor);
      if (!status && device->is_own_last && (atomic_load(&device->peers) & bit))
        status = peers_give_own(device, (void *)node->major, node->minor);
    }
    services->leave_device(services, previous);
  }
  if (!status) device->granted |= bit;
  pthread_mutex_unlock(&device->lock);
  return status;
}
