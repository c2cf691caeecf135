/* SPDX-License-Identifier: MIT */
/* configure.c: puts a configuration into force, and resets what belongs to one device or to all. Called by software.c
 * for the options of a graph, by applications (hipDeviceReset), and by tests. A configuration never changes while memory
 * is allocated. */
#include "pool.h"

/* ---- Reset ----------------------------------------------------------------------------------------------------- */

static void configure_free(struct software_allocation *allocation)
{
  if (allocation->graph) {
    software_graph_memory_free(allocation);
  } else if (allocation->kind == SOFTWARE_POOLED) {
    software_pool_free(allocation);
  } else {
    software_pool_forget(allocation);
    software_allocation_destroy(allocation);
  }
}

/* By address, since configure_free may release the lock. */
static void configure_free_allocations(int device)
{
  const struct key_tree_node *node;
  for (uintptr_t at = 0; (node = key_tree_at_least(software.allocations, at, 0));) {
    struct software_allocation *allocation = (struct software_allocation *)node;
    at = node->major + 1;
    if (device < 0 || allocation->device == device) configure_free(allocation);
  }
}

static void configure_reset_devices(int device)
{
  int first = device < 0 ? 0 : device, last = device < 0 ? SOFTWARE_MAX_DEVICES - 1 : device;
  for (int i = first; i <= last; i++) {
    software_pools_reset(i);
    software_heap_close(&software.devices[i].heap);
    software_state_reset_device(i);
  }
}

/* In this order: the users of memory before the memory. Each takes a device, or -1 for all. */
static void (*const configure_resets[])(int device) = {
    software_captures_reset, software_streams_reset,     software_events_reset,  software_programs_reset,
    software_graphs_reset,   configure_free_allocations, software_virtual_reset, configure_reset_devices,
};

static void configure_reset(int device)
{
  /* Graphs are reset with every device, and may have been launched on any. */
  software_wait_device(software_graphs_exist() ? -1 : device, software.sequence);
  for (size_t i = 0; i < sizeof configure_resets / sizeof *configure_resets; i++) configure_resets[i](device);
  if (device < 0) software_heap_close(&software.host_heap);
}

/* Also the only way to clear the fault of a device. */
hipError_t hipDeviceReset(void)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceReset);
  if (error == hipSuccess) configure_reset(software_current_device());
  return software_end(error);
}

void hipmm_software_reset(void)
{
  software_prepare();
  pthread_mutex_lock(&software.lock);
  configure_reset(-1);
  software.random = software.config.seed;
  pthread_mutex_unlock(&software.lock);
  hipmm_software_fail_none();
  hipmm_software_reset_calls();
}

/* ---- Configuration --------------------------------------------------------------------------------------------- */

static bool configure_is_idle(void)
{
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++)
    if (software.devices[device].live_count > 0) return false;
  return !software.reservations;
}

static bool configure_is_same(const struct software_config *one, const struct software_config *other)
{
  return one->devices == other->devices && one->memory_bytes == other->memory_bytes &&
         one->host_memory_bytes == other->host_memory_bytes && one->scheduler == other->scheduler &&
         one->seed == other->seed && one->virtual_memory == other->virtual_memory &&
         one->memory_pools == other->memory_pools && one->managed_memory == other->managed_memory &&
         one->pageable_memory_access == other->pageable_memory_access && one->no_host_access == other->no_host_access &&
         one->check_streams == other->check_streams && one->hip_version == other->hip_version &&
         one->peer_group == other->peer_group && one->granularity_bytes == other->granularity_bytes &&
         one->rocm_mapping == other->rocm_mapping;
}

/* The configuration in force may be requested again at any time: memory that is still allocated stays, and so do the objects
 * of a program that has used the device before hipmm did. */
bool software_configure(const struct software_config *config)
{
  software_prepare();
  pthread_mutex_lock(&software.lock);
  bool is_idle = configure_is_idle(), is_same = configure_is_same(config, &software.config);
  if (is_idle && !(is_same && software_handles_exist(&software_pool_handles))) {
    configure_reset(-1);
    software_state_configure(config);
    software_watch_configure(config);
  }
  if (is_idle) atomic_store(&software.is_misconfigured, false);
  pthread_mutex_unlock(&software.lock);
  return is_idle || is_same;
}
